// Calls the policies, one call at a time, and gives them the memory they ask for. A policy knows pages by their dense
// numbers (page_table.hpp), so that its arrays stay small where memory is touched sparsely.
//
// There is a pool of pages for the process, and one for each region that wants to be told apart (include/hinterland/
// region.h): a policy's own lists, and a share of the budget. Where pages must leave, those come first that the
// program called cold, then those of pools beyond their share, then the process's, and pools within their share last.
//
// A plug-in is not trusted: what it answers is checked, and when it is wrong a built-in policy takes over all that it
// was told of, with one message (docs/adr/0053-policies-from-files.md).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "hinterland/policy.h"
#include "paging/page/arrivals.hpp"
#include "paging/page/budget.hpp"
#include "paging/page/chosen_ahead.hpp"
#include "paging/page/held_pages.hpp"
#include "paging/page/hint_map.hpp"
#include "paging/page/mapped_as.hpp"
#include "paging/page/page_table.hpp"

namespace hinterland {

class PolicyHost {
 public:
  static constexpr std::size_t kPoolsMax = 32;  // with the process's own; each may ask for arrays over the window
  // A smaller budget holds so few pages that the order in which they came would suffer.
  static constexpr std::uint64_t kGatherFromBytes = 16 * kMiB;
  static constexpr std::size_t kColdMax = 1024;  // or not admitted; looked through when memory is freed
  // Pages that a policy did not admit have just come, and have yet to be touched: of all that are cold, so many of
  // the newest stay while others can leave.
  static constexpr std::size_t kNotAdmittedStay = 32;
  // Pages that a policy may want besides the one that is missed. Of them so many come as prove to be used.
  static constexpr std::size_t kNextMax = ChosenAhead::kMost;
  static constexpr std::uint64_t kPluginCallNsMax = 200'000'000;  // CPU time; others wait for the policy's lock

  struct Terms {
    HintMap* hints = nullptr;                // nullptr: none are heard
    const Budget* budget = nullptr;          // nullptr: nobody knows
    const char* settings = "";               // for the policy
    const hl_policy_ops* instead = nullptr;  // the policy is a plug-in, and this takes over when it is wrong
  };
  // Borrows all of it for the life of the process.
  Status create(const hl_policy_ops* policy, const PageTable& pages, const Terms& terms);
  Status create(const hl_policy_ops* policy, const PageTable& pages) { return create(policy, pages, Terms{}); }

