#include "paging/page/policy_host.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/space_limit.hpp"
#include "base/stats.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

int PolicyHost::was_hinted(void* self, hl_page page) {
  auto* host = static_cast<PolicyHost*>(self);
  return host->terms_.hints->was_hinted(host->pages_->page_of(page)) ? 1 : 0;
}

std::uint64_t PolicyHost::capacity(void* self) {
  const Budget* budget = static_cast<PolicyHost*>(self)->terms_.budget;
  return budget != nullptr ? static_cast<std::uint64_t>(budget->limit()) : UINT64_MAX;
}

std::uint64_t PolicyHost::place_of(void* self, hl_page page) {
  const PageTable& pages = *static_cast<PolicyHost*>(self)->pages_;
  return page < pages.dense_used() ? pages.page_of(page).value : UINT64_MAX;
}

hl_page PolicyHost::page_at(void* self, std::uint64_t place) {
  const PageTable& pages = *static_cast<PolicyHost*>(self)->pages_;
  if (place >= pages.places()) return HL_NO_PAGE;
  PageIndex index{place};
  return pages.is_used(index) ? pages.dense_of(index) : HL_NO_PAGE;
}

void* PolicyHost::new_state(const hl_policy_ops* policy) {
  hl_policy_env environment{};
  environment.abi_version = HL_POLICY_ABI_VERSION;
  environment.window_pages = pages_->dense_count();
  environment.reserve = [](std::uint64_t bytes) { return reserve_zeroed(bytes); };
  environment.was_hinted = terms_.hints != nullptr ? was_hinted : nullptr;
  environment.runtime = this;
  environment.settings = policy == pools_[0].ops ? terms_.settings : "";
  environment.capacity = capacity;
  environment.place_of = place_of;
  environment.page_at = page_at;
  return policy->create(&environment);
}

// False when there is no memory for it.
bool PolicyHost::start_pool(Pool& pool, const hl_policy_ops* policy) {
  if (pool.state == nullptr) pool.state = new_state(policy);
  if (pool.state == nullptr) return false;
  if (policy == plugin_ && !pool.held.create(pages_->dense_count())) return false;
  pool.ops = policy;
  if (policy->accessed != nullptr) hears_uses_.store(true, std::memory_order_relaxed);
  if (policy->worth_a_frame != nullptr) decides_frames_.store(true, std::memory_order_relaxed);
  if (policy->missed != nullptr) hears_misses_.store(true, std::memory_order_relaxed);
  if (policy->tick != nullptr || policy->report != nullptr) hears_time_.store(true, std::memory_order_relaxed);
  if (policy->hinted != nullptr) hears_hints_.store(true, std::memory_order_relaxed);
  if (policy->mapped != nullptr || policy->unmapped != nullptr)
    hears_mappings_.store(true, std::memory_order_relaxed);
  return true;
}

Status PolicyHost::create(const hl_policy_ops* policy, const PageTable& pages, const Terms& terms) {
  if (policy->abi_version != HL_POLICY_ABI_VERSION)
    return std::unexpected(Error::make(0, "policy %s was built for policy interface %u, this is %u", policy->name,
                                       policy->abi_version, HL_POLICY_ABI_VERSION)
                               .remedy("build it again with this version's hinterland/policy.h"));
  pages_ = &pages;
  terms_ = terms;
  if (terms.instead != nullptr) plugin_ = policy;
  pool_of_group_ =
      static_cast<std::atomic<std::uint8_t>*>(reserve_zeroed(pages.places() / PageTable::kGroupPages + 1));
  Pool& own = pools_[0];
  own.ops = policy;
  if (pool_of_group_ == nullptr || !start_pool(own, policy))
    return std::unexpected(Error::make(ENOMEM, "policy %s cannot start", policy->name)
                               .remedy("use a smaller --window, or raise %s", limit_on_space()));
  own.open = true;
  return {};
}

void PolicyHost::deliver(const Arrival& arrival) {
  if (arrival.why != HL_ARRIVAL_RETURNED) came_ += arrival.count;
  for_each_run(arrival.first, arrival.count, [&](Pool& pool, hl_page page, std::uint32_t length) {
    if (pool.ops->admits != nullptr && arrival.why < HL_ARRIVAL_REFAULT) [[unlikely]]
      return deliver_admitted(pool, page, length, arrival);
    pool.ops->arrived(pool.state, page, length, arrival.why, arrival.priority);
    if (is_watched(pool)) pool.held.add(page, length);
  });
}

