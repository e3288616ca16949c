// Far objects in coroutines of C++20: who waits for one does not block his thread.
//
//     task look(const hl::far::ptr<record>& p) {
//       hl::far::pinned<const record> there = co_await p.pin();     // local: goes on at once
//       use(there->count);
//     }
//
//     for (;;) {                                       // a thread's event loop
//       epoll_wait(...);                               // with hl::far::arrivals::of_this_thread().descriptor() in it
//       hl::far::arrivals::of_this_thread().poll();    // coroutines whose objects are there go on
//     }
//
// A coroutine goes on in arrivals::poll() or wait(), and nowhere else: in the thread that calls it. Which arrivals
// that is was settled when it began to wait: those of its thread, or those given to pin(). Objects that several
// coroutines wait for are read from the device together, when the loop comes to poll().
//
// A device that answers at once (mem:, zmem:) lets no coroutine wait. Without Hinterland all
// objects are local, and nobody waits either.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>
#include <utility>

#include "hinterland/object.hpp"

namespace hl::far {

// Holds an object where it is: for a while, as over another co_await. Moves, also to other threads, and may end in
// any. The pointer may be moved meanwhile, but must not end before. What is pinned keeps 1 MiB of local memory around
// it from being emptied, and nothing else.
template <typename T>
class pinned {
 public:
  pinned() noexcept = default;
  pinned(pinned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  pinned& operator=(pinned&& other) noexcept {
    if (this != &other) {
      reset();
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  ~pinned() { reset(); }

  void reset() noexcept {
    const detail::runtime* rt = detail::the_runtime();
    const T* given_up = std::exchange(object_, nullptr);
    if (given_up != nullptr && reinterpret_cast<std::uintptr_t>(given_up) - rt->base < rt->size) rt->unpin(given_up);
  }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }

 private:
  friend class pinning<T>;
  explicit pinned(T* object) noexcept : object_(object) {}
  T* object_ = nullptr;
};

// Where coroutines go on that have waited for an object. One thread at a time calls poll(), wait() and the
// destructor; coroutines may begin to wait in any.
class arrivals {
 public:
  arrivals() noexcept = default;
  // Coroutines that still wait never go on: destroy them, before or after.
  ~arrivals() {
    if (detail::loop* own = loop_.load(std::memory_order_relaxed)) detail::the_runtime()->end_loop(own);
  }
  arrivals(const arrivals&) = delete;
  arrivals& operator=(const arrivals&) = delete;

  // Those of the calling thread. They end with it.
  __attribute__((noinline)) static arrivals& of_this_thread() {
    __asm__ volatile("" ::: "memory");  // so that a coroutine that changes threads asks again
    static thread_local arrivals own;
    return own;
  }

  // Resumes coroutines whose objects are there, or lost, and sends off what they ask for next. How many. Does not
  // block. Throws what a coroutine lets out of resume(); the others go on with the next call.
  std::size_t poll() {
    detail::loop* own = loop_.load(std::memory_order_relaxed);
    if (own == nullptr) return 0;
    const detail::runtime* rt = detail::the_runtime();
    struct Settle {
      const detail::runtime* rt;
      detail::loop* own;
      ~Settle() { rt->settle(own); }
    } settle{rt, own};
    std::size_t resumed = 0;
    while (resumed < together) {
      detail::arrival* over;
      {
        scope held;
        over = rt->gather(own);
      }
      if (over == nullptr) break;
      ++resumed;
      std::coroutine_handle<>::from_address(over->coroutine).resume();
    }
    return resumed;
  }
  // The same, and blocks until there is one, or the time is over.
  std::size_t wait(std::chrono::nanoseconds at_most) {
    if (std::size_t resumed = poll(); resumed != 0) return resumed;
    detail::loop* own = loop_.load(std::memory_order_relaxed);
    if (own == nullptr || at_most.count() <= 0) return 0;
    detail::the_runtime()->wait(own, static_cast<std::uint64_t>(at_most.count()));
    return poll();
  }
  // For poll(2) and epoll(7): readable when poll() may have something to do; call poll() then. Stays the same and
  // belongs to this; after a fork the child asks anew. -1: there is no runtime (or an older one), and nothing ever
  // arrives. Throws std::system_error.
  int descriptor() {
    const detail::runtime* rt = detail::the_runtime();
    if (!detail::is_served(rt)) return -1;
    const int found = rt->descriptor(begun());
    if (found < 0) throw std::system_error(-found, std::generic_category(), "no descriptor for arrivals");
    return found;
  }

 private:
  template <typename T>
  friend class pinning;
  static constexpr std::size_t together = 256;  // so that a loop also sees its other events

  detail::loop* begun() {
    detail::loop* own = loop_.load(std::memory_order_acquire);
    if (own != nullptr) return own;
    detail::loop* made = detail::the_runtime()->begin_loop();
    if (made == nullptr) throw std::bad_alloc();
    // acq_rel: two threads may begin at a time; who comes second takes the first one's.
    if (loop_.compare_exchange_strong(own, made, std::memory_order_acq_rel)) return made;
    detail::the_runtime()->end_loop(made);
    return own;
  }
  std::atomic<detail::loop*> loop_{nullptr};
};

// What co_await wants of p.pin(). Not to be kept.
template <typename T>
class [[nodiscard("co_await it")]] pinning {
 public:
  pinning(detail::word* where, std::uint32_t flags, arrivals* goes_on) : goes_on_(goes_on) {
    what_.where = where;
    what_.flags = flags;
  }
  pinning(const pinning&) = delete;
  pinning& operator=(const pinning&) = delete;
  ~pinning() {
    // A coroutine that is destroyed while it waits.
    if (what_.gathers != nullptr) detail::the_runtime()->pin_forget(&what_);
  }

  bool await_ready() {
    const std::uint64_t value = what_.where->load(std::memory_order_acquire);
    if (!detail::is_managed(value)) {
      what_.object = reinterpret_cast<void*>(value & ~detail::kFlags);
      return true;
    }
    scope held;
    return detail::the_runtime()->pin_now(&what_);
  }
  bool await_suspend(std::coroutine_handle<> who) {
    what_.coroutine = who.address();
    what_.gathers = (goes_on_ != nullptr ? *goes_on_ : arrivals::of_this_thread()).begun();
    // When this is true, the coroutine may have gone on and ended by now.
    return detail::the_runtime()->pin_later(&what_);
  }
  // Throws object_lost where that is asked for, std::bad_alloc where the machine has no memory at all.
  pinned<T> await_resume() {
    const detail::runtime* rt = detail::the_runtime();
    what_.gathers = nullptr;
    while (what_.error != 0) {
      if (what_.error == ENOMEM) throw std::bad_alloc();
      if (detail::throws_when_lost.load(std::memory_order_relaxed)) throw object_lost(what_.error);
      rt->lost(what_.where, what_.error);  // a handler that returns has it tried again, as with a page
      scope held;
      rt->pin_blocking(&what_);
    }
    return pinned<T>(static_cast<T*>(what_.object));
  }

 private:
  detail::arrival what_;
  arrivals* goes_on_;
};

template <typename T>
pinning<const T> ptr<T>::pin(use how) const {
  check_not_null();
  return {&word_, static_cast<std::uint32_t>(how), nullptr};
}
template <typename T>
pinning<const T> ptr<T>::pin(arrivals& where, use how) const {
  check_not_null();
  return {&word_, static_cast<std::uint32_t>(how), &where};
}
template <typename T>
pinning<T> ptr<T>::pin_mut(use how) {
  check_not_null();
  return {&word_, static_cast<std::uint32_t>(how) | detail::kReachWrite, nullptr};
}
template <typename T>
pinning<T> ptr<T>::pin_mut(arrivals& where, use how) {
  check_not_null();
  return {&word_, static_cast<std::uint32_t>(how) | detail::kReachWrite, &where};
}

}  // namespace hl::far
