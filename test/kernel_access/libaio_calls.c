// Linux AIO by functions of libaio (a stand-in): context, blocks, buffers and events are far.
#include "common.h"

#include <linux/aio_abi.h>
#include <signal.h>
#include <time.h>

int io_setup(int count, aio_context_t* context);
int io_submit(aio_context_t context, long count, struct iocb** blocks);
int io_cancel(aio_context_t context, struct iocb* block, struct io_event* event);
int io_getevents(aio_context_t context, long least, long most, struct io_event* events, struct timespec* timeout);
int io_pgetevents(aio_context_t context, long least, long most, struct io_event* events, struct timespec* timeout,
                  sigset_t* mask);
int io_destroy(aio_context_t context);

enum { kBlocks = 40, kStep = 64 << 10, kPage = 4096 };

// Of each a page of its own, so that they leave one by one.
static aio_context_t* g_context;
static struct iocb** g_list;
static char* g_blocks;
static struct io_event* g_events;

static void transfer(const char* what, int command, int file, char* memory) {
  for (int i = 0; i < kBlocks; ++i) {
    g_list[i] = (struct iocb*)(g_blocks + (size_t)i * kPage);
    *g_list[i] = (struct iocb){.aio_lio_opcode = (uint16_t)command,
                               .aio_fildes = (uint32_t)file,
                               .aio_buf = (uintptr_t)memory + (size_t)i * kStep,
                               .aio_nbytes = kStep,
                               .aio_offset = (int64_t)i * kStep};
  }
  push_out();
  printf("%s: submitted %d\n", what, io_submit(*g_context, kBlocks, g_list));
  push_out();
  struct timespec* limit = (struct timespec*)(g_blocks + (size_t)kBlocks * kPage);
  *limit = (struct timespec){10, 0};
  push_out();
  // Half of them each way.
  sigset_t none;
  sigemptyset(&none);
  int got = io_pgetevents(*g_context, kBlocks / 2, kBlocks / 2, g_events, limit, &none);
  if (got >= 0) got += io_getevents(*g_context, kBlocks - got, kBlocks - got, g_events + got, limit);
  int whole = 0;
  for (int i = 0; i < got; ++i) whole += g_events[i].res == kStep;
  printf("%s: %d events, %d whole\n", what, got, whole);
}

int main(void) {
  check_preloaded();
  int file = scratch_file(0);
  char *from = big_mmap(kBlocks * kStep), *to = big_mmap(kBlocks * kStep);
  g_context = big_mmap(kPage);
  g_list = big_mmap(kPage);
  g_blocks = big_mmap((kBlocks + 1) * kPage);
  g_events = big_mmap(kPage);
  fill(from, kBlocks * kStep, 1);
  *g_context = 0;
  push_out();
  printf("setup %d\n", io_setup(64, g_context));
  transfer("write", IOCB_CMD_PWRITE, file, from);
  transfer("read", IOCB_CMD_PREAD, file, to);
  printf("wrong words %zu\n", wrong_words(to, kBlocks * kStep, 1));
  // The kernel writes to pages that it has pinned, while the program's other memory passes through the budget.
  int direct = scratch_file(O_DIRECT);
  for (int round = 0; direct >= 0 && round < 8; ++round) {
    fill(from, kBlocks * kStep, 2 + (uint64_t)round);
    transfer("direct write", IOCB_CMD_PWRITE, direct, from);
    memset(to, 0x77, kBlocks * kStep);
    transfer("direct read", IOCB_CMD_PREAD, direct, to);
    push_out();
    printf("wrong words %zu\n", wrong_words(to, kBlocks * kStep, 2 + (uint64_t)round));
  }
  struct iocb* wrong[] = {(struct iocb*)8};
  printf("a wrong block %d, a wrong list %d\n", io_submit(*g_context, 1, wrong),
         io_submit(*g_context, 1, (struct iocb**)8));
  printf("nothing to cancel %d\n", io_cancel(*g_context, g_list[0], g_events) < 0);
  printf("destroyed %d\n", io_destroy(*g_context));
  return 0;
}
