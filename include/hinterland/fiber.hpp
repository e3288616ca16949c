// Fibers: threads of the program's own, thousands of them on a few of the kernel's. A fiber that waits, for another
// fiber, for a socket, for far memory that a hint asked for, costs its stack; its CPU goes on with another.
// (Eden 3.2; docs/fibers.md. Link with -lhinterland-fiber; C++20.)
//
//     hl::fibers::run([] {                                    // fibers live inside run()
//       hl::fibers::fiber other([] { work(); }, {.name = "other"});
//       other.join();                                         // throws what `other` threw
//     });
//
// Scheduling is cooperative: a fiber runs until it waits, yields or ends, and may go on upon another thread then. So
// hold no std::mutex and keep no address of a thread_local, errno's included, over a call that may wait; those say
// so. What is declared here may be used from ordinary threads as well, which block, except where it says otherwise.
//
// A dereference of a far object is such a call; the fiber's scopes go with it.
//
// Without Hinterland's runtime everything works the same, and hints do nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#define HL_FIBER_API __attribute__((visibility("default")))

namespace hl::fibers {

using clock = std::chrono::steady_clock;

struct run_options {
  unsigned workers = 0;  // threads that run fibers, the caller's among them; 0: one for each CPU that it may use
  // Of fibers that do not say. Only what is touched takes memory. Stacks are never far.
  std::size_t stack_bytes = std::size_t{64} << 10;
  std::chrono::microseconds spin{50};  // an idle worker looks for work so long before it sleeps
  // A hint that has to wait parks its fiber, and so does a miss of a far object (hinterland/object.hpp). If not, it
  // blocks the thread, as in an ordinary one: to compare with (Eden's "blocking hints"). It needs its stack, 32 KiB,
  // on the fiber's then.
  bool hints_park = true;
};

struct fiber_options {
  const char* name = nullptr;   // for debuggers and messages; the first 31 characters are kept
  std::size_t stack_bytes = 0;  // 0: as run_options says. At least 16 KiB; rounded up to a power of two
};

namespace detail {

struct control;  // a fiber, as the library sees it
struct waiter;

// Held for some instructions, never over a wait.
class HL_FIBER_API spin_lock {
 public:
  void lock() noexcept {
    if (held_.exchange(true, std::memory_order_acquire)) lock_slow();
  }
  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }  // pairs with the exchanges

 private:
  void lock_slow() noexcept;
  std::atomic<bool> held_{false};
};

// Who waits, first come, first served.
struct wait_list {
  waiter* first = nullptr;
  waiter* last = nullptr;
};

// What a new fiber runs: lies on the fiber's own stack.
struct body {
  std::size_t size;
  std::size_t alignment;
  void (*move_to)(void* place, void* from);  // moves the callable to the new stack
  void (*call_and_destroy)(void* callable);
};
HL_FIBER_API control* spawn(const fiber_options& options, const body& what, void* from);
HL_FIBER_API void join(control* fiber);
HL_FIBER_API void detach(control* fiber) noexcept;
HL_FIBER_API void run(const run_options& options, void (*main)(void*), void* argument);
HL_FIBER_API unsigned workers() noexcept;

}  // namespace detail

