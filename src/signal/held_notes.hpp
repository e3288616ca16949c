// What stays held after the call that named it, until something ends it: a completion, the program's question for a
// result, a buffer's end of registration.
//
// Thread-safe, and callable where a handler of a signal has interrupted another thread's call (tried_lock.hpp): who
// does not get the lock lets go at once, or leaves it held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/units.hpp"
#include "signal/held.hpp"
#include "signal/local_memory.hpp"
#include "signal/tried_lock.hpp"

namespace hinterland {

// `Name` tells what it is held for; a plain structure.
template <typename Name>
class HeldNotes {
 public:
  // All of `held` is held for `name` from now on.
  void take_over(Held& held, const Name& name) {
    TriedLock lock(busy_);
    held.hand_over([&](std::uintptr_t address, std::size_t bytes) {
      if (!lock || !add({name, address, bytes})) hl_self_paging.let_go(address, bytes);
    });
  }
  // What is held for names of which is(name), which may change the name instead.
  template <typename Is>
  void let_go_where(Is&& is) {
    // relaxed: the caller noted it himself, or does not care
    if (count_.load(std::memory_order_relaxed) == 0) return;
    TriedLock lock(busy_);
    if (!lock) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      Note now = notes_[i];
      if (is(now.name))
        hl_self_paging.let_go(now.address, now.bytes);
      else
        notes_[kept++] = now;
    }
    count_ = kept;
  }

 private:
  struct Note {
    Name name;
    std::uintptr_t address;
    std::size_t bytes;
  };
  // False: no memory.
  bool add(const Note& what) {
    if (count_ == room_) {
      const std::size_t room = room_ == 0 ? kPageSize / sizeof(Note) : room_ * 2;
      auto* larger = static_cast<Note*>(map_local(room * sizeof(Note)));
      if (larger == nullptr) return false;
      if (room_ != 0) std::memcpy(larger, notes_, count_ * sizeof(Note));
      if (room_ != 0) unmap_local(notes_, room_ * sizeof(Note));
      notes_ = larger;
      room_ = room;
    }
    notes_[count_++] = what;
    return true;
  }

  std::atomic<bool> busy_{false};
  std::atomic<std::size_t> count_{0};
  std::size_t room_ = 0;
  Note* notes_ = nullptr;
};

}  // namespace hinterland