  // The policy may hear of it later, but before anything else that is said or asked here. Where others hold its lock,
  // it is not waited for, unless too much has come together.
  void arrived(PageIndex first, std::uint32_t count, hl_arrival why, std::uint8_t priority = 0) {
    Arrival arrival{first, count, why, priority};
    // relaxed: whichever way it takes, it arrives
    bool gathers = gathers_.load(std::memory_order_relaxed);
    Arrivals::Noted noted = gathers ? arrivals_.note(arrival) : Arrivals::Noted::not_at_all;
    if (noted == Arrivals::Noted::few) [[likely]]
      return;
    hand_over(arrival, noted);
  }
  void departed(PageIndex first, std::uint32_t count) {
    LockGuard guard(mutex_);
    hand_over_all();
    if (cold_count_ != 0) forget_cold(first, count);
    for_each_run(first, count, [&](Pool& pool, hl_page page, std::uint32_t length) {
      pool.ops->departed(pool.state, page, length);
      if (is_watched(pool)) pool.held.remove(page, length);
    });
  }
  // A page that is there was used.
  void used(PageIndex page, hl_access how) {
    // relaxed: set before the first page is there, or before the addresses of its region are given to the program
    if (hears_uses_.load(std::memory_order_relaxed)) [[unlikely]]
      tell_used(page, how);
  }
  // The program faults on a far page, whose busy bit is held. Fills `next` with pages that the policy would bring as
  // well, and returns how many; nullopt where it leaves that to others. They may be in any state.
  std::optional<std::size_t> missed(PageIndex page, std::span<PageIndex> next) {
    if (!hears_misses_.load(std::memory_order_relaxed)) [[likely]]  // as above
      return std::nullopt;
    return tell_missed(page, next);
  }
  // A hint begins to fetch a far page, whose busy bit is held: what the policy would bring besides, as missed().
  std::size_t hinted(PageIndex page, std::span<PageIndex> next) {
    if (!hears_hints_.load(std::memory_order_relaxed)) [[likely]]  // as above
      return 0;
    return tell_hinted(page, next);
  }
  // Whether arrivals of several threads may reach the policy in another order, many at once. Any thread.
  void gather_arrivals(bool gather) { gathers_.store(gather, std::memory_order_relaxed); }
  // A resident page, whose busy bit is held, that the program will not want soon: among the next victims. There is
  // room for so many; of more, nothing is noted.
  void cold(PageIndex page);
  std::size_t room_for_cold();
  // Fills `out` with dense numbers, which page_of() translates; returns how many. `blocked`: a bit for each device
  // that takes no pages now; those that would go there come last.
  PageIndex page_of(hl_page victim) const { return pages_->page_of(victim); }
  std::size_t choose_victims(std::span<hl_page> out, std::uint32_t blocked = 0);
  // What policies say of victims that they returned, before those leave; as_usual where a policy leaves it to the
  // runtime.
  enum class WorthAFrame : std::uint8_t { as_usual, no, yes };
  void worth_frames(std::span<const PageIndex> victims, std::span<WorthAFrame> answers) {
    std::ranges::fill(answers, WorthAFrame::as_usual);
    if (decides_frames_.load(std::memory_order_relaxed)) ask_worth_frames(victims, answers);  // as in used()
  }
  std::uint64_t size();
  // Memory of the program's has come or gone, in the order in which it does: the caller holds map_mutex.
  void mapped(PageRun run, MappedAs as) {
    if (hears_mappings_.load(std::memory_order_relaxed)) [[unlikely]]  // as in used()
      tell_mapped(run, as);
  }
  void unmapped(PageRun run) {
    if (hears_mappings_.load(std::memory_order_relaxed)) [[unlikely]]
      tell_unmapped(run);
  }
  // Lets the policies know of the time, and puts what the process's says of itself into the statistics page. To be
  // called now and then; does so at most every kTickNs.
  static constexpr std::uint64_t kTickNs = 100'000'000;
  void look_after(std::uint64_t now_ns) {
    if (hears_time_.load(std::memory_order_relaxed)) [[unlikely]]
      tell_time(now_ns);
  }
  const char* name() const { return pools_[0].ops->name; }

  // A pool for pages to come, or -EINVAL (a policy for another interface), -ENOMEM, -ENOSPC (kPoolsMax). `policy`:
  // nullptr for the process's. `device`: where its pages are written to (far::Devices).
  int open_pool(const hl_policy_ops* policy, std::uint64_t share_pages, std::int32_t read_ahead_pages,
                std::uint32_t device = 0);
  // Its pages leave with the process's own, of both as many as there are.
  static constexpr std::uint64_t kCommonShare = UINT64_MAX;
  // Its pages are gone, and its addresses assigned to pool 0.
  void close_pool(int pool);
  // From now on these pages belong to the pool. Whole groups (PageTable::kGroupPages), none of them resident.
  void assign(PageRun run, int pool);
  // At most so many pages are read ahead of this one.
  std::uint32_t read_ahead_max(PageIndex page, std::uint32_t otherwise) const {
    std::int32_t own = pools_[pool_of(page)].read_ahead_pages.load(std::memory_order_relaxed);
    return own < 0 ? otherwise : static_cast<std::uint32_t>(own);
  }

  std::uint32_t device_of(PageIndex page) const {
    return pools_[pool_of(page)].device.load(std::memory_order_relaxed);  // as pool_of()
  }

  // Held across fork(2), so that the child finds the policies' lists whole.
  void lock_for_fork();
  void unlock_after_fork();  // in the parent
  void after_fork_in_child();

 private:
  struct Pool {
    const hl_policy_ops* ops = nullptr;
    void* state = nullptr;  // kept for the next pool of this policy: what a policy took it cannot give back
    std::uint64_t share_pages = 0;
    std::atomic<std::int32_t> read_ahead_pages{-1};  // below zero: the process's setting
    std::atomic<std::uint8_t> device{0};
    bool open = false;
    HeldPages held;  // of a plug-in
    ChosenAhead ahead;
  };

