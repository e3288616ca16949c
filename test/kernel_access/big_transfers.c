// System calls that carry more than the budget holds: each byte arrives, and counts and errors are the kernel's own.
#include "common.h"

#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

static size_t g_bytes;
static char* g_from;
static char* g_to;

struct Sink {
  int descriptor;
  size_t got;
};

// The other side of a pipe or socket, reading with one call as much as it can get.
static void* drain(void* argument) {
  struct Sink* sink = argument;
  while (sink->got < g_bytes) {
    ssize_t got = read(sink->descriptor, g_to + sink->got, g_bytes - sink->got);
    if (got <= 0) break;
    sink->got += (size_t)got;
  }
  return NULL;
}

static void begin(uint64_t seed) {
  fill(g_from, g_bytes, seed);
  memset(g_to, 0xee, g_bytes);
}

static void report(const char* what, uint64_t seed) {
  printf("%-24s wrong words %zu\n", what, wrong_words(g_to, g_bytes, seed));
}

static void through_file(void) {
  int file = scratch_file(0);
  begin(1);
  printf("write %zd\n", write(file, g_from, g_bytes));
  printf("seek %ld\n", (long)lseek(file, 0, SEEK_SET));
  printf("read %zd\n", read(file, g_to, g_bytes));
  report("file", 1);
  begin(2);
  printf("pwrite %zd\n", pwrite(file, g_from, g_bytes, 4096 + 3));
  printf("pread %zd\n", pread(file, g_to, g_bytes, 4096 + 3));
  report("file at an odd place", 2);
  close(file);
}

static void through_vectors(void) {
  enum { kParts = 64 };
  struct iovec out[kParts], in[kParts];
  size_t part = g_bytes / kParts;
  for (int i = 0; i < kParts; ++i) {
    out[i] = (struct iovec){g_from + (size_t)i * part, part};
    in[i] = (struct iovec){g_to + (size_t)i * part, part};
  }
  int file = scratch_file(0);
  begin(3);
  printf("writev %zd\n", writev(file, out, kParts));
  lseek(file, 0, SEEK_SET);
  printf("readv %zd\n", readv(file, in, kParts));
  report("vectors", 3);
  begin(4);
  printf("pwritev %zd\n", pwritev(file, out, kParts, 0));
  printf("preadv %zd\n", preadv(file, in, kParts, 0));
  report("vectors with a place", 4);
  close(file);
}

static void through_pipe(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  begin(5);
  struct Sink sink = {ends[0], 0};
  pthread_t reader;
  CHECK(pthread_create(&reader, NULL, drain, &sink) == 0);
  printf("write to a pipe %zd\n", write(ends[1], g_from, g_bytes));
  pthread_join(reader, NULL);
  report("pipe", 5);
  close(ends[0]);
  close(ends[1]);
}

static void* receive(void* argument) {
  struct Sink* sink = argument;
  enum { kParts = 4 };
  while (sink->got < g_bytes) {
    size_t left = g_bytes - sink->got, part = left / kParts;
    struct iovec in[kParts];
    for (size_t i = 0; i < kParts; ++i)
      in[i] = (struct iovec){g_to + sink->got + i * part, i == kParts - 1 ? left - i * part : part};
    struct msghdr message = {.msg_iov = in, .msg_iovlen = kParts};
    ssize_t got = recvmsg(sink->descriptor, &message, MSG_WAITALL);
    if (got <= 0) break;
    sink->got += (size_t)got;
  }
  return NULL;
}

static void through_socket(void) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  begin(6);
  struct Sink sink = {ends[0], 0};
  pthread_t reader;
  CHECK(pthread_create(&reader, NULL, receive, &sink) == 0);
  struct iovec out[2] = {{g_from, g_bytes / 2}, {g_from + g_bytes / 2, g_bytes / 2}};
  struct msghdr message = {.msg_iov = out, .msg_iovlen = 2};
  printf("sendmsg %zd\n", sendmsg(ends[1], &message, 0));
  pthread_join(reader, NULL);
  report("sendmsg and recvmsg", 6);
  close(ends[0]);
  close(ends[1]);
}

