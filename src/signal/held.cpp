#include "signal/held.hpp"

#include <sys/syscall.h>

#include <cstring>

#include "base/raw_call.hpp"
#include "base/readable.hpp"
#include "base/units.hpp"
#include "signal/local_memory.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kTextMax = 256 * kKiB;  // twice the most that execve(2) takes

// For the call of each thread that first has more pieces than it notes itself; a handler of a signal that interrupts
// that call maps what it needs, and so does what goes beyond.
constexpr std::size_t kThreadsOwn = 32;
thread_local bool t_own_taken = false;

}  // namespace

bool Held::grow() {
  static thread_local Piece t_own[kThreadsOwn];
  const bool is_first = more_ == nullptr;
  if (is_first && !t_own_taken) {
    t_own_taken = true;
    more_ = t_own;
    room_more_ = kThreadsOwn;
    return true;
  }
  std::size_t room = is_first ? kPageSize / sizeof(Piece) : room_more_ * 8;
  auto* larger = static_cast<Piece*>(map_local(room * sizeof(Piece)));
  if (larger == nullptr) return false;
  if (!is_first) std::memcpy(larger, more_, room_more_ * sizeof(Piece));
  give_back_more();
  more_ = larger;
  room_more_ = room;
  return true;
}

void Held::give_back_more() {
  if (room_more_ == kThreadsOwn)
    t_own_taken = false;
  else if (more_ != nullptr)
    unmap_local(more_, room_more_ * sizeof(Piece));
}

Held::Piece* Held::place() {
  if (count_ < kHere) return &here_[count_];
  if (count_ - kHere == room_more_ && !grow()) return nullptr;
  return &more_[count_ - kHere];
}

bool Held::hold(const void* pointer, std::size_t bytes, bool write) {
  if (pointer == nullptr || bytes == 0) return true;
  if (!is_in_window(pointer) && !is_in_window(static_cast<const char*>(pointer) + (bytes - 1))) return true;
  Piece* piece = place();
  if (piece == nullptr) return true;  // then the call may fail with EFAULT
  *piece = {reinterpret_cast<std::uintptr_t>(pointer), bytes};
  ++count_;
  return hl_self_paging.hold(piece->address, bytes, write);
}

void Held::let_go() {
  for (std::size_t i = 0; i < count_; ++i) {
    const Piece& piece = i < kHere ? here_[i] : more_[i - kHere];
    hl_self_paging.let_go(piece.address, piece.bytes);
  }
  give_back_more();
}

void Held::text(const char* pointer) {
  if (!is_far(pointer)) return;
  for (std::size_t at = 0; at < kTextMax;) {
    std::size_t to_end = kPageSize - (reinterpret_cast<std::uintptr_t>(pointer + at) & (kPageSize - 1));
    if (!hold(pointer + at, to_end, false) || std::memchr(pointer + at, 0, to_end) != nullptr) return;
    at += to_end;
  }
}

void Held::texts(char* const* pointers) {
  if (pointers == nullptr) return;
  for (char* const* at = pointers;; ++at) {
    if (at == pointers || (reinterpret_cast<std::uintptr_t>(at) & (kPageSize - 1)) == 0) {
      std::size_t to_end = kPageSize - (reinterpret_cast<std::uintptr_t>(at) & (kPageSize - 1));
      in(at, to_end);
      if (!is_readable(at, sizeof *at)) return;
    }
    if (*at == nullptr) return;
    text(*at);
  }
}

void Held::address(const void* address, const socklen_t* size) {
  if (address != nullptr && size != nullptr) out(address, *size);
  out(size);
}

void Held::vector(const iovec* parts, std::size_t count, bool write, std::size_t most) {
  if (parts == nullptr || count > most) return;
  in(parts, count * sizeof *parts);
  if (!is_readable(parts, count * sizeof *parts)) return;
  for (std::size_t i = 0; i < count; ++i) hold(parts[i].iov_base, parts[i].iov_len, write);
}

void Held::message(const msghdr* message, bool receive) {
  if (message == nullptr) return;
  hold(message, sizeof *message, receive);
  if (!is_readable(message, sizeof *message)) return;
  hold(message->msg_name, message->msg_namelen, receive);
  hold(message->msg_control, message->msg_controllen, receive);
  vector(message->msg_iov, message->msg_iovlen, receive);
}

void Held::messages(const mmsghdr* messages, std::size_t count, bool receive) {
  constexpr std::size_t kMost = 1024;  // the kernel takes no more at once
  if (messages == nullptr) return;
  count = count < kMost ? count : kMost;
  out(messages, count * sizeof *messages);
  for (std::size_t i = 0; i < count && is_readable(&messages[i], sizeof *messages); ++i)
    message(&messages[i].msg_hdr, receive);
}

}  // namespace hinterland
