// What stays held after the call that named it, until something ends it: a completion, the program's question for a
// result, a buffer's end of registration.
//
// Thread-safe, and callable where a handler of a signal has interrupted another call of its thread (tried_lock.hpp):
// who does not get the lock leaves held what is held.
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
      if (lock) add({name, address, bytes});
    });
  }
  // The same, for a request of this name that begins; until done() was called for it. Which of several with one name
  // is done cannot be told: what is held for them is let go when all are.
  void begin(Held& held, const Name& name) {
    TriedLock lock(busy_);
    if (lock) add({name, 0, 0});
    held.hand_over([&](std::uintptr_t address, std::size_t bytes) {
      if (lock) add({name, address, bytes});
    });
  }
  void done(const Name& name) {
    if (count_.load(std::memory_order_relaxed) == 0) return;  // relaxed: as below
    TriedLock lock(busy_);
    if (lock && note_done(name)) let_go_locked([&name](const Name& other) { return other == name; });
  }
  // What is held for names of which is(name).
  template <typename Is>
  void let_go_where(Is&& is) {
    // relaxed: the caller noted it himself, or does not care
    if (count_.load(std::memory_order_relaxed) == 0) return;
    TriedLock lock(busy_);
    if (lock) let_go_locked(is);
  }

 private:
  struct Note {
    Name name;
    std::uintptr_t address;
    std::size_t bytes;  // 0: it stands for a request
    unsigned done = 0;  // of the first such note with its name: how many of the requests are
  };
  template <typename Is>
  void let_go_locked(Is&& is) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      Note now = notes_[i];
      if (!is(now.name))
        notes_[kept++] = now;
      else if (now.bytes != 0)
        hl_self_paging.let_go(now.address, now.bytes);
    }
    count_ = kept;
  }
  // Whether all requests of this name are done now. True where there is none.
  bool note_done(const Name& name) {
    Note* first = nullptr;
    unsigned requests = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (notes_[i].bytes != 0 || !(notes_[i].name == name)) continue;
      if (first == nullptr) first = &notes_[i];
      ++requests;
    }
    return first == nullptr || ++first->done == requests;
  }
  // Without memory for the note, it stays held.
  void add(const Note& what) {
    if (count_ == room_) {
      const std::size_t room = room_ == 0 ? kPageSize / sizeof(Note) : room_ * 2;
      auto* larger = static_cast<Note*>(map_local(room * sizeof(Note)));
      if (larger == nullptr) return;
      if (room_ != 0) std::memcpy(larger, notes_, count_ * sizeof(Note));
      if (room_ != 0) unmap_local(notes_, room_ * sizeof(Note));
      notes_ = larger;
      room_ = room;
    }
    notes_[count_++] = what;
  }

  std::atomic<bool> busy_{false};
  std::atomic<std::size_t> count_{0};
  std::size_t room_ = 0;
  Note* notes_ = nullptr;
};

}  // namespace hinterland
