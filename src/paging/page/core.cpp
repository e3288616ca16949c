#include "paging/page/core.hpp"

#include <cerrno>

#include "base/log.hpp"
#include "paging/page/page_wait.hpp"
#include "paging/page/undisturbed.hpp"

namespace hinterland {

PageWord Core::lock_waiting(PageIndex page) {
  pages.note_used(page);
  PageWord seen;
  PageWait wait;
  for (; wait.spins(); wait.again())
    if (pages[page].try_lock(&seen)) return seen;
  // malloc comes here without more ado: sleeping would be a cancellation point, and a handler that interrupts poll()
  // could wait for what it has in its hands.
  Undisturbed undisturbed;
  while (!pages[page].try_lock(&seen))
    if (unawaited == nullptr || !unawaited->poll()) wait.again();
  return seen;
}

void Core::page_is_waited_for() {
  if (unawaited != nullptr) unawaited->wake_gatherer();
}

void Core::report_loss(std::uint32_t device) {
  LockGuard guard(loss_mutex);
  if ((losses_reported >> device & 1) != 0) return;
  losses_reported |= 1u << device;
  set_gauge(Gauge::device_lost, 1);
  std::uint64_t lost = 0;
  pages.for_all_used([&](PageIndex, PageCell& cell) {
    PageWord word = cell.load();
    bool away = word.state() == PageState::far || word.state() == PageState::arriving;
    if (away && word.far_page().device() == device) ++lost;
  });
  log::error("%s", Error::make(devices.lost(device),
                               "the far device %s is gone: %llu pages (%llu MiB) of this program are lost; touching "
                               "one of them raises SIGBUS",
                               devices.info(device).url.c_str(), static_cast<unsigned long long>(lost),
                               static_cast<unsigned long long>(bytes_of_pages(lost) / kMiB))
                       .what());
}

}  // namespace hinterland