// A fiber, owned as std::thread owns a thread: join it or detach it before its owner ends, or the program does.
class fiber {
 public:
  fiber() noexcept = default;
  // Starts `callable()`. From a fiber, of the same run(). Throws std::system_error when there is no memory for a
  // stack, and when called outside of fibers; std::length_error where the callable would fill a quarter of the stack.
  template <std::invocable Callable>
  explicit fiber(Callable&& callable, const fiber_options& options = {}) {
    using Kept = std::decay_t<Callable>;
    Kept kept(std::forward<Callable>(callable));
    static constexpr detail::body what{
        sizeof(Kept), alignof(Kept),
        [](void* place, void* from) { new (place) Kept(std::move(*static_cast<Kept*>(from))); },
        [](void* place) {
          struct Destroy {  // also when it throws
            Kept* callable;
            ~Destroy() { callable->~Kept(); }
          } destroy{static_cast<Kept*>(place)};
          (*destroy.callable)();
        }};
    control_ = detail::spawn(options, what, &kept);
  }
  fiber(fiber&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  fiber& operator=(fiber&& other) noexcept {
    if (joinable()) std::terminate();
    control_ = std::exchange(other.control_, nullptr);
    return *this;
  }
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;
  ~fiber() {
    if (joinable()) std::terminate();
  }

  bool joinable() const noexcept { return control_ != nullptr; }
  // Waits for its end, and throws what it threw. Once; not from itself.
  void join() { detail::join(std::exchange(control_, nullptr)); }
  // It goes on alone, and run() waits for it. An exception that leaves a detached fiber ends the program with a
  // message.
  void detach() noexcept { detail::detach(std::exchange(control_, nullptr)); }

 private:
  detail::control* control_ = nullptr;
};

// Runs `main` as a fiber, and returns when it and all fibers that came of it have ended; throws what `main` threw.
// Not from within a fiber. Several threads may each have a run() of their own. After fork, a child that does not exec
// has lost the other workers and must not go on with fibers.
template <std::invocable Main>
void run(const run_options& options, Main&& main) {
  detail::run(
      options, [](void* callable) { (*static_cast<std::remove_reference_t<Main>*>(callable))(); },
      const_cast<void*>(static_cast<const volatile void*>(std::addressof(main))));
}
template <std::invocable Main>
void run(Main&& main) {
  run(run_options{}, std::forward<Main>(main));
}

// The caller. In an ordinary thread: the thread.
namespace this_fiber {
HL_FIBER_API void yield() noexcept;  // others that are ready run first
HL_FIBER_API void sleep_until(clock::time_point when) noexcept;
inline void sleep_for(clock::duration time) noexcept { sleep_until(clock::now() + time); }
HL_FIBER_API const char* name() noexcept;  // "" where it has none, and in an ordinary thread
HL_FIBER_API std::uint64_t id() noexcept;  // counted from 1 in each run(); 0: this is an ordinary thread
}  // namespace this_fiber

// While one of these lives in a fiber, its accesses to far memory without a hint park it as hints do, where faults
// are served by signal (--fault signal) over a device that takes its time; elsewhere this does nothing. By making
// one, the program declares that inside
// - its own code, where it touches memory that may be far, is in the midst of nothing that belongs to the thread: it
//   holds no std::mutex, is in no signal handler, and uses no thread_local, for the fiber may go on in another thread
//   then, and compilers keep such addresses;
// - it needs no AMX tiles, and does not change the thread's protection keys or signal mask.
// Only instructions of the program or library that makes it count, with what is linked into it statically: a fault
// within libc (memcpy) or within another library blocks the thread as ever. errno is kept. They nest, and end where
// they began: in the fiber.
class HL_FIBER_API faults_may_park {
 public:
  faults_may_park() noexcept;
  ~faults_may_park();
  faults_may_park(const faults_may_park&) = delete;
  faults_may_park& operator=(const faults_may_park&) = delete;

 private:
  detail::control* fiber_;
  std::uintptr_t outer_low_ = 0, outer_high_ = 0;
};

// As std::mutex. Whoever waits longest gets it next. lock() may wait.
class HL_FIBER_API mutex {
 public:
  mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  void lock() noexcept {
    if (!try_lock()) lock_slow();
  }
  bool try_lock() noexcept {
    std::uint32_t free = 0;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    std::uint32_t held = kHeld;  // release: pairs with the acquire of the next holder
    if (!state_.compare_exchange_strong(held, 0, std::memory_order_release, std::memory_order_relaxed)) unlock_slow();
  }

 private:
  static constexpr std::uint32_t kHeld = 1, kWaitedFor = 2;
  void lock_slow() noexcept;
  void unlock_slow() noexcept;
  std::atomic<std::uint32_t> state_{0};
  detail::spin_lock guard_;  // of the list
  detail::wait_list waiters_;
};

// As std::condition_variable.
class HL_FIBER_API condition_variable {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  void wait(std::unique_lock<mutex>& lock) noexcept { wait_until_time(lock, clock::time_point::max()); }
  // False when the time had come first.
  bool wait_until(std::unique_lock<mutex>& lock, clock::time_point when) noexcept {
    return wait_until_time(lock, when);
  }
  bool wait_for(std::unique_lock<mutex>& lock, clock::duration time) noexcept {
    return wait_until_time(lock, clock::now() + time);
  }
  template <std::predicate Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate until) {
    while (!until()) wait(lock);
  }
  template <std::predicate Predicate>
  bool wait_until(std::unique_lock<mutex>& lock, clock::time_point when, Predicate until) {
    while (!until())
      if (!wait_until_time(lock, when)) return until();
    return true;
  }
  void notify_one() noexcept;
  void notify_all() noexcept;

 private:
  bool wait_until_time(std::unique_lock<mutex>& lock, clock::time_point when) noexcept;
  detail::spin_lock guard_;  // of the list
  detail::wait_list waiters_;
};

