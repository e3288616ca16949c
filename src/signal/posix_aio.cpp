// POSIX AIO: libc's own threads make the calls, and write into the control blocks with all signals blocked, so that
// nobody would serve their faults. What a request names, and its block, is held from the call that makes it until the
// program asks for its result, or makes another with the block.
#include <aio.h>
#include <sys/syscall.h>

#include <cerrno>

#include "base/raw_call.hpp"
#include "base/readable.hpp"
#include "signal/held_notes.hpp"
#include "signal/interposed.hpp"

using namespace hinterland;

namespace {

constinit HeldNotes<const aiocb*> g_notes;

void let_go_of(const aiocb* block) {
  g_notes.let_go_where([block](const aiocb* other) { return other == block; });
}

bool names_bytes(int operation) { return operation == LIO_READ || operation == LIO_WRITE; }

void hold(const aiocb* block, int operation) {
  Held held;
  held.out(block);
  if (!is_readable(block, sizeof *block)) return static_cast<void>(held.done(0));
  // The same block again: what it was held for is done.
  let_go_of(block);
  if (names_bytes(operation)) held.out(const_cast<const void*>(block->aio_buf), block->aio_nbytes);
  g_notes.take_over(held, block);
}

int made(const aiocb* block, int result) {
  if (result != 0) let_go_of(block);
  return result;
}

constexpr int kEntriesMax = 65536;  // more in one list: held as far as that

}  // namespace

// Those with and without 64 in their names are the same on x86-64.
#define HL_REQUEST(name, operation)              \
  HL_INTERPOSED(int, name, (aiocb * block)) {    \
    if (!holds_pins()) return NEXT(name)(block); \
    hold(block, operation);                      \
    return made(block, NEXT(name)(block));       \
  }
HL_REQUEST(aio_read, LIO_READ)
HL_REQUEST(aio_read64, LIO_READ)
HL_REQUEST(aio_write, LIO_WRITE)
HL_REQUEST(aio_write64, LIO_WRITE)

#define HL_DURABLE(name)                              \
  HL_INTERPOSED(int, name, (int how, aiocb* block)) { \
    if (!holds_pins()) return NEXT(name)(how, block); \
    hold(block, LIO_NOP);                             \
    return made(block, NEXT(name)(how, block));       \
  }
HL_DURABLE(aio_fsync)
HL_DURABLE(aio_fsync64)

#define HL_RESULT(name)                           \
  HL_INTERPOSED(ssize_t, name, (aiocb * block)) { \
    const ssize_t result = NEXT(name)(block);     \
    if (!holds_pins()) return result;             \
    const int saved_errno = errno;                \
    let_go_of(block);                             \
    errno = saved_errno;                          \
    return result;                                \
  }
HL_RESULT(aio_return)
HL_RESULT(aio_return64)

#define HL_LIST(name)                                                                                       \
  HL_INTERPOSED(int, name, (int mode, aiocb* const list[], int count, sigevent* event)) {                   \
    if (!holds_pins()) return NEXT(name)(mode, list, count, event);                                         \
    for (int i = 0; i < count && i < kEntriesMax; ++i)                                                      \
      if (list[i] != nullptr && list[i]->aio_lio_opcode != LIO_NOP) hold(list[i], list[i]->aio_lio_opcode); \
    return NEXT(name)(mode, list, count, event);                                                            \
  }
HL_LIST(lio_listio)
HL_LIST(lio_listio64)
