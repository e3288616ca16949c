// flood PORT [FROM]: connects to 127.0.0.1:PORT, says nothing, and goes, as often as it can, until it is killed.
// Prints a line when the first hundred were there.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char** words) {
  if (count < 2) return 2;
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[1]))};
  struct sockaddr_in own = {.sin_family = AF_INET};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (count > 2) inet_pton(AF_INET, words[2], &own.sin_addr);
  struct linger none = {1, 0};
  for (unsigned long done = 0;; ++done) {
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (count > 2 && bind(stranger, (struct sockaddr*)&own, sizeof own) != 0) return 1;
    if (connect(stranger, (struct sockaddr*)&server, sizeof server) != 0 && done == 0) return 1;
    setsockopt(stranger, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(stranger);
    if (done == 100) puts("flooding"), fflush(stdout);
  }
}
