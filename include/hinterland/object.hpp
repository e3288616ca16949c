// Far objects: allocations that the runtime keeps local or far, each on its own, whatever its size (AIFM, OSDI 2020;
// docs/objects.md).
//
//     hl::far::ptr<record> p = hl::far::make<record>(1, 2);
//     {
//       hl::far::scope s;                 // what is dereferenced in it stays where it is until it ends
//       p.deref_mut(s)->count += 1;       // deref() for reading only: then a far copy stays good
//     }
//     record copy = p.read();             // or without a scope: copies out, and in
//     p.write(copy);
//
// A program that runs without Hinterland has all its objects local, at the price of plain pointers. Under
// `hinterland run`, or after start(), they become far when local memory runs short. C++20 for GCC and Clang, x86-64.
//
// Threads: as std::unique_ptr. Several may dereference the same pointer at a time (that is const); to move, reset or
// destroy one, nobody else may use it. Objects are moved by the runtime only while nobody can hold their address.
// On fibers (hinterland/fiber.hpp) what blocks a thread parks the fiber instead.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "hinterland/object_runtime.hpp"

namespace hl::far {

// What a type holds. Objects move as bytes, so a type is either trivially copyable, or names the far pointers in it:
//
//     struct node { int key; hl::far::ptr<node> next; };
//     template <> struct hl::far::holds<node> : hl::far::pointers<&node::next> {};
//
// An object with pointers becomes far after the objects they point to.
template <typename T>
struct holds {
  static constexpr bool named = std::is_trivially_copyable_v<T>;
};
template <auto... Members>
struct pointers;

// It could not be brought: the device is gone, or its answer was damaged. Thrown where throw_when_lost(true) asked
// for it; otherwise SIGBUS, after a message.
class object_lost : public std::system_error {
 public:
  explicit object_lost(int error) : system_error(error, std::generic_category(), "a far object cannot be had") {}
};

namespace detail {

inline constinit std::atomic<bool> throws_when_lost{false};

// The slot of this thread; nullptr until its first scope. `used`: own_slot() names it in assembly.
__attribute__((used)) inline constinit thread_local thread_slot* t_slot = nullptr;
struct thread_end {
  bool entered = false;
  ~thread_end() {
    if (entered) the_runtime()->leave_thread(std::exchange(t_slot, nullptr));
  }
};
inline thread_local thread_end t_end;
inline thread_local thread_slot t_alone;  // without a runtime

__attribute__((noinline, cold)) inline thread_slot* enter_thread() {
  const runtime* rt = the_runtime();
  if (rt->enter_thread == nullptr) return t_slot = &t_alone;
  thread_slot* slot = rt->enter_thread();
  if (slot == nullptr) throw std::bad_alloc();
  // A thread that is ending may come here once more: its slot is then nobody's for good.
  t_end.entered = true;
  return t_slot = slot;
}

// The slot of the thread that runs now. In assembly, because a fiber may go on in another thread after any call that
// waits, and compilers keep the address of a thread_local over calls.
inline __attribute__((always_inline)) thread_slot* own_slot() {
  thread_slot* slot;
  __asm__ volatile(
      "movq _ZN2hl3far6detail6t_slotE@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(slot)
      :
      : "memory");
  return slot != nullptr ? slot : enter_thread();
}

__attribute__((noinline, cold)) inline void relieve(thread_slot* slot) {
  const runtime* rt = the_runtime();
  if (rt->relieve != nullptr) rt->relieve(slot);
}

inline bool is_pressed(const thread_slot* slot) {
  return (slot->phase.load(std::memory_order_relaxed) & thread_slot::kPressed) != 0;
}
// Where memory is short, waits for a bounded time until there is some; a fiber parks. As scope() does, but before a
// lock is taken: the scope that is opened with the lock then waits for nobody (at_once).
inline void wait_for_memory() {
  thread_slot* slot = own_slot();
  if (is_pressed(slot)) [[unlikely]]
    relieve(slot);
}
struct at_once {};

// What another thread's fork finds either not begun or done: a container's lock is free in the child, and its index
// whole. A fork waits until it ends, so that it must not wait for a thread that forks.
class undivided {
 public:
  undivided() : slot_(own_slot()) {
    const std::uint32_t before = slot_->inside.load(std::memory_order_relaxed);
    // relaxed: only this thread writes it. That it is seen before anything else is done is the forking thread's
    // business, by membarrier(2) in Grace::begin_fork() (src/object/grace.cpp); the compiler must keep the order.
    slot_->inside.store(before + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (before == 0 && (slot_->phase.load(std::memory_order_relaxed) & thread_slot::kForking) != 0) [[unlikely]]
      the_runtime()->wait_for_fork(slot_);
  }
  ~undivided() {
    // release: pairs with the acquire of Grace::begin_fork()
    slot_->inside.store(slot_->inside.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  undivided(const undivided&) = delete;
  undivided& operator=(const undivided&) = delete;

  // Within another step: a lock of somebody's is held, and no fiber parks.
  bool is_nested() const { return slot_->inside.load(std::memory_order_relaxed) > 1; }

 private:
  thread_slot* slot_;
};

template <typename T>
const type* type_of() {
  if constexpr (std::is_trivially_copyable_v<T>) {
    return nullptr;
  } else {
    static constexpr type what{[](void* object, void (*visit)(void*, word*), void* context) {
      holds<T>::each(*static_cast<T*>(object), [&](word* w) { visit(context, w); });
    }};
    return &what;
  }
}

// May the runtime move what the word points to? Otherwise it is ordinary memory.
inline bool is_managed(std::uint64_t value) noexcept {
  const runtime* rt = the_runtime();
  return (value & kAway) != 0 || (value & ~kFlags) - rt->base < rt->size;
}

}  // namespace detail

template <typename T>
class pinning;  // object_pin.hpp
class arrivals;

// Objects that are dereferenced in a scope stay where they are until it ends. Scopes nest; opening and closing one
// costs some instructions. Keep them short: memory that a scope holds cannot be given to others, and a thread that
// needs more meanwhile gets it beyond the budget, with a message. A scope belongs to who opened it: a thread, or a
// fiber of hinterland/fiber.hpp, with which it moves to other threads. A coroutine that may go on in another thread
// holds objects with co_await p.pin() (object_pin.hpp) instead, and has no scope open where it waits.
class scope {
 public:
  scope() { open(); }
  explicit scope(detail::at_once) { count(detail::own_slot()); }  // inside: after detail::wait_for_memory()
  ~scope() { close(); }
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  // Ends it and begins it anew: addresses that it held are held no longer.
  void renew() {
    close();
    open();
  }
  bool is_open() const noexcept { return parity_ != closed; }

 private:
  static constexpr std::uint32_t closed = 2;

  void open() {
    detail::thread_slot* slot = detail::own_slot();
    if (detail::is_pressed(slot)) [[unlikely]] {
      detail::relieve(slot);
      slot = detail::own_slot();  // a fiber waits for memory, too
    }
    count(slot);
  }
  void count(detail::thread_slot* slot) {
    const std::uint32_t parity = slot->phase.load(std::memory_order_relaxed) & 1;
    auto& active = slot->active[parity];
    // relaxed: only this thread writes it. That it is seen before any word is read afterwards is the evacuator's
    // business, by membarrier(2) in Grace::wait() (src/object/grace.cpp); the compiler must keep the order.
    active.store(active.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    parity_ = parity;  // last: where this lies may be far, and who waits for it may change threads
  }
  void close() noexcept {
    const std::uint32_t parity = parity_;  // first, likewise
    auto& active = detail::own_slot()->active[parity];
    // release: pairs with the acquire of Grace::wait(): what was done to the objects comes before they are moved.
    active.store(active.load(std::memory_order_relaxed) - 1, std::memory_order_release);
#ifndef NDEBUG
    const_cast<volatile std::uint32_t&>(parity_) = closed;  // volatile: its end is no reason to leave the store out
#endif
  }

  std::uint32_t parity_;
};

// How an object is used. nontemporal: hardly ever again, so that it leaves before others do.
enum class use : std::uint32_t { temporal = 0, nontemporal = detail::kReachNontemporal };

// Owns a far object, as std::unique_ptr owns one. 8 bytes. It may itself lie anywhere, also in a far object of a type
// that says so (holds).
template <typename T>
class ptr {
 public:
  using element_type = T;
  static_assert(!std::is_const_v<T> && !std::is_reference_v<T> && !std::is_array_v<T>);

  ptr() noexcept = default;
  ptr(std::nullptr_t) noexcept {}
  ptr(ptr&& other) noexcept { take(other); }
  ptr& operator=(ptr&& other) noexcept {
    if (this != &other) {
      // Ends last: `other` may lie in that object, as in list = std::move(list->next).
      const ptr before(std::move(*this));
      take(other);
    }
    return *this;
  }
  ~ptr() { reset(); }

  explicit operator bool() const noexcept { return word_.load(std::memory_order_relaxed) != 0; }

  // The object, which must exist, for as long as the scope is open. Blocks while it is brought: a fiber of
  // hinterland/fiber.hpp parks, unless the device answers at once, and may go on in another thread. Throws
  // object_lost where that is asked for, std::bad_alloc where the machine has no memory at all.
  const T* deref(const scope& held, use how = use::temporal) const {
    check(held);
    // acquire: pairs with the release of who put the object there (Heap::fetch, Evacuator::move_on).
    const std::uint64_t value = word_.load(std::memory_order_acquire);
    if ((value & (detail::kAway | detail::kCold)) == 0) [[likely]]
      return reinterpret_cast<const T*>(value & ~detail::kFlags);
    return reach(static_cast<std::uint32_t>(how));
  }
  // The same, to be written too: its far copy is given up.
  T* deref_mut(const scope& held, use how = use::temporal) {
    check(held);
    const std::uint64_t value = word_.load(std::memory_order_acquire);  // as above
    if ((value & detail::kFlags) == 0) [[likely]]
      return reinterpret_cast<T*>(value);
    return reach(static_cast<std::uint32_t>(how) | detail::kReachWrite);
  }

  // Without a scope: copies.
  T read() const
    requires std::is_trivially_copyable_v<T>
  {
    scope held;
    return *deref(held);
  }
  void write(const T& value)
    requires std::is_trivially_copyable_v<T>
  {
    scope held;
    *deref_mut(held) = value;
  }

  // For coroutines: `co_await p.pin()` gives a pinned<const T>, pin_mut() a pinned<T>. Include object_pin.hpp, which
  // says what they do, and where a coroutine goes on.
  pinning<const T> pin(use how = use::temporal) const;
  pinning<const T> pin(arrivals& where, use how = use::temporal) const;
  pinning<T> pin_mut(use how = use::temporal);
  pinning<T> pin_mut(arrivals& where, use how = use::temporal);

  // Ends the object.
  void reset() noexcept {
    const std::uint64_t value = word_.load(std::memory_order_relaxed);
    if (value == 0) return;
    if constexpr (!std::is_trivially_destructible_v<T>) destroy();
    if (detail::is_managed(value))
      detail::the_runtime()->release(&word_);
    else
      ::operator delete(reinterpret_cast<void*>(value & ~detail::kFlags), std::align_val_t{alignment()});
    word_.store(0, std::memory_order_relaxed);
  }

  // Inside: for containers.
  detail::word* far_word() const noexcept { return &word_; }
  // As deref(), but nullptr where it would have to wait for a device that takes its time. For who holds a lock.
  const T* deref_at_once(const scope& held) const {
    check(held);
    const std::uint64_t value = word_.load(std::memory_order_acquire);  // as in deref()
    if ((value & (detail::kAway | detail::kCold)) == 0) [[likely]]
      return reinterpret_cast<const T*>(value & ~detail::kFlags);
    return (value & detail::kAway) == 0 ? reach(0) : reach_at_once();
  }

 private:
  template <typename U, typename... Arguments>
  friend ptr<U> make_as(use how, Arguments&&... arguments);

  static constexpr std::size_t alignment() { return alignof(T) < 8 ? 8 : alignof(T); }

  void check([[maybe_unused]] const scope& held) const {
#ifndef NDEBUG
    if (!held.is_open()) misused();
    check_not_null();
#endif
  }
  void check_not_null() const {
#ifndef NDEBUG
    if (word_.load(std::memory_order_relaxed) == 0) misused();
#endif
  }
  [[noreturn]] static void misused() {
    static constexpr char said[] =
        "hinterland: a far pointer is dereferenced that is null, or outside of its scope\n";
    std::fwrite(said, 1, sizeof said - 1, stderr);
    std::abort();
  }

  void take(ptr& other) noexcept {
    const std::uint64_t value = other.word_.load(std::memory_order_relaxed);
    if (value == 0) return;
    if (detail::is_managed(value)) return detail::the_runtime()->move(&other.word_, &word_);
    word_.store(value, std::memory_order_relaxed);
    other.word_.store(0, std::memory_order_relaxed);
  }

  __attribute__((noinline)) T* reach(std::uint32_t flags) const {
    const detail::runtime* rt = detail::the_runtime();
    int error = 0;
    for (;;) {
      if (void* object = rt->reach(&word_, flags, &error)) return static_cast<T*>(object);
      if (error == ENOMEM) throw std::bad_alloc();
      if (detail::throws_when_lost.load(std::memory_order_relaxed)) throw object_lost(error);
      rt->lost(&word_, error);  // a handler that returns has it tried again, as with a page
    }
  }

  __attribute__((noinline)) const T* reach_at_once() const {
    const detail::runtime* rt = detail::the_runtime();
    detail::arrival what;
    what.where = &word_;
    if (!rt->pin_now(&what)) return nullptr;
    if (what.object == nullptr) return reach(0);  // tells the error
    rt->unpin(what.object);                       // the scope holds it
    return static_cast<const T*>(what.object);
  }

  // What is lost has no destructor to run: the pointers in it are lost with it.
  void destroy() noexcept {
    scope held;
    const std::uint64_t value = word_.load(std::memory_order_acquire);
    int error = 0;
    void* object = (value & detail::kFlags) == 0 ? reinterpret_cast<void*>(value)
                                                 : detail::the_runtime()->reach(&word_, detail::kReachWrite, &error);
    if (object != nullptr) static_cast<T*>(object)->~T();
  }

  mutable detail::word word_{0};
};

static_assert(sizeof(ptr<int>) == 8);

template <auto... Members>
struct pointers {
  static constexpr bool named = true;
  template <typename T>
  static void each(T& object, auto&& visit) {
    (visit((object.*Members).far_word()), ...);
  }
};

// A new object. `use::nontemporal`: it is among the first to leave. Throws std::bad_alloc, and what its constructor
// throws. Blocks where local memory has to be made first.
template <typename T, typename... Arguments>
ptr<T> make_as(use how, Arguments&&... arguments) {
  static_assert(holds<T>::named,
                "a far object moves as bytes: make the type trivially copyable, or name the far pointers in it with "
                "template <> struct hl::far::holds<T> : hl::far::pointers<&T::member> {};");
  constexpr std::size_t alignment = ptr<T>::alignment();
  static_assert(alignment <= 4096, "an alignment of more than a page");
  ptr<T> made;
  const detail::runtime* rt = detail::the_runtime();
  if (!detail::is_served(rt) || (rt->size == 0 && (rt->begin == nullptr || rt->begin(nullptr) != 0))) {
    void* room = ::operator new(sizeof(T), std::align_val_t{alignment});
    struct Undo {
      void* room;
      ~Undo() {
        if (room != nullptr) ::operator delete(room, std::align_val_t{alignment});
      }
    } undo{room};
    new (room) T(std::forward<Arguments>(arguments)...);
    undo.room = nullptr;
    made.word_.store(reinterpret_cast<std::uint64_t>(room), std::memory_order_release);
    return made;
  }
  scope held;
  void* room = rt->begin_object(sizeof(T), alignment, detail::type_of<T>(),
                                how == use::nontemporal ? detail::kMakeNontemporal : 0u);
  if (room == nullptr) throw std::bad_alloc();
  struct Undo {
    const detail::runtime* rt;
    void* room;
    ~Undo() {
      if (room != nullptr) rt->drop_object(room);
    }
  } undo{rt, room};
  new (room) T(std::forward<Arguments>(arguments)...);
  undo.room = nullptr;
  rt->finish_object(room, &made.word_);
  return made;
}
template <typename T, typename... Arguments>
ptr<T> make(Arguments&&... arguments) {
  return make_as<T>(use::temporal, std::forward<Arguments>(arguments)...);
}

namespace detail {

// Objects that are brought together: the waits for the device are one. What cannot be had is left to who dereferences
// it. In a scope or without; a fiber parks meanwhile.
class look_ahead {
 public:
  explicit look_ahead(use how) : how_(how) {}
  ~look_ahead() { bring(); }
  look_ahead(const look_ahead&) = delete;
  look_ahead& operator=(const look_ahead&) = delete;

  void add(word* w) {
    if ((w->load(std::memory_order_relaxed) & kAway) == 0) return;
    words_[count_++] = w;
    if (count_ == batch) bring();
  }
  void bring() {
    if (count_ == 0) return;
    scope held;
    the_runtime()->reach_many(words_, std::exchange(count_, 0), static_cast<std::uint32_t>(how_));
  }

 private:
  static constexpr std::size_t batch = 64;
  use how_;
  std::size_t count_ = 0;
  word* words_[batch];
};

}  // namespace detail

// Brings the objects of `count` pointers, all together: the waits for the device are one. For what will be used soon;
// what cannot be had is left to who dereferences it. nullptrs are passed over. A fiber parks meanwhile, as in
// deref().
template <typename T>
void prefetch(const ptr<T>* pointers, std::size_t count, use how = use::temporal) {
  if (detail::the_runtime()->size == 0) return;
  detail::look_ahead all(how);
  for (std::size_t i = 0; i < count; ++i) all.add(pointers[i].far_word());
}

// What is lost is told by an exception (object_lost) instead of SIGBUS. For all threads.
inline void throw_when_lost(bool wanted) noexcept {
  detail::throws_when_lost.store(wanted, std::memory_order_relaxed);
}

// For a program that links libhinterland.so and is not run by `hinterland run`: the heap of far objects, as these
// say.
struct heap_options {
  std::size_t local_bytes = 0;       // local memory for objects, at least 8 MiB
  const char* device_url = "zmem:";  // where far objects are, as `hinterland run --far` has it
  unsigned evacuators = 1;           // threads that make room, at most 8
};
// Before the first object: those that exist stay as they are. Throws std::system_error (EBUSY: the heap is there
// already; ENOTSUP: the library is older than this header). Without the library: nothing happens, all objects are
// local; returns false.
inline bool start(const heap_options& options) {
  const detail::runtime* rt = detail::the_runtime();
  if (rt->begin == nullptr) return false;
  if (!detail::is_served(rt))
    throw std::system_error(ENOTSUP, std::generic_category(),
                            "no heap of far objects: the library is older than the header that the program was "
                            "compiled with; run it with one as new as that");
  const detail::heap_settings settings{sizeof(detail::heap_settings), options.evacuators, options.local_bytes,
                                       options.device_url};
  if (int error = rt->begin(&settings); error != 0)
    throw std::system_error(error, std::generic_category(), std::string("no heap of far objects: ") + rt->error());
  return true;
}

}  // namespace hl::far
