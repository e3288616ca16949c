// Requests that outlast their call. The kernel takes what they name, pages or bytes, while the call lasts.
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>

#include <ctime>

#include "base/raw_call.hpp"
#include "base/readable.hpp"
#include "signal/interposed.hpp"
#include "signal/self_paging.hpp"
#include "signal/system_calls.hpp"

namespace hinterland {
namespace {

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

void hold_block(Held& held, const iocb* block) {
  held.out(block);  // the kernel writes its key
  if (!is_readable(block, sizeof *block)) return;
  const void* named = at(block->aio_buf);
  switch (block->aio_lio_opcode) {
    case IOCB_CMD_PREAD:
      return held.out(named, block->aio_nbytes);
    case IOCB_CMD_PWRITE:
      return held.in(named, block->aio_nbytes);
    case IOCB_CMD_PREADV:
    case IOCB_CMD_PWRITEV:
      return held.vector(static_cast<const iovec*>(named), block->aio_nbytes,
                         block->aio_lio_opcode == IOCB_CMD_PREADV);
    default:
      return;
  }
}

// The structures of younger requests lead on to the buffers.
struct Buffers {
  const iovec* parts;
  std::size_t count;
};

Buffers buffers_of(long operation, const void* what, std::size_t count) {
  if (operation == IORING_REGISTER_BUFFERS) return {static_cast<const iovec*>(what), count};
  if (operation == IORING_REGISTER_BUFFERS2 && is_readable(what, sizeof(io_uring_rsrc_register))) {
    const auto* asked = static_cast<const io_uring_rsrc_register*>(what);
    return {static_cast<const iovec*>(at(asked->data)), asked->nr};
  }
  if (operation == IORING_REGISTER_BUFFERS_UPDATE && is_readable(what, sizeof(io_uring_rsrc_update2))) {
    const auto* asked = static_cast<const io_uring_rsrc_update2*>(what);
    return {static_cast<const iovec*>(at(asked->data)), asked->nr};
  }
  return {nullptr, 0};
}

}  // namespace

// One after the other, so that what one names need not be held for all.
long submit_held(long context, long count, const void* blocks) {
  if (count <= 0 || blocks == nullptr) return raw::call(SYS_io_submit, context, count, raw::word_of(blocks));
  iocb* const* block = static_cast<iocb* const*>(blocks);
  for (long taken = 0; taken < count; ++taken, ++block) {
    Held held;
    held.in(block);
    if (is_readable(block, sizeof *block)) hold_block(held, *block);
    long result = held.done(raw::call(SYS_io_submit, context, 1, raw::word_of(block)));
    if (result != 1) return taken != 0 ? taken : result;
  }
  return count;
}

void hold_registered(Held& held, long operation, const void* what, std::size_t count) {
  constexpr std::size_t kEntry = 64, kMost = 32768;  // what is no buffer has smaller entries, and no more
  held.out(what, (count < kMost ? count + 1 : kMost) * kEntry);
  Buffers buffers = buffers_of(operation, what, count);
  constexpr std::size_t kBuffersMax = 16384;
  held.vector(buffers.parts, buffers.count, true, kBuffersMax);
}

}  // namespace hinterland

using namespace hinterland;

// Of libaio, whose system calls are instructions of its own. Its functions return -errno. Another library may have
// functions of these names: those are called as they are.
#define HL_OF_LIBAIO(name, version, parameters, arguments, ...)                                         \
  HL_INTERPOSED_AS(int, name, version, parameters) {                                                    \
    if (NEXT(name) != nullptr) return static_cast<int>(hl_held_system_call(SYS_##name, {__VA_ARGS__})); \
    static constinit NextFunction anothers(#name);                                                      \
    auto* other = reinterpret_cast<Type_##name*>(anothers.get());                                       \
    return other != nullptr ? other arguments : -ENOSYS;                                                \
  }
HL_OF_LIBAIO(io_setup, "LIBAIO_0.1", (int count, aio_context_t* context), (count, context), count,
             raw::word_of(context), 0, 0, 0, 0)
HL_OF_LIBAIO(io_submit, "LIBAIO_0.1", (aio_context_t context, long count, iocb** blocks), (context, count, blocks),
             raw::word_of(context), count, raw::word_of(blocks), 0, 0, 0)
HL_OF_LIBAIO(io_getevents, "LIBAIO_0.4",
             (aio_context_t context, long least, long most, io_event* events, timespec* timeout),
             (context, least, most, events, timeout), raw::word_of(context), least, most, raw::word_of(events),
             raw::word_of(timeout), 0)
HL_OF_LIBAIO(io_cancel, "LIBAIO_0.4", (aio_context_t context, iocb* block, io_event* event), (context, block, event),
             raw::word_of(context), raw::word_of(block), raw::word_of(event), 0, 0, 0)
