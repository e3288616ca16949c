// Pages that the kernel keeps for a receiver while they leave local memory: vmsplice, tee and splice, MSG_ZEROCOPY,
// IORING_OP_SEND_ZC. What arrives must be what was sent, or what the page held later; never another page's bytes.
#include "far.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "ring.h"

static void pipe_of_pages(int ends[2]) {
  CHECK(pipe(ends) == 0);
  CHECK(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0);
}

// A receiver that takes little before it reads, so that most stays with the sender.
static void connection(int ends[2]) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  int one = 1, little = 1 << 14, much = 1 << 21;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof little) == 0);
  CHECK(bind(listener, (struct sockaddr*)&here, sizeof here) == 0 && listen(listener, 1) == 0);
  CHECK(getsockname(listener, (struct sockaddr*)&here, &length) == 0);
  ends[1] = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &much, sizeof much) == 0);
  CHECK(connect(ends[1], (struct sockaddr*)&here, sizeof here) == 0);
  ends[0] = accept(listener, NULL, NULL);
  CHECK(ends[0] >= 0 && setsockopt(ends[1], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0);
  close(listener);
}

// What the kernel has of a chunk, and where it comes out: at one end, or at two.
struct Held {
  int from[2];
  size_t bytes[2];
  int open[8], open_count;
};

static void keep_open(struct Held* held, const int ends[2]) {
  held->open[held->open_count++] = ends[0];
  held->open[held->open_count++] = ends[1];
}

static size_t splice_from_memory(int pipe_end, char* pages) {
  struct iovec from = {pages, CHUNK * PAGE};
  CHECK(vmsplice(pipe_end, &from, 1, 0) == (ssize_t)(CHUNK * PAGE));
  return CHUNK * PAGE;
}

static void into_a_pipe(struct Held* held, char* pages) {
  int ends[2];
  pipe_of_pages(ends);
  held->from[0] = ends[0];
  held->bytes[0] = splice_from_memory(ends[1], pages);
  keep_open(held, ends);
}

static size_t passed_on(int from, int to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    ssize_t now = splice(from, NULL, to, NULL, bytes - done, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (now <= 0) break;
    done += (size_t)now;
  }
  return done;
}

// The same pages twice: through one more pipe, and to a socket, as far as that takes them.
static void into_a_chain(struct Held* held, char* pages) {
  int first[2], second[2], third[2], net[2];
  pipe_of_pages(first);
  pipe_of_pages(second);
  pipe_of_pages(third);
  connection(net);
  CHECK(fcntl(net[1], F_SETFL, O_NONBLOCK) == 0);
  size_t sent = splice_from_memory(first[1], pages);
  CHECK(tee(first[0], second[1], sent, 0) == (ssize_t)sent);
  held->from[0] = third[0];
  held->bytes[0] = passed_on(first[0], third[1], sent);
  held->from[1] = net[0];
  held->bytes[1] = passed_on(second[0], net[1], sent);
  CHECK(held->bytes[0] == sent);
  keep_open(held, first);
  keep_open(held, second);
  keep_open(held, third);
  keep_open(held, net);
}

static void without_copies(struct Held* held, char* pages) {
  int net[2];
  connection(net);
  ssize_t sent = send(net[1], pages, CHUNK * PAGE, MSG_ZEROCOPY | MSG_DONTWAIT);
  CHECK(sent > 0);
  held->from[0] = net[0];
  held->bytes[0] = (size_t)sent;
  keep_open(held, net);
}

static struct Ring g_ring;

static void by_a_ring(struct Held* held, char* pages) {
  int net[2];
  connection(net);
  int sent = ring_send(&g_ring, net[1], pages, CHUNK * PAGE);
  CHECK(sent > 0);
  held->from[0] = net[0];
  held->bytes[0] = (size_t)sent;
  keep_open(held, net);
}

static void receive(int from, size_t bytes) {
  memset(g_received, 0, sizeof g_received);
  for (size_t got = 0; got < bytes;) {
    ssize_t now = read(from, g_received + got, bytes - got);
    CHECK(now > 0);
    got += (size_t)now;
  }
}

static size_t take_out(uint64_t number, struct Held* held) {
  size_t wrong = 0;
  for (int end = 0; end < 2; ++end) {
    receive(held->from[end], held->bytes[end]);
    wrong += wrong_pages(number, held->bytes[end]);
  }
  for (int i = 0; i < held->open_count; ++i) close(held->open[i]);
  return wrong;
}

static void send_and_compare(const char* what, void (*send_pages)(struct Held*, char*)) {
  size_t wrong = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    struct Held held[CHUNKS] = {0};
    for (uint64_t number = 0; number < CHUNKS; ++number) {
      write_chunk(number, 1, g_generation);
      send_pages(&held[number], chunk(number));
    }
    write_others();
    for (uint64_t number = 0; number < CHUNKS; ++number) wrong += take_out(number, &held[number]);
    if (g_ring.pending != 0) ring_wait_until_given_back(&g_ring);
    ++g_generation;
  }
  --g_generation;
  printf("%s: %zu pages are wrong, %zu of the others\n", what, wrong, wrong_others());
  fflush(stdout);
  ++g_generation;
}

int main(void) {
  check_preloaded();
  map_far();
  send_and_compare("vmsplice", into_a_pipe);
  send_and_compare("tee and splice", into_a_chain);
  send_and_compare("MSG_ZEROCOPY", without_copies);
  if (ring_open(&g_ring))
    send_and_compare("IORING_OP_SEND_ZC", by_a_ring);
  else
    printf("IORING_OP_SEND_ZC: not on this machine\n");
  return 0;
}
