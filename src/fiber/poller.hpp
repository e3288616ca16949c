// Readiness of sockets, by epoll: each descriptor is registered once, edge-triggered, and remembers an edge that
// nobody waited for. (As the poller of Go's runtime.)
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/error.hpp"
#include "fiber/waiter.hpp"

namespace hinterland::fiber {

class Poller {
 public:
  // One direction of a descriptor.
  class Edge {
   public:
    // The fiber, after the kernel said EAGAIN. Returns when it is worth to ask again.
    void wait();
    void came();  // ready, or nobody knows
    void forget() { state_.store(kNothing); }

   private:
    static constexpr std::uintptr_t kNothing = 0, kReady = 1;  // or the one that waits
    std::atomic<std::uintptr_t> state_{kNothing};
  };
  // Is never freed before the poller is: an event may be on its way. Used again, it may see a false edge, no harm.
  struct Descriptor {
    Edge readable, writable;
    Descriptor* next_free = nullptr;
  };

  static Result<std::shared_ptr<Poller>> create();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // 0 or an errno. `descriptor` is registered until remove(), which comes before it is closed.
  int add(int descriptor, Descriptor** out);
  void remove(int descriptor, Descriptor* registered);

  // The next poll() returns when this descriptor is readable, once. Any thread.
  void watch_once(int descriptor);
  // Wakes who waits for what has come. Sleeps at most so long when nothing has (0: not at all). Any thread.
  bool poll(std::uint64_t timeout_ns);
  void interrupt();  // a poll() that sleeps returns
  bool has_any() const { return registered_.load(std::memory_order_relaxed) != 0; }

 private:
  Poller(int epoll, int event) : epoll_(epoll), event_(event) {}

  const int epoll_, event_;
  std::atomic<std::uint32_t> registered_{0};
  hl::fibers::detail::spin_lock guard_;  // of what follows
  std::deque<Descriptor> descriptors_;
  Descriptor watched_;  // nobody waits for it
  Descriptor* free_ = nullptr;
};

}  // namespace hinterland::fiber
