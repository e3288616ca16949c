// The kernel works on pages by itself: O_DIRECT files, Linux AIO, io_uring with plain and registered buffers.
#include "common.h"

#include <liburing.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static size_t g_bytes;
static char* g_from;
static char* g_to;

static void begin(uint64_t seed) {
  fill(g_from, g_bytes, seed);
  memset(g_to, 0xee, g_bytes);
  push_out();
}
static void report(const char* what, uint64_t seed) {
  printf("%-24s wrong words %zu\n", what, wrong_words(g_to, g_bytes, seed));
}

// Some file systems have no O_DIRECT: the same natively.
static int direct_file(void) {
  int file = scratch_file(O_DIRECT);
  if (file < 0) printf("no O_DIRECT here, %d\n", errno);
  return file;
}

static void direct_reads_and_writes(void) {
  int file = direct_file();
  if (file < 0) return;
  begin(1);
  size_t step = 4 * (size_t)kMiB;
  for (size_t at = 0; at < g_bytes; at += step) CHECK(pwrite(file, g_from + at, step, (off_t)at) == (ssize_t)step);
  for (size_t at = 0; at < g_bytes; at += step) CHECK(pread(file, g_to + at, step, (off_t)at) == (ssize_t)step);
  report("O_DIRECT", 1);
  close(file);
}

static void aio(int file, int command, char* memory) {
  enum { kDepth = 8, kStep = 256 << 10 };
  aio_context_t context = 0;
  CHECK(syscall(SYS_io_setup, kDepth, &context) == 0);
  struct iocb* blocks = calloc(kDepth, 4096);  // the control blocks are in far memory, too
  struct io_event* events = malloc(kDepth * sizeof *events);
  size_t at = 0, in_flight = 0, done = 0;
  while (done < g_bytes) {
    while (in_flight < kDepth && at < g_bytes) {
      struct iocb* block = (struct iocb*)((char*)blocks + (at / kStep % kDepth) * 4096);
      *block = (struct iocb){.aio_lio_opcode = (uint16_t)command,
                             .aio_fildes = (uint32_t)file,
                             .aio_buf = (uint64_t)(uintptr_t)(memory + at),
                             .aio_nbytes = kStep,
                             .aio_offset = (int64_t)at};
      CHECK(syscall(SYS_io_submit, context, 1, &block) == 1);
      at += kStep;
      ++in_flight;
    }
    // All of a round, so that no control block is used again too early.
    long got = syscall(SYS_io_getevents, context, in_flight, kDepth, events, NULL);
    CHECK(got > 0);
    for (long i = 0; i < got; ++i) CHECK(events[i].res == kStep);
    in_flight -= (size_t)got;
    done += (size_t)got * kStep;
  }
  CHECK(syscall(SYS_io_destroy, context) == 0);
  free(events);
  free(blocks);
}

static void linux_aio(void) {
  int file = direct_file();
  if (file < 0) return;
  begin(2);
  aio(file, IOCB_CMD_PWRITE, g_from);
  aio(file, IOCB_CMD_PREAD, g_to);
  report("Linux AIO", 2);
  close(file);
}

enum { kRingDepth = 16, kRingStep = 256 << 10 };

// Keeps kRingDepth requests in flight. `prepare` fills one in for the step at `at`.
static void ring_all(struct io_uring* ring, void (*prepare)(struct io_uring_sqe*, size_t at, int file), int file) {
  size_t at = 0, done = 0;
  unsigned in_flight = 0;
  while (done < g_bytes) {
    while (in_flight < kRingDepth && at < g_bytes) {
      struct io_uring_sqe* request = io_uring_get_sqe(ring);
      prepare(request, at, file);
      at += kRingStep;
      ++in_flight;
    }
    CHECK(io_uring_submit_and_wait(ring, 1) >= 0);
    struct io_uring_cqe* completion;
    while (io_uring_peek_cqe(ring, &completion) == 0) {
      CHECK(completion->res == kRingStep);
      io_uring_cqe_seen(ring, completion);
      --in_flight;
      done += kRingStep;
    }
  }
}

