#include "paging/core.hpp"

#include <cerrno>
#include <ctime>

#include "base/log.hpp"
#include "paging/hints.hpp"
#include "paging/undisturbed.hpp"

namespace hinterland {

PageWord Core::lock_waiting(PageIndex page) {
  pages.note_used(page);
  PageWord seen;
  for (unsigned tries = 0; tries < 200; ++tries) {
    if (pages[page].try_lock(&seen)) return seen;
    __builtin_ia32_pause();
  }
  // malloc comes here without more ado: sleeping would be a cancellation point, and a handler that interrupts poll()
  // could wait for what it has in its hands.
  Undisturbed undisturbed;
  for (unsigned tries = 0; !pages[page].try_lock(&seen); ++tries) {
    if (hints != nullptr && hints->poll()) continue;
    // A mover keeps a page for microseconds, or for one request of a slow device.
    timespec nap{0, tries < 800 ? 20'000 : 500'000};
    nanosleep(&nap, nullptr);
  }
  return seen;
}

void Core::page_is_waited_for() {
  if (hints != nullptr) hints->wake_gatherer();
}

void Core::report_loss() {
  LockGuard guard(loss_mutex);
  if (loss_reported) return;
  loss_reported = true;
  set_gauge(Gauge::device_lost, 1);
  std::uint64_t lost = 0;
  pages.for_each_used({0}, window.pages(), [&](PageIndex, PageCell& cell) {
    PageState state = cell.load().state();
    if (state == PageState::far || state == PageState::arriving) ++lost;
  });
  log::error("%s", Error::make(device->lost(),
                               "the far device %s is gone: %llu pages (%llu MiB) of this program are lost; touching "
                               "one of them raises SIGBUS",
                               device->info().url.c_str(), static_cast<unsigned long long>(lost),
                               static_cast<unsigned long long>(bytes_of_pages(lost) / kMiB))
                       .what());
}

bool Core::give_back(PageIndex page, std::uint32_t frame) {
  Frame& held = frames[frame];
  if (take_by_move &&
      kernel.move(address_of(page), frames.address_of(frame), kPageSize) == static_cast<std::int64_t>(kPageSize)) {
    held.state.store(FrameState::empty, std::memory_order_release);  // pairs with the look in expire()
    return false;
  }
  // No MOVE, or the frame is shared since a fork: a copy does as well.
  for (;;) {
    std::int64_t done = kernel.copy(address_of(page), frames.memory_of(frame), kPageSize, false);
    if (done == static_cast<std::int64_t>(kPageSize) || done == -EEXIST || done == -ENOENT) {
      budget.add(1);
      held.state.store(FrameState::dropped, std::memory_order_release);
      return true;
    }
    timespec nap{0, 1'000'000};  // the kernel is out of memory: reclaim elsewhere may help
    nanosleep(&nap, nullptr);
  }
}

}  // namespace hinterland
