#include "paging/serve/signal_faults.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "paging/page/page_wait.hpp"
#include "paging/serve/hints.hpp"

namespace hinterland {
namespace {

void nap_for(long ns) {
  timespec time{0, ns};
  nanosleep(&time, nullptr);
}

}  // namespace

FaultOutcome SignalFaults::serve(std::uintptr_t address, bool write, bool write_protect) {
  // Paging is about to begin: this region is registered, but not all pages are listed.
  while (!core_.managed.load(std::memory_order_acquire)) nap_for(50'000);
  PageIndex page = core_.window.index_of(address);
  core_.pages.note_used(page);
  PageWord word = core_.pages[page].load();
  FaultMessage message{page_floor(address), static_cast<std::uint32_t>(syscall(SYS_gettid)), write, write_protect};
  // One for the whole fault: it may be let go meanwhile.
  FaultObserver* observer = core_.observer.load(std::memory_order_acquire);  // pairs with who sets it
  if (word.busy()) {
    if (observer != nullptr)
      observer->fault(message.address, message.thread_id, write || write_protect, FaultKind::waited, false);
    core_.page_is_waited_for();
    wait_until_free(page);
    if (observer != nullptr) observer->served(message.address, message.thread_id);
    return FaultOutcome::served;
  }
  FaultHandler& lane = take_lane();
  lane.serve_here(message);
  lane.leave();
  if (observer != nullptr) observer->served(message.address, message.thread_id);
  word = core_.pages[page].load();
  if (word.busy()) return FaultOutcome::served;
  if (word.state() == PageState::lost) return FaultOutcome::lost;
  return word.state() == PageState::untouched ? FaultOutcome::foreign : FaultOutcome::served;
}

bool SignalFaults::bring(PageIndex page, bool write) {
  // More than once only where other threads give the page away meanwhile, by madvise for example.
  for (int tries = 0; tries < 16; ++tries) {
    wait_until_free(page);
    if (is_there(page, write)) return true;
    bool protect = core_.pages[page].load().state() == PageState::resident;
    if (serve(core_.address_of(page), write, protect) != FaultOutcome::served) return false;
  }
  return false;
}

bool SignalFaults::is_there(PageIndex page, bool write) const {
  PageWord word = core_.pages[page].load();
  return !word.busy() && word.state() == PageState::resident && (!write || word.dirty());
}

// Threads keep to their lanes where they can: the thread's block lies on pages of its own.
FaultHandler& SignalFaults::take_lane() {
  unsigned lanes = lanes_.lanes();
  auto own = static_cast<unsigned>((reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) >> kPageShift) *
                                   0x9E3779B1u % lanes);
  for (unsigned i = 0; i < lanes; ++i) {
    FaultHandler& lane = lanes_.lane((own + i) % lanes);
    if (lane.try_enter()) return lane;
  }
  lanes_.lane(own).enter();
  return lanes_.lane(own);
}

void SignalFaults::wait_until_free(PageIndex page) {
  for (PageWait wait; core_.pages[page].load().busy();)
    if (wait.spins() || core_.unawaited == nullptr || !core_.unawaited->poll()) wait.again();
}

}  // namespace hinterland
