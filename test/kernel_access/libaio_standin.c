// Stands in for libaio, which has these functions with these versions; its system calls are instructions of its own.
#include <linux/aio_abi.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

__attribute__((visibility("default"))) int io_setup(int count, aio_context_t* context) {
  return (int)call(SYS_io_setup, count, (long)context, 0, 0, 0, 0);
}
__attribute__((visibility("default"))) int io_submit(aio_context_t context, long count, struct iocb** blocks) {
  return (int)call(SYS_io_submit, (long)context, count, (long)blocks, 0, 0, 0);
}
__attribute__((visibility("default"))) int io_cancel(aio_context_t context, struct iocb* block,
                                                     struct io_event* event) {
  return (int)call(SYS_io_cancel, (long)context, (long)block, (long)event, 0, 0, 0);
}
__attribute__((visibility("default"))) int io_getevents(aio_context_t context, long least, long most,
                                                        struct io_event* events, struct timespec* timeout) {
  return (int)call(SYS_io_getevents, (long)context, least, most, (long)events, (long)timeout, 0);
}
__attribute__((visibility("default"))) int io_destroy(aio_context_t context) {
  return (int)call(SYS_io_destroy, (long)context, 0, 0, 0, 0, 0);
}
__attribute__((visibility("default"))) int io_pgetevents(aio_context_t context, long least, long most,
                                                         struct io_event* events, struct timespec* timeout,
                                                         sigset_t* mask) {
  struct {
    sigset_t* mask;
    size_t bytes;
  } for_the_wait = {mask, 8};
  return (int)call(SYS_io_pgetevents, (long)context, least, most, (long)events, (long)timeout, (long)&for_the_wait);
}