void PolicyHost::hand_over(const Arrival& arrival, Arrivals::Noted noted) {
  bool must = noted == Arrivals::Noted::not_at_all;
  if (must)
    mutex_.lock();
  else if (!mutex_.try_lock())
    return;
  arrivals_.hand_over_of_this_cpu([this](const Arrival& each) { deliver(each); });
  if (must) deliver(arrival);
  mutex_.unlock();
}

void PolicyHost::hand_over_all() {
  arrivals_.hand_over_all([this](const Arrival& each) { deliver(each); });
}

void PolicyHost::lock_for_fork() {
  mutex_.lock();
  arrivals_.lock_all();
}

void PolicyHost::unlock_after_fork() {
  arrivals_.unlock_all();
  mutex_.unlock();
}

void PolicyHost::after_fork_in_child() {
  arrivals_.reset_after_fork();
  mutex_.reset_after_fork();
}

void PolicyHost::cold(PageIndex page) {
  LockGuard guard(mutex_);
  hand_over_all();
  if (cold_count_ == kColdMax || is_cold(page)) return;
  add_cold(page);
}

void PolicyHost::add_cold(PageIndex page) {
  Pool& pool = pools_[pool_of(page)];
  pool.ops->departed(pool.state, pages_->dense_of(page), 1);
  if (is_watched(pool)) pool.held.remove(pages_->dense_of(page), 1);
  cold_[cold_count_++] = page;
  ++cold_endings_[page.value % kColdEndings];
}

bool PolicyHost::is_cold(PageIndex page) const {
  std::span known(cold_.data(), cold_count_);
  return cold_endings_[page.value % kColdEndings] != 0 && std::ranges::find(known, page) != known.end();
}

std::size_t PolicyHost::room_for_cold() {
  LockGuard guard(mutex_);
  return kColdMax - cold_count_;
}

void PolicyHost::forget_cold(PageIndex first, std::uint32_t count) {
  auto end = std::remove_if(cold_.begin(), cold_.begin() + static_cast<std::ptrdiff_t>(cold_count_),
                            [=, this](PageIndex page) {
                              bool goes = first <= page && page < first + count;
                              if (goes) --cold_endings_[page.value % kColdEndings];
                              return goes;
                            });
  cold_count_ = static_cast<std::size_t>(end - cold_.begin());
}

// The oldest first; so many of the newest stay.
std::size_t PolicyHost::take_cold(std::span<hl_page> out, std::size_t stay) {
  std::size_t taken = std::min(out.size(), cold_count_ - std::min(cold_count_, stay));
  for (std::size_t i = 0; i < taken; ++i) {
    out[i] = pages_->dense_of(cold_[i]);
    --cold_endings_[cold_[i].value % kColdEndings];
  }
  std::move(cold_.begin() + static_cast<std::ptrdiff_t>(taken),
            cold_.begin() + static_cast<std::ptrdiff_t>(cold_count_), cold_.begin());
  cold_count_ -= taken;
  return taken;
}

std::size_t PolicyHost::ask(Pool& pool, std::span<hl_page> out) {
  if (out.empty()) return 0;
  return is_watched(pool) ? ask_plugin(pool, out)
                          : pool.ops->choose_victims(pool.state, out.data(), static_cast<std::uint32_t>(out.size()));
}

// What it returns of pages that it holds leaves, whatever else is wrong.
std::size_t PolicyHost::ask_plugin(Pool& pool, std::span<hl_page> out) {
  std::uint64_t started = thread_cpu_ns();
  std::size_t offered = pool.ops->choose_victims(pool.state, out.data(), static_cast<std::uint32_t>(out.size()));
  std::uint64_t took = thread_cpu_ns() - started;
  std::size_t chosen = 0;
  while (chosen < std::min(offered, out.size()) && pool.held.take(out[chosen])) ++chosen;
  const char* problem = nullptr;
  if (offered > out.size())
    problem = "returned more victims than it was asked for";
  else if (chosen < offered)
    problem = "returned a page as a victim that it was not told of, or that it had returned before";
  else if (chosen == 0 && pool.held.count() != 0)
    problem = "returned no victim though it holds pages";
  else if (took > kPluginCallNsMax)
    problem = "took more than 200 ms of CPU time for one call";
  if (problem == nullptr) return chosen;
  take_over(pool, problem);
  return chosen != 0 ? chosen
                     : pool.ops->choose_victims(pool.state, out.data(), static_cast<std::uint32_t>(out.size()));
}