static void prepare_write(struct io_uring_sqe* request, size_t at, int file) {
  io_uring_prep_write(request, file, g_from + at, kRingStep, at);
}
static void prepare_read(struct io_uring_sqe* request, size_t at, int file) {
  io_uring_prep_read(request, file, g_to + at, kRingStep, at);
}
// By a thread of the kernel, which faults on its own.
static void prepare_async_read(struct io_uring_sqe* request, size_t at, int file) {
  prepare_read(request, at, file);
  io_uring_sqe_set_flags(request, IOSQE_ASYNC);
}

static void ring_file(const char* what, int file, uint64_t seed) {
  struct io_uring ring;
  CHECK(io_uring_queue_init(kRingDepth, &ring, 0) == 0);
  begin(seed);
  ring_all(&ring, prepare_write, file);
  ring_all(&ring, prepare_read, file);
  report(what, seed);
  memset(g_to, 0xdd, g_bytes);
  ring_all(&ring, prepare_async_read, file);
  report(what, seed);
  io_uring_queue_exit(&ring);
}

// Registered buffers stay where they are while the program's other memory passes through the budget.
static void registered_buffers(int file) {
  enum { kBuffers = 4 };
  struct io_uring ring;
  CHECK(io_uring_queue_init(kRingDepth, &ring, 0) == 0);
  struct iovec buffers[kBuffers];
  for (int i = 0; i < kBuffers; ++i) buffers[i] = (struct iovec){big_mmap(kRingStep), kRingStep};
  for (int i = 0; i < kBuffers; ++i) fill(buffers[i].iov_base, kRingStep, 100 + (uint64_t)i);
  push_out();
  int registered = io_uring_register_buffers(&ring, buffers, kBuffers);
  printf("register buffers %d\n", registered);
  size_t wrong = 0;
  for (int round = 0; round < 24; ++round) {
    int which = round % kBuffers;
    fill(buffers[which].iov_base, kRingStep, 1000 + (uint64_t)round);
    push_out();
    for (int reading = 0; reading < 2; ++reading) {
      struct io_uring_sqe* request = io_uring_get_sqe(&ring);
      if (reading) {
        memset(buffers[which].iov_base, 0x77, kRingStep);
        push_out();
        io_uring_prep_read_fixed(request, file, buffers[which].iov_base, kRingStep, 0, which);
      } else {
        io_uring_prep_write_fixed(request, file, buffers[which].iov_base, kRingStep, 0, which);
      }
      CHECK(io_uring_submit_and_wait(&ring, 1) >= 0);
      struct io_uring_cqe* completion;
      CHECK(io_uring_wait_cqe(&ring, &completion) == 0);
      CHECK(completion->res == kRingStep);
      io_uring_cqe_seen(&ring, completion);
    }
    push_out();
    wrong += wrong_words(buffers[which].iov_base, kRingStep, 1000 + (uint64_t)round);
  }
  printf("registered buffers       wrong words %zu\n", wrong);
  io_uring_queue_exit(&ring);
  for (int i = 0; i < kBuffers; ++i) munmap(buffers[i].iov_base, kRingStep);
}

static int has_io_uring(void) {
  struct io_uring ring;
  int error = io_uring_queue_init(2, &ring, 0);
  if (error != 0) {
    printf("no io_uring, %d\n", -error);
    return 0;
  }
  io_uring_queue_exit(&ring);
  return 1;
}

int main(void) {
  check_preloaded();
  g_bytes = big_bytes();
  // Aligned, as O_DIRECT asks.
  CHECK(posix_memalign((void**)&g_from, 4096, g_bytes) == 0);
  g_to = big_mmap(g_bytes);
  direct_reads_and_writes();
  linux_aio();
  // By signal, without --catch, its requests find what is there (docs/tuning.md).
  if (getenv("KERNEL_ACCESS_WITHOUT_RING") != NULL || !has_io_uring()) return 0;
  int file = scratch_file(0);
  ring_file("io_uring", file, 3);
  registered_buffers(file);
  int direct = direct_file();
  if (direct >= 0) ring_file("io_uring, O_DIRECT", direct, 4);
  if (direct >= 0) registered_buffers(direct);
  if (direct >= 0) close(direct);
  close(file);
  return 0;
}