// As std::counting_semaphore. First come, first served.
class HL_FIBER_API semaphore {
 public:
  explicit semaphore(std::ptrdiff_t count) noexcept : count_(count) {}
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;
  void acquire() noexcept;  // may wait
  bool try_acquire() noexcept;
  bool try_acquire_until(clock::time_point when) noexcept;  // may wait
  void release(std::ptrdiff_t count = 1) noexcept;

 private:
  bool acquire_before(clock::time_point when) noexcept;
  detail::spin_lock guard_;  // of both
  std::ptrdiff_t count_;
  detail::wait_list waiters_;
};

// A queue between fibers that holds at most `capacity` values (at least one), many senders, many receivers.
template <typename T>
class channel {
 public:
  explicit channel(std::size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}
  // Waits for room. False, and nothing is sent, when the channel is closed.
  bool send(T value) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || values_.size() < capacity_; });
    if (closed_) return false;
    values_.push_back(std::move(value));
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }
  // Waits for a value; none when the channel is closed and empty.
  std::optional<T> receive() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return value;
  }
  // What was sent can still be received.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_full_.notify_all();
    not_empty_.notify_all();
  }

 private:
  const std::size_t capacity_;
  mutex mutex_;  // of what follows
  condition_variable not_full_, not_empty_;
  std::deque<T> values_;
  bool closed_ = false;
};

// Calls body(i) for all i of [first, last), in pieces of `grain`, on fibers of their own and on the caller, which
// must be a fiber. Returns when all are done. After an exception no new piece is begun, and the first one is thrown.
template <std::invocable<std::size_t> Body>
void parallel_for(std::size_t first, std::size_t last, Body&& body, std::size_t grain = 1) {
  if (first >= last) return;
  if (grain == 0) grain = 1;
  std::atomic<std::size_t> next{0};  // a piece's number
  const std::size_t pieces = (last - first - 1) / grain + 1;
  auto work = [&] {
    try {
      for (std::size_t piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
        std::size_t begin = first + piece * grain, end = last - begin > grain ? begin + grain : last;
        for (std::size_t i = begin; i < end; ++i) body(i);
        this_fiber::yield();
      }
    } catch (...) {
      next.store(pieces, std::memory_order_relaxed);
      throw;
    }
  };
  // More fibers than workers, so that one that waits leaves others to run.
  const std::size_t helpers = std::min<std::size_t>(pieces, std::size_t{8} * detail::workers()) - 1;
  std::deque<fiber> fibers;
  std::exception_ptr error;
  auto guarded = [&](auto&& step) {
    try {
      step();
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  };
  guarded([&] {
    for (std::size_t i = 0; i < helpers; ++i) fibers.emplace_back(work, fiber_options{.name = "parallel_for"});
  });
  guarded(work);
  for (fiber& helper : fibers) guarded([&] { helper.join(); });
  if (error != nullptr) std::rethrow_exception(error);
}

// A stream socket. Calls that cannot go on park the fiber; an ordinary thread blocks. Results as those of the system
// calls: a count, or -errno. One reader and one writer at a time; to get them out, shutdown(), and close() when they
// are gone.
class HL_FIBER_API stream_socket {
 public:
  stream_socket() noexcept = default;
  // Takes the descriptor over, and makes it non-blocking.
  explicit stream_socket(int descriptor) noexcept;
  stream_socket(stream_socket&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  stream_socket& operator=(stream_socket&& other) noexcept;
  stream_socket(const stream_socket&) = delete;
  stream_socket& operator=(const stream_socket&) = delete;
  ~stream_socket() { close(); }

  // "127.0.0.1", "::1"; port 0 takes a free one. Throws std::system_error.
  static stream_socket listen(const char* address, std::uint16_t port, int backlog = 1024);
  static stream_socket connect(const char* address, std::uint16_t port);

  bool is_open() const noexcept { return state_ != nullptr; }
  explicit operator bool() const noexcept { return is_open(); }
  int descriptor() const noexcept;                           // -1 when closed
  std::uint16_t port() const noexcept;                       // of this end; 0 when it has none
  stream_socket accept(int* error = nullptr) noexcept;       // not open when it failed; then *error is an errno
  std::ptrdiff_t read(void* to, std::size_t size) noexcept;  // 0: the other end has closed
  std::ptrdiff_t write(const void* from, std::size_t size) noexcept;
  std::ptrdiff_t write_all(const void* from, std::size_t size) noexcept;  // size, or -errno
  void shutdown() noexcept;  // who waits in accept, read or write finds the end, or an error
  void close() noexcept;

 private:
  struct state;
  state* state_ = nullptr;
};

}  // namespace hl::fibers