void PolicyHost::take_over(Pool& pool, const char* problem) {
  const hl_policy_ops* instead = terms_.instead;
  log::error(
      "policy %s %s: it is no longer asked, and %s takes its place. 'hinterland replay --policy' with a trace of "
      "the program is the way to find out why",
      pool.ops->name, problem, instead->name);
  pool.ops = instead;
  pool.state = new_state(instead);
  HL_CHECK(pool.state != nullptr && "address space was there for the plug-in's arrays");
  pool.held.for_each([&](hl_page page) { instead->arrived(pool.state, page, 1, HL_ARRIVAL_FAULT, 0); });
  if (&pool == pools_.data()) std::snprintf(stat_page()->policy, sizeof stat_page()->policy, "%s", instead->name);
}

void PolicyHost::tell_used(PageIndex page, hl_access how) {
  LockGuard guard(mutex_);
  hand_over_all();
  if (is_cold(page)) return;  // the policy does not hold it
  Pool& pool = pools_[pool_of(page)];
  if (pool.ops->accessed != nullptr) pool.ops->accessed(pool.state, pages_->dense_of(page), how);
}

std::optional<std::size_t> PolicyHost::tell_missed(PageIndex page, std::span<PageIndex> next) {
  Next wanted;
  next = next.first(std::min(next.size(), wanted.size()));
  LockGuard guard(mutex_);
  hand_over_all();
  Pool& pool = pools_[pool_of(page)];
  if (pool.ops->missed == nullptr) return std::nullopt;
  pool.ahead.wants(pages_->dense_of(page));
  std::uint32_t count =
      pool.ops->missed(pool.state, pages_->dense_of(page), wanted.data(), static_cast<std::uint32_t>(next.size()));
  if (count == HL_OWN_READ_AHEAD || !check_next(pool, wanted, count, next)) return std::nullopt;
  return allow_next(pool, std::span(wanted).first(count), next);
}

std::size_t PolicyHost::tell_hinted(PageIndex page, std::span<PageIndex> next) {
  Next wanted;
  next = next.first(std::min(next.size(), wanted.size()));
  LockGuard guard(mutex_);
  hand_over_all();
  Pool& pool = pools_[pool_of(page)];
  if (pool.ops->hinted == nullptr) return 0;
  pool.ahead.wants(pages_->dense_of(page));
  std::uint32_t count =
      pool.ops->hinted(pool.state, pages_->dense_of(page), wanted.data(), static_cast<std::uint32_t>(next.size()));
  return check_next(pool, wanted, count, next) ? allow_next(pool, std::span(wanted).first(count), next) : 0;
}

// False where a plug-in is wrong, which is replaced then.
bool PolicyHost::check_next(Pool& pool, const Next& wanted, std::uint32_t count, std::span<PageIndex> next) {
  bool known = count <= next.size() && std::all_of(wanted.begin(), wanted.begin() + count,
                                                   [this](hl_page each) { return each < pages_->dense_used(); });
  if (!known) {
    take_over(pool, count > next.size() ? "returned more pages to read next than it was asked for"
                                        : "returned a page to read next that does not exist");
    return false;
  }
  return true;
}

std::size_t PolicyHost::allow_next(Pool& pool, std::span<hl_page> wanted, std::span<PageIndex> next) {
  auto is_far = [this](hl_page page) { return (*pages_)[pages_->page_of(page)].load().state() == PageState::far; };
  std::size_t allowed = pool.ahead.allow(wanted, came_, capacity(this), is_far);
  std::ranges::transform(wanted.first(allowed), next.begin(), [this](hl_page each) { return pages_->page_of(each); });
  return allowed;
}

