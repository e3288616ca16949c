// Requests that outlast their call. The kernel takes what they name, pages or bytes, while the call lasts. Pages that
// it has pinned stay where they are as long as it has them; where we cannot see that (hl_self_paging.sees_pins), what
// the kernel writes to them is held until it is done: a read until its completion is fetched, a registered buffer
// until its ring has no buffers any more. What it only reads may leave: it has the bytes that were there.
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>

#include <ctime>

#include "base/raw_call.hpp"
#include "base/readable.hpp"
#include "signal/held_notes.hpp"
#include "signal/interposed.hpp"
#include "signal/self_paging.hpp"
#include "signal/system_calls.hpp"

namespace hinterland {
namespace {

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

// A request under way: until its completion, which names its block, or the end of its context. The kernel copies the
// block, so that a program may use it again meanwhile. Writes are noted, too, for one may have a read's block.
struct Request {
  long context;
  long block;
  bool operator==(const Request&) const = default;
};
constinit HeldNotes<Request> g_requests;
constinit HeldNotes<long> g_registered;  // by the ring's descriptor

// IORING_REGISTER_USE_REGISTERED_RING, which Debian's headers lack: the ring is named otherwise than by its
// descriptor.
constexpr long kByRegistration = 1L << 31;

bool reads(const iocb* block) {
  return is_readable(block, sizeof *block) &&
         (block->aio_lio_opcode == IOCB_CMD_PREAD || block->aio_lio_opcode == IOCB_CMD_PREADV);
}

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

// Of buffers every byte, because it pins them.
void hold_registered(Held& held, long operation, const void* what, std::size_t count) {
  constexpr std::size_t kEntry = 64, kMost = 32768;  // what is no buffer has smaller entries, and no more
  held.out(what, (count < kMost ? count + 1 : kMost) * kEntry);
  Buffers buffers = buffers_of(operation, what, count);
  constexpr std::size_t kBuffersMax = 16384;
  held.vector(buffers.parts, buffers.count, true, kBuffersMax);
  if (operation == IORING_REGISTER_PBUF_RING && is_readable(what, sizeof(io_uring_buf_reg))) {
    const auto* asked = static_cast<const io_uring_buf_reg*>(what);
    held.out(at(asked->ring_addr), asked->ring_entries * sizeof(io_uring_buf));
  }
}

}  // namespace

// One after the other, so that what one names need not be held for all.
long submit_held(long context, long count, const void* blocks) {
  if (count <= 0 || blocks == nullptr) return raw::call(SYS_io_submit, context, count, raw::word_of(blocks));
  iocb* const* block = static_cast<iocb* const*>(blocks);
  for (long taken = 0; taken < count; ++taken, ++block) {
    Held held;
    held.in(block);
    const iocb* one = is_readable(block, sizeof *block) ? *block : nullptr;
    if (one != nullptr) hold_block(held, one);
    const bool outlasts = !hl_self_paging.sees_pins && one != nullptr;
    const Request request{context, raw::word_of(one)};
    Held nothing;
    // Before it is submitted: another thread may fetch the completion at once.
    if (outlasts) g_requests.begin(reads(one) ? held : nothing, request);
    const long result = held.done(raw::call(SYS_io_submit, context, 1, raw::word_of(block)));
    if (result == 1) continue;
    if (outlasts) g_requests.done(request);
    return taken != 0 ? taken : result;
  }
  return count;
}

void completed(long context, const void* events, long count) {
  const auto* event = static_cast<const io_event*>(events);
  for (long i = 0; i < count; ++i) {
    g_requests.done({context, static_cast<long>(event[i].obj)});
  }
}

void context_ended(long context) {
  g_requests.let_go_where([context](const Request& other) { return other.context == context; });
}

// The number may be that of a ring that was closed before.
void ring_begins(long ring) {
  g_registered.let_go_where([ring](long other) { return other == ring; });
}

long register_held(const long (&a)[6]) {
  const long ring = a[0] | (a[1] & kByRegistration), operation = a[1] & ~kByRegistration;
  Held held;
  hold_registered(held, operation, reinterpret_cast<const void*>(a[2]), static_cast<std::uint32_t>(a[3]));
  const long result = raw::call(SYS_io_uring_register, a[0], a[1], a[2], a[3], a[4], a[5]);
  const bool outlasts = operation == IORING_REGISTER_BUFFERS || operation == IORING_REGISTER_BUFFERS2 ||
                        operation == IORING_REGISTER_BUFFERS_UPDATE || operation == IORING_REGISTER_PBUF_RING;
  if (!hl_self_paging.sees_pins && outlasts && !raw::failed(result))
    g_registered.take_over(held, ring);
  else
    held.done(0);
  if (operation == IORING_UNREGISTER_BUFFERS && !raw::failed(result)) ring_begins(ring);
  return result;
}

}  // namespace hinterland

using namespace hinterland;

// As the kernel wants the mask of a wait.
namespace {
struct MaskOfWait {
  const sigset_t* mask;
  std::size_t bytes = sizeof(std::uint64_t);
  const MaskOfWait* kernels() const { return this; }
};
}  // namespace

// Of libaio, whose system calls are instructions of its own. Its functions return -errno. Another library may have
// functions of these names: those are called as they are.
#define HL_OF_LIBAIO(name, version, parameters, arguments, ...)                                         \
  HL_INTERPOSED_AS(int, name, version, parameters) {                                                    \
    if (NEXT(name) != nullptr) return static_cast<int>(hl_held_system_call(SYS_##name, {__VA_ARGS__})); \
    static constinit NextFunction anothers(#name);                                                      \
    auto* other = reinterpret_cast<Type_##name*>(anothers.get());                                       \
    return other != nullptr ? other arguments : -ENOSYS;                                                \
  }
HL_OF_LIBAIO(io_setup, "LIBAIO_0.4", (int count, aio_context_t* context), (count, context), count,
             raw::word_of(context), 0, 0, 0, 0)
HL_OF_LIBAIO(io_submit, "LIBAIO_0.1", (aio_context_t context, long count, iocb** blocks), (context, count, blocks),
             raw::word_of(context), count, raw::word_of(blocks), 0, 0, 0)
HL_OF_LIBAIO(io_getevents, "LIBAIO_0.4",
             (aio_context_t context, long least, long most, io_event* events, timespec* timeout),
             (context, least, most, events, timeout), raw::word_of(context), least, most, raw::word_of(events),
             raw::word_of(timeout), 0)
HL_OF_LIBAIO(io_pgetevents, "LIBAIO_0.5",
             (aio_context_t context, long least, long most, io_event* events, timespec* timeout, sigset_t* mask),
             (context, least, most, events, timeout, mask), raw::word_of(context), least, most, raw::word_of(events),
             raw::word_of(timeout), raw::word_of(MaskOfWait{mask}.kernels()))
HL_OF_LIBAIO(io_destroy, "LIBAIO_0.4", (aio_context_t context), (context), raw::word_of(context), 0, 0, 0, 0, 0)
HL_OF_LIBAIO(io_cancel, "LIBAIO_0.4", (aio_context_t context, iocb* block, io_event* event), (context, block, event),
             raw::word_of(context), raw::word_of(block), raw::word_of(event), 0, 0, 0)
