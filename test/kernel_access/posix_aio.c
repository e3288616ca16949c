// POSIX AIO, which libc makes of threads of its own: buffers and control blocks in far memory, many under way while
// their pages are wanted elsewhere, waited for in every way.
#include "common.h"

#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kRequests = 48, kBytes = 32 * 1024 + 512 };

static volatile sig_atomic_t told;
static void on_done(int number) { told += number == SIGRTMIN; }

static unsigned char byte_of(size_t request, size_t at) { return (unsigned char)(request * 31 + at * 7 + at / 4096); }

static void fill_request(char* buffer, size_t request) {
  for (size_t at = 0; at < kBytes; ++at) buffer[at] = (char)byte_of(request, at);
}
static int is_right(const char* buffer, size_t request) {
  for (size_t at = 0; at < kBytes; ++at)
    if ((unsigned char)buffer[at] != byte_of(request, at)) return 0;
  return 1;
}

// A page each, so that a block leaves alone.
static struct aiocb* block_of(char* blocks, size_t request) { return (struct aiocb*)(blocks + request * 4096 + 64); }

static void prepare(struct aiocb* block, int file, char* buffer, size_t request, int operation) {
  *block = (struct aiocb){.aio_fildes = file,
                          .aio_buf = buffer,
                          .aio_nbytes = kBytes,
                          .aio_offset = (off_t)(request * kBytes),
                          .aio_lio_opcode = operation};
  block->aio_sigevent.sigev_notify = SIGEV_NONE;
}

static long wait_for(struct aiocb* block) {
  const struct aiocb* list[] = {NULL, block};
  while (aio_error(block) == EINPROGRESS) aio_suspend(list, 2, NULL);
  int error = aio_error(block);
  long result = aio_return(block);
  return error == 0 ? result : -error;
}

int main(void) {
  const int file = scratch_file(0);
  char *blocks = big_mmap(kRequests * 4096), *out = big_mmap(kRequests * kBytes), *in = big_mmap(kRequests * kBytes);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kRequests; ++i) {
      fill_request(out + i * kBytes, i + (size_t)round);
      prepare(block_of(blocks, i), file, out + i * kBytes, i, LIO_WRITE);
      CHECK(aio_write(block_of(blocks, i)) == 0);
    }
    push_out();
    size_t whole = 0;
    for (size_t i = 0; i < kRequests; ++i) whole += wait_for(block_of(blocks, i)) == kBytes;
    printf("written whole: %zu\n", whole);
    struct aiocb* list[kRequests];
    for (size_t i = 0; i < kRequests; ++i) prepare(list[i] = block_of(blocks, i), file, in + i * kBytes, i, LIO_READ);
    if (round == 0) {
      for (size_t i = 0; i < kRequests; ++i) CHECK(aio_read(list[i]) == 0);
    } else {
      CHECK(lio_listio(round == 1 ? LIO_WAIT : LIO_NOWAIT, list, kRequests, NULL) == 0);
    }
    push_out();
    whole = 0;
    for (size_t i = 0; i < kRequests; ++i) whole += wait_for(list[i]) == kBytes;
    size_t right = 0;
    for (size_t i = 0; i < kRequests; ++i) right += (size_t)is_right(in + i * kBytes, i + (size_t)round);
    printf("read whole: %zu, right: %zu\n", whole, right);
    memset(in, 0, kRequests * kBytes);
    push_out();
  }
  // Told by a signal; made durable.
  signal(SIGRTMIN, on_done);
  struct aiocb* block = block_of(blocks, 3);
  prepare(block, file, in, 5, LIO_READ);
  block->aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  block->aio_sigevent.sigev_signo = SIGRTMIN;
  CHECK(aio_read(block) == 0);
  while (told == 0) usleep(1000);
  printf("told, %ld bytes\n", wait_for(block));
  prepare(block, file, NULL, 0, LIO_NOP);
  CHECK(aio_fsync(O_SYNC, block) == 0);
  printf("durable: %ld\n", wait_for(block));
  // Errors.
  prepare(block, 9999, in, 0, LIO_READ);
  printf("of no file: %d\n", aio_read(block) == 0 ? (int)wait_for(block) : -errno);
  prepare(block, file, (char*)8, 0, LIO_READ);
  printf("of a wrong pointer: %d\n", aio_read(block) == 0 ? (int)wait_for(block) : -errno);
  struct aiocb* nothing[] = {NULL, NULL};
  printf("of nothing: %d\n", lio_listio(LIO_WAIT, nothing, 2, NULL));
  int wrong = lio_listio(77, nothing, 2, NULL);
  printf("of a wrong way: %d errno %d\n", wrong, errno);
  return 0;
}
