// What it takes to bring pages in, for faults, by message or by signal, and for hints alike: which neighbours come
// along, how each will be mapped, and room for all of them.
#pragma once

#include <cstdint>

#include "paging/in/fetcher.hpp"
#include "paging/out/evictor.hpp"
#include "paging/page/core.hpp"

namespace hinterland {

// Has no state of its own: any number of threads, each for pages that it locks. Nothing waits but make_room().
class Bringer {
 public:
  explicit Bringer(Core& core) : core_(core) {}

  std::uint32_t run_max() const { return core_.budget.run_max(Fetcher::kRunMax); }

  // Whether the page that is asked for will be written, as far as anybody can tell. Now and then it says no, to see
  // what becomes of the page (WriteForecast).
  bool expects_write(PageIndex page, PageWord word) {
    return word.often_written() || core_.forecast.expects_write(page);
  }

  // Without waiting: locks a page that is in this state (Transitions::try_lock()). A far page is Arriving from then
  // on, to be mapped writable if it is `written`, or if its neighbourhood suggests it.
  bool begin(PageIndex page, PageState state, bool written = false);
  // Likewise the neighbours of a page, which is begun, as far as `wanted` goes; at most so many pages with it.
  PageRun begin_around(PageIndex page, PageRun wanted, std::uint32_t most, PageState state);
  // Of a run that is long enough, now and then: this page of it is to show what becomes of it.
  void sample(PageRun run, PageIndex page) {
    if (core_.forecast.samples(run)) core_.transitions.expect_no_write(page);
  }

  // Direct reclaim, the last resort: the background fell behind. Where nothing can be taken (all pinned, or the
  // device refuses) the budget is exceeded, rather than that a program hangs. May wait for the device.
  void make_room(std::uint32_t pages, Evictor& direct);
  // A batch for each call, so that the next faults find room, too.
  static constexpr std::size_t pages_to_reclaim(std::uint32_t pages) { return pages < 32 ? 32 : pages; }

 private:
  Core& core_;
};

}  // namespace hinterland
