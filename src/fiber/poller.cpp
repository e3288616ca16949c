#include "fiber/poller.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

namespace hinterland::fiber {

void Poller::Edge::wait() {
  Waiter self;
  std::uintptr_t seen = kNothing;
  if (state_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(&self)))
    self.wait();
  else
    state_.store(kNothing);  // the edge came between the system call and here
}

void Poller::Edge::came() {
  std::uintptr_t seen = state_.load();
  for (;;) {
    bool waits = seen != kNothing && seen != kReady;
    if (!state_.compare_exchange_weak(seen, waits ? kNothing : kReady)) continue;
    if (!waits) return;
    auto* waiter = reinterpret_cast<Waiter*>(seen);
    if (waiter->claim()) waiter->wake();
    return;
  }
}

Result<std::shared_ptr<Poller>> Poller::create() {
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return std::unexpected(Error::make(errno, "cannot create an epoll set for fibers"));
  int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event wanted{EPOLLIN | EPOLLET, {.ptr = nullptr}};
  if (event < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted) != 0) {
    int error = errno;
    close(epoll);
    if (event >= 0) close(event);
    return std::unexpected(Error::make(error, "cannot create an event descriptor for fibers"));
  }
  return std::shared_ptr<Poller>(new Poller(epoll, event));
}

Poller::~Poller() {
  close(event_);
  close(epoll_);
}

int Poller::add(int descriptor, Descriptor** out) {
  Descriptor* entry = nullptr;
  {
    std::lock_guard lock(guard_);
    if (free_ == nullptr) free_ = &descriptors_.emplace_back();
    entry = free_;
    free_ = std::exchange(entry->next_free, nullptr);
  }
  entry->readable.forget();
  entry->writable.forget();
  epoll_event wanted{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = entry}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &wanted) != 0) {
    int error = errno;
    std::lock_guard lock(guard_);
    entry->next_free = std::exchange(free_, entry);
    return error;
  }
  registered_.fetch_add(1, std::memory_order_relaxed);
  *out = entry;
  return 0;
}

void Poller::remove(int descriptor, Descriptor* registered) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  registered_.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard lock(guard_);
  registered->next_free = std::exchange(free_, registered);
}

void Poller::watch_once(int descriptor) {
  epoll_event wanted{EPOLLIN | EPOLLONESHOT, {.ptr = &watched_}};
  // In the set from the last time, unless that one has been closed.
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &wanted) != 0)
    epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &wanted);
}

bool Poller::poll(std::uint64_t timeout_ns) {
  std::array<epoll_event, 64> events;
  timespec limit{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
  int count = epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()),
                           timeout_ns == kNever ? nullptr : &limit, nullptr);
  if (count < 0 && errno == ENOSYS)  // before Linux 5.11
    count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                       timeout_ns == kNever ? -1 : static_cast<int>((timeout_ns + 999'999) / 1'000'000));
  for (int i = 0; i < count; ++i) {
    auto& event = events[static_cast<std::size_t>(i)];
    auto* entry = static_cast<Descriptor*>(event.data.ptr);
    if (entry == nullptr) {
      std::uint64_t ignored;
      if (read(event_, &ignored, sizeof ignored) < 0) continue;  // another worker has read it
      continue;
    }
    bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    if (broken || (event.events & (EPOLLIN | EPOLLRDHUP)) != 0) entry->readable.came();
    if (broken || (event.events & EPOLLOUT) != 0) entry->writable.came();
  }
  return count > 0;
}

void Poller::interrupt() {
  std::uint64_t one = 1;
  if (write(event_, &one, sizeof one) < 0) return;  // full: it is readable anyway
}

}  // namespace hinterland::fiber