static void through_sendfile(void) {
  int file = scratch_file(0), ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  begin(7);
  printf("write %zd\n", write(file, g_from, g_bytes));
  struct Sink sink = {ends[0], 0};
  pthread_t reader;
  CHECK(pthread_create(&reader, NULL, drain, &sink) == 0);
  off_t* place = (off_t*)(g_from + g_bytes / 2 + 8);  // in far memory, too
  *place = 0;
  size_t sent = 0;
  push_out();
  while (sent < g_bytes) {
    ssize_t now = sendfile(ends[1], file, place, g_bytes - sent);
    if (now <= 0) break;
    sent += (size_t)now;
  }
  pthread_join(reader, NULL);
  printf("sendfile %zu, place %ld\n", sent, (long)*place);
  report("sendfile", 7);
  close(file);
  close(ends[0]);
  close(ends[1]);
}

struct Pipe {
  int descriptor;
  size_t sent;
};

// Pages themselves go into the pipe: the kernel holds them until they are read.
static void* give_pages(void* argument) {
  struct Pipe* pipe = argument;
  while (pipe->sent < g_bytes) {
    struct iovec out = {g_from + pipe->sent, g_bytes - pipe->sent};
    ssize_t now = vmsplice(pipe->descriptor, &out, 1, 0);
    if (now <= 0) break;
    pipe->sent += (size_t)now;
  }
  close(pipe->descriptor);
  return NULL;
}

// vmsplice -> tee -> one side read, the other spliced into a file and read back.
static void through_splices(void) {
  int first[2], second[2], file = scratch_file(0);
  CHECK(pipe(first) == 0 && pipe(second) == 0);
  begin(8);
  push_out();
  struct Pipe source = {first[1], 0};
  pthread_t giver;
  CHECK(pthread_create(&giver, NULL, give_pages, &source) == 0);
  size_t got = 0, wrong_way = 0;
  off_t at = 0;
  for (;;) {
    ssize_t doubled = tee(first[0], second[1], 1 << 16, 0);
    if (doubled <= 0) break;
    ssize_t in_file = 0;
    while (in_file < doubled) {
      ssize_t now = splice(second[0], NULL, file, &at, (size_t)(doubled - in_file), SPLICE_F_MOVE);
      CHECK(now > 0);
      in_file += now;
    }
    for (ssize_t taken = 0; taken < doubled;) {
      ssize_t now = read(first[0], g_to + got, (size_t)(doubled - taken));
      CHECK(now > 0);
      taken += now;
      got += (size_t)now;
    }
    wrong_way += (size_t)(in_file - doubled);
  }
  pthread_join(giver, NULL);
  printf("vmsplice %zu, tee %zu, splice %ld, %zu\n", source.sent, got, (long)at, wrong_way);
  report("vmsplice and tee", 8);
  memset(g_to, 0xee, g_bytes);
  printf("pread %zd\n", pread(file, g_to, g_bytes, 0));
  report("splice", 8);
  close(first[0]);
  close(second[0]);
  close(second[1]);
  close(file);
}

// A call that ends in memory that is not there carries what comes before it, and says how much.
static void over_the_edge(void) {
  char* edge = big_mmap(3 * 4096);
  CHECK(munmap(edge + 4096, 4096) == 0);
  memset(edge, 'x', 4096);
  push_out();
  int ends[2];
  CHECK(pipe(ends) == 0);
  ssize_t done = write(ends[1], edge + 96, 8000);
  printf("write over the edge %zd, %d\n", done, done < 0 ? errno : 0);
  CHECK(write(ends[1], "something to read", 17) == 17 && mprotect(edge, 4096, PROT_READ) == 0);
  push_out();
  done = read(ends[0], edge, 10);
  printf("read into read-only memory %zd, %d\n", done, done < 0 ? errno : 0);
  done = write(ends[1], edge + 4096, 1);
  printf("write from nowhere %zd, %d\n", done, done < 0 ? errno : 0);
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  check_preloaded();
  g_bytes = big_bytes();
  g_from = big_malloc(g_bytes);
  g_to = big_mmap(g_bytes);
  through_file();
  through_vectors();
  through_pipe();
  through_socket();
  through_sendfile();
  through_splices();
  over_the_edge();
  return 0;
}
