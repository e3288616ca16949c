// What a policy is told beside pages, and what it says of itself: time, mappings, figures; which of the pages that
// come it does not admit, and which of its victims are worth a frame.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "paging/page/policy_host.hpp"

namespace hinterland {

template <typename Call>
void PolicyHost::watch(Pool& pool, Call&& call) {
  if (!is_watched(pool)) return call();
  std::uint64_t started = thread_cpu_ns();
  call();
  if (thread_cpu_ns() - started > kPluginCallNsMax) take_over(pool, "took more than 200 ms of CPU time for one call");
}

void PolicyHost::tell_time(std::uint64_t now_ns) {
  LockGuard guard(mutex_);
  if (now_ns < next_tick_ns_) return;
  next_tick_ns_ = now_ns + kTickNs;
  hand_over_all();
  for (Pool& pool : pools_)
    if (pool.open && pool.ops->tick != nullptr) watch(pool, [&] { pool.ops->tick(pool.state, now_ns); });
  if (pools_[0].ops->report != nullptr) show_report(pools_[0]);
}

void PolicyHost::show_report(Pool& pool) {
  hl_policy_report report{};
  watch(pool, [&] { pool.ops->report(pool.state, &report); });
  if (report.count > HL_POLICY_FIGURES_MAX) {
    take_over(pool, "reported more figures than there is room for");
    report = {};
  }
  static_assert(PolicyReport::kFiguresMax == HL_POLICY_FIGURES_MAX);
  static_assert(offsetof(PolicyReport, count) == offsetof(hl_policy_report, count));
  static_assert(offsetof(PolicyReport, figures) == offsetof(hl_policy_report, figures));
  static_assert(offsetof(PolicyReport::Figure, value) == offsetof(hl_policy_figure, value));
  stat_page()->policy_report =
      std::bit_cast<PolicyReport>(report);  // who reads it meanwhile cuts texts off where they end
}

void PolicyHost::tell_mapped(PageRun run, MappedAs as) {
  LockGuard guard(mutex_);
  Pool& pool = pools_[pool_of(run.first)];
  hl_mapping mapping{run.first.value, run.count, as.kind, as.tag};
  if (pool.ops->mapped != nullptr) watch(pool, [&] { pool.ops->mapped(pool.state, &mapping); });
}

// Before the pages depart, or after: a policy hears of those by themselves. All are told: to find out whose the
// places are would take longer.
void PolicyHost::tell_unmapped(PageRun run) {
  LockGuard guard(mutex_);
  for (Pool& pool : pools_)
    if (pool.open && pool.ops->unmapped != nullptr)
      watch(pool, [&] { pool.ops->unmapped(pool.state, run.first.value, run.count); });
}

// Of cold pages a policy knows nothing, and says so.
void PolicyHost::ask_worth_frames(std::span<const PageIndex> victims, std::span<WorthAFrame> answers) {
  LockGuard guard(mutex_);
  for (std::size_t i = 0; i < victims.size(); ++i) {
    Pool& pool = pools_[pool_of(victims[i])];
    if (pool.ops->worth_a_frame == nullptr) continue;
    bool worth = false;
    watch(pool, [&] { worth = pool.ops->worth_a_frame(pool.state, pages_->dense_of(victims[i])) != 0; });
    answers[i] = worth ? WorthAFrame::yes : WorthAFrame::no;
  }
}

void PolicyHost::deliver_admitted(Pool& pool, hl_page first, std::uint32_t count, const Arrival& arrival) {
  for (hl_page page = first; page != first + count; ++page) {
    PageIndex index = pages_->page_of(page);
    if (is_cold(index)) continue;
    if (cold_count_ < kColdMax && pool.ops->admits(pool.state, page, arrival.why) == 0) {
      add_cold(index);
      some_not_admitted_ = true;
      continue;
    }
    pool.ops->arrived(pool.state, page, 1, arrival.why, arrival.priority);
    if (is_watched(pool)) pool.held.add(page, 1);
  }
}

}  // namespace hinterland