  // relaxed: set before the addresses are given to the program
  std::uint8_t pool_of(PageIndex page) const {
    return pool_of_group_[page.value / PageTable::kGroupPages].load(std::memory_order_relaxed);
  }
  // The pages in use of [first, first + count), by group: there their dense numbers follow each other.
  template <typename Visit>
  void for_each_run(PageIndex first, std::uint32_t count, Visit&& visit) {
    for (std::uint64_t at = first.value, end = first.value + count; at < end;) {
      auto left_in_group = static_cast<std::uint32_t>(PageTable::kGroupPages - at % PageTable::kGroupPages);
      std::uint32_t length = end - at < left_in_group ? static_cast<std::uint32_t>(end - at) : left_in_group;
      if (pages_->is_used({at})) visit(pools_[pool_of({at})], pages_->dense_of({at}), length);
      at += length;
    }
  }
  void hand_over(const Arrival& arrival, Arrivals::Noted noted);
  // The lock is held.
  void hand_over_all();
  void deliver(const Arrival& arrival);
  static std::uint64_t capacity(void* self);
  static std::uint64_t place_of(void* self, hl_page page);
  static hl_page page_at(void* self, std::uint64_t place);
  static int was_hinted(void* self, hl_page page);
  void* new_state(const hl_policy_ops* policy);
  bool start_pool(Pool& pool, const hl_policy_ops* policy);
  bool is_watched(const Pool& pool) const { return pool.ops == plugin_; }
  void take_over(Pool& pool, const char* problem);
  // Calls something of the pool's policy that may take long, and replaces a plug-in that does.
  template <typename Call>
  void watch(Pool& pool, Call&& call);
  void tell_time(std::uint64_t now_ns);
  void show_report(Pool& pool);
  void deliver_admitted(Pool& pool, hl_page first, std::uint32_t count, const Arrival& arrival);
  void tell_mapped(PageRun run, MappedAs as);
  void tell_unmapped(PageRun run);
  void tell_used(PageIndex page, hl_access how);
  std::optional<std::size_t> tell_missed(PageIndex page, std::span<PageIndex> next);
  std::size_t tell_hinted(PageIndex page, std::span<PageIndex> next);
  using Next = std::array<hl_page, kNextMax>;
  bool check_next(Pool& pool, const Next& wanted, std::uint32_t count, std::span<PageIndex> next);
  std::size_t allow_next(Pool& pool, std::span<hl_page> wanted, std::span<PageIndex> next);
  bool is_cold(PageIndex page) const;
  void forget_cold(PageIndex first, std::uint32_t count);
  void add_cold(PageIndex page);
  std::size_t take_cold(std::span<hl_page> out, std::size_t stay);
  void ask_worth_frames(std::span<const PageIndex> victims, std::span<WorthAFrame> answers);
  std::size_t ask(Pool& pool, std::span<hl_page> out);
  std::size_t ask_plugin(Pool& pool, std::span<hl_page> out);
  template <typename Asked>
  std::size_t ask_pools(std::span<hl_page> out, Asked&& asked);
  template <typename Asked>
  std::size_t ask_common(std::span<hl_page> out, Asked&& asked);

  Arrivals arrivals_;  // their locks are taken under mutex_, never the other way round
  alignas(64) Mutex mutex_;
  alignas(64) const PageTable* pages_ = nullptr;  // read by those who do not take the lock
  std::atomic<bool> gathers_{false};
  std::atomic<bool> hears_uses_{false}, hears_misses_{false}, hears_hints_{false}, hears_mappings_{false},
      hears_time_{false}, decides_frames_{false};
  Terms terms_;
  const hl_policy_ops* plugin_ = nullptr;               // the process's policy, where it is one
  std::array<Pool, kPoolsMax> pools_;                   // guarded by mutex_; [0] is the process's
  std::atomic<std::uint8_t>* pool_of_group_ = nullptr;  // by group of places
  std::array<PageIndex, kColdMax> cold_;                // guarded by mutex_; in none of the policies' lists
  std::size_t cold_count_ = 0;
  bool some_not_admitted_ = false;
  std::uint64_t next_tick_ns_ = 0;
  std::uint64_t came_ = 0;  // pages that policies were told of
  // How many of them have a number that ends so: of most pages it tells without a look at all of them that they are
  // not among them.
  static constexpr std::size_t kColdEndings = 4 * kColdMax;
  std::array<std::uint16_t, kColdEndings> cold_endings_{};
};

}  // namespace hinterland
