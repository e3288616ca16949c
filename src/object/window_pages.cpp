// Pages of the object window: brought home for who touches them without a guard, and sent apart again when there are
// too many.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "object/block_profile.hpp"
#include "object/window.hpp"

namespace hinterland::object {
namespace {

// Pages at home are the exception: what a program uses without guards all the time had better not be in the window.
constexpr std::uint64_t kHomeShare = 8;  // of the memory for objects
constexpr std::size_t kHomePagesMin = 64;

// The keeper's, while it copies objects (hl::far::scope is a program's).
class KeepersScope {
 public:
  explicit KeepersScope(Grace::Slot& slot) : active_(slot.active[slot.phase.load(std::memory_order_relaxed) & 1]) {
    active_.store(active_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // release: pairs with Grace::wait()
  ~KeepersScope() { active_.store(active_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }
  KeepersScope(const KeepersScope&) = delete;
  KeepersScope& operator=(const KeepersScope&) = delete;

 private:
  std::atomic<std::uint32_t>& active_;
};

[[noreturn]] void cannot_go_on(const char* what) {
  log::error("%s; the program cannot go on", what);
  std::abort();
}

}  // namespace

void* Window::holder_main(void* self) {
  static_cast<Window*>(self)->range_->keep_descriptor();
  return nullptr;
}

void* Window::keeper_main(void* self) {
  auto& window = *static_cast<Window*>(self);
  InsideRuntime inside;
  window.keep();
  window.ended_.store(1, std::memory_order_release);
  futex_wake(&window.ended_, INT32_MAX);
  return nullptr;
}

void Window::keep() {
  slot_ = heap_.grace().enter();
  if (slot_ == nullptr) cannot_go_on("the machine has no memory for the object window");
  while (const std::uintptr_t page = range_->wait()) {
    // No Grace::Call: a fork that has begun waits for threads that may wait for this page. It takes the lock later.
    LockGuard guard(keeping_);
    serve(page);
  }
  heap_.grace().leave(slot_);
}

void Window::serve(std::uintptr_t page) {
  int error;
  {
    LockGuard guard(lock_of(page));
    error = bring_home_locked(page);
  }
  if (error != 0 && error != EEXIST) cannot_go_on("a page of the object window cannot be brought home");
  while (order_.size() > pages_home_max()) {
    if (!send_apart(order_.front())) break;
    order_.pop_front();
  }
}

std::size_t Window::pages_home_max() const {
  return std::max<std::size_t>(kHomePagesMin, heap_.memory_limit() / kHomeShare / kPageSize);
}

template <typename Each>
void Window::each_slot(std::uintptr_t page, const Each& each) {
  const std::uintptr_t step = std::uintptr_t{1} << (page >> kPartShift);
  for (std::uintptr_t address = page; address < page + kPageSize; address += step) each(address);
}

// --- home
// ------------------------------------------------------------------------------------------------------------

int Window::bring_home_locked(std::uintptr_t page) {
  std::atomic<std::uint8_t>& home = home_of(page);
  if (home.load(std::memory_order_relaxed) != 0) {  // another thread's message was the first
    range_->wake(page);
    return 0;
  }
  // The objects become those of words that no guard knows. Guards that know where they were have ended after this.
  std::size_t i = 0;
  each_slot(page, [&](std::uintptr_t address) { heap_.move(word_of(address), &moved_[i++]); });
  Grace::restart_guards();
  if (!collect_locked(page)) return 0;
  if (const int error = range_->bring(page, bytes_.data()); error != 0) return error;
  // release: pairs with the load of a guard: the page is there.
  each_slot(page, [](std::uintptr_t address) { word_of(address)->store(address, std::memory_order_release); });
  home.store(1, std::memory_order_relaxed);
  order_.push_back(page);
  heap_.charge_page();
  pages_home_.fetch_add(1, std::memory_order_relaxed);
  brought_home_.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

// The objects' bytes, and their end. False: one of them is lost.
bool Window::collect_locked(std::uintptr_t page) {
  const std::uintptr_t step = std::uintptr_t{1} << (page >> kPartShift);
  bytes_.fill(std::byte{0});
  for (std::size_t i = 0; i < kPageSize / step; ++i) {
    const std::size_t bytes = size_of(reinterpret_cast<const void*>(page + i * step));
    if (bytes == 0) continue;
    if (block_profile().counts() && is_kind(moved_[i].load(std::memory_order_relaxed), kFar))
      block_profile().brought(bytes, page);
    KeepersScope scope(*slot_);
    int error = 0;
    const void* object = heap_.reach(&moved_[i], 0, &error);
    if (object == nullptr) {
      lose_locked(page, error);
      return false;
    }
    std::memcpy(bytes_.data() + i * step, object, bytes);
  }
  for (std::size_t i = 0; i < kPageSize / step; ++i) heap_.release(&moved_[i]);
  return true;
}

// The others are as they were; who touches the page has SIGBUS, also through a guard of one that is lost.
void Window::lose_locked(std::uintptr_t page, int error) {
  log::error("a far object in the page at %p is lost: %s answers: %s", reinterpret_cast<void*>(page),
             heap_.far().device().info().url.c_str(), strerrordesc_np(error));
  std::size_t i = 0;
  each_slot(page, [&](std::uintptr_t address) { heap_.move(&moved_[i++], word_of(address)); });
  if (range_->poison(page) != 0) cannot_go_on("this kernel cannot make its page raise SIGBUS (Linux 6.6 can)");
}

// --- apart
// -----------------------------------------------------------------------------------------------------------

bool Window::send_apart(std::uintptr_t page) {
  LockGuard guard(lock_of(page));
  return send_apart_locked(page);
}

bool Window::send_apart_locked(std::uintptr_t page) {
  each_slot(page, [](std::uintptr_t address) { word_of(address)->store(0, std::memory_order_relaxed); });
  Grace::restart_guards();
  // From here on nobody writes to the frame: who touches the page waits for the lock that we hold.
  const std::byte* frame = range_->take(page);
  if (frame == nullptr) {
    each_slot(page, [](std::uintptr_t address) { word_of(address)->store(address, std::memory_order_release); });
    return false;
  }
  home_of(page).store(0, std::memory_order_relaxed);
  heap_.uncharge_page();
  pages_home_.fetch_sub(1, std::memory_order_relaxed);
  each_slot(page, [&](std::uintptr_t address) {
    const std::size_t bytes = size_of(reinterpret_cast<const void*>(address));
    if (bytes == 0) return;
    void* object = heap_.begin_object(bytes, kUnit * 2, nullptr, false);
    if (object == nullptr) cannot_go_on("the machine has no memory for an object");
    std::memcpy(object, frame + (address - page), bytes);
    heap_.finish_object(object, word_of(address));
  });
  return true;
}

// --- fork
// ------------------------------------------------------------------------------------------------------------

void Window::before_fork() {
  // No other thread is within a call; so all other locks are free, and stay so.
  keeping_.lock();
  while (!order_.empty()) {
    if (!send_apart(order_.front())) cannot_go_on("the machine has no memory for a page of the object window");
    order_.pop_front();
  }
}

void Window::after_fork_in_parent() { keeping_.unlock(); }

void Window::after_fork_in_child() {
  keeping_.reset_after_fork();
  for (Mutex& lock : locks_) lock.reset_after_fork();
  ended_.store(1, std::memory_order_relaxed);
  Status status = range_->after_fork_in_child();
  for (unsigned shift = kShiftMin; status && shift <= kShiftMax; ++shift) {
    Part& part = parts_[shift - kShiftMin];
    part.mutex.reset_after_fork();
    if (part.opened_bytes == 0) continue;
    if (const int error = range_->open(std::uintptr_t{shift} << kPartShift, part.opened_bytes); error != 0)
      status = std::unexpected(Error::make(error, "the object window cannot be opened"));
  }
  if (status) status = begin();
  if (!status)
    log::warning("in a forked child, code that was compiled without guards cannot use the heap of code that was: %s",
                 status.error().what());
}

}  // namespace hinterland::object
