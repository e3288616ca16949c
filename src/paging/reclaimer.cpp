#include "paging/reclaimer.hpp"

#include <algorithm>
#include <ctime>

#include "base/inside.hpp"

namespace hinterland {

void Reclaimer::run() {
  InsideRuntime inside;
  note_runtime_thread();
  companions_.join();
  // Doubles while nothing can be taken (everything pinned, device gone), so that a hopeless case costs no CPU.
  long pause_ns = 1'000'000;
  for (;;) {
    core_.budget.sleep_until_woken(0);
    while (!core_.budget.should_stop()) {
      // Small batches while the program faults as fast as we reclaim would cost a flush for every few pages.
      std::int64_t wanted = std::clamp<std::int64_t>(core_.budget.pages_until_stop(), 64, Evictor::kBatchMax);
      std::size_t freed = evictor_.reclaim(static_cast<std::size_t>(wanted));
      count(Counter::reclaim_background_pages, freed);
      if (freed != 0) {
        pause_ns = 1'000'000;
        continue;
      }
      timespec pause{0, pause_ns};
      nanosleep(&pause, nullptr);
      pause_ns = std::min(pause_ns * 2, 200'000'000L);
    }
  }
}

}  // namespace hinterland