// I5: a region whose device takes nothing must not be asked again and again while others' pages could leave.
std::size_t PolicyHost::choose_victims(std::span<hl_page> out, std::uint32_t blocked) {
  LockGuard guard(mutex_);
  hand_over_all();
  auto is_blocked = [blocked](const Pool& pool) {
    return (blocked >> pool.device.load(std::memory_order_relaxed) & 1) != 0;
  };
  std::size_t chosen = cold_count_ != 0 ? take_cold(out, some_not_admitted_ ? kNotAdmittedStay : 0) : 0;
  chosen += ask_pools(out.subspan(chosen), [&](const Pool& pool) { return pool.open && !is_blocked(pool); });
  if (blocked != 0 && chosen < out.size())
    chosen += ask_pools(out.subspan(chosen), [&](const Pool& pool) { return pool.open && is_blocked(pool); });
  if (cold_count_ != 0 && chosen == 0) chosen = take_cold(out, 0);
  return chosen;
}

template <typename Asked>
std::size_t PolicyHost::ask_pools(std::span<hl_page> out, Asked&& asked) {
  std::size_t chosen = 0;
  for (Pool& pool : std::span(pools_).subspan(1)) {
    if (!asked(pool)) continue;
    std::uint64_t held = pool.ops->size(pool.state);
    std::uint64_t excess = held > pool.share_pages ? held - pool.share_pages : 0;
    chosen += ask(pool, out.subspan(chosen, std::min<std::size_t>(excess, out.size() - chosen)));
  }
  chosen += ask_common(out.subspan(chosen), asked);
  for (Pool& pool : pools_)
    if (asked(pool) && chosen < out.size()) chosen += ask(pool, out.subspan(chosen));
  return chosen;
}

// The process's pool and those that share with it: of each as many as it has of all their pages.
template <typename Asked>
std::size_t PolicyHost::ask_common(std::span<hl_page> out, Asked&& asked) {
  std::uint64_t held = 0, others = 0;
  auto is_common = [this, &asked](const Pool& pool) {
    return asked(pool) && (&pool == pools_.data() || pool.share_pages == kCommonShare);
  };
  for (Pool& pool : pools_) {
    if (!is_common(pool)) continue;
    held += pool.ops->size(pool.state);
    others += &pool != pools_.data();
  }
  if (others == 0 || held == 0) return 0;  // the process's alone: it is next in any case
  std::size_t chosen = 0;
  for (Pool& pool : pools_) {
    if (!is_common(pool)) continue;
    std::size_t part = (out.size() * pool.ops->size(pool.state) + held - 1) / held;
    chosen += ask(pool, out.subspan(chosen, std::min(part, out.size() - chosen)));
  }
  return chosen;
}

std::uint64_t PolicyHost::size() {
  LockGuard guard(mutex_);
  hand_over_all();
  std::uint64_t sum = cold_count_;
  for (Pool& pool : pools_)
    if (pool.state != nullptr) sum += pool.ops->size(pool.state);
  return sum;
}

int PolicyHost::open_pool(const hl_policy_ops* policy, std::uint64_t share_pages, std::int32_t read_ahead_pages,
                          std::uint32_t device) {
  if (policy == nullptr) policy = pools_[0].ops;
  if (policy->abi_version != HL_POLICY_ABI_VERSION) return -EINVAL;
  LockGuard guard(mutex_);
  auto usable = [policy](const Pool& pool) { return !pool.open && (pool.ops == policy || pool.ops == nullptr); };
  // One that was used before, if there is one: it has its arrays.
  auto found = std::ranges::find_if(pools_, [&](const Pool& pool) { return usable(pool) && pool.ops == policy; });
  if (found == pools_.end()) found = std::ranges::find_if(pools_, usable);
  if (found == pools_.end()) return -ENOSPC;
  if (!start_pool(*found, policy)) return -ENOMEM;
  found->share_pages = share_pages;
  found->read_ahead_pages.store(read_ahead_pages, std::memory_order_relaxed);
  found->device.store(static_cast<std::uint8_t>(device), std::memory_order_relaxed);
  found->open = true;
  return static_cast<int>(found - pools_.begin());
}

void PolicyHost::close_pool(int pool) {
  LockGuard guard(mutex_);
  hand_over_all();  // of the pool that the pages were in
  pools_[static_cast<std::size_t>(pool)].open = false;
}

void PolicyHost::assign(PageRun run, int pool) {
  for (std::uint64_t at = run.first.value; at < run.end().value; at += PageTable::kGroupPages)
    pool_of_group_[at / PageTable::kGroupPages].store(static_cast<std::uint8_t>(pool), std::memory_order_relaxed);
}

}  // namespace hinterland
