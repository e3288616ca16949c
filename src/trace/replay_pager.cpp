#include "trace/replay_pager.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace hinterland::trace {
namespace {

constexpr std::uint32_t kGroup = PageTable::kGroupPages;  // are numbered together
constexpr hl_page kPagesMax = 1u << 26;                   // 256 GiB of pages that fault
constexpr std::uint32_t kBatchMax = Evictor::kBatchMax;

// For the policy: untouched parts cost nothing. A policy has no end of its own, and the call no room for whose it is.
thread_local std::vector<std::pair<void*, std::size_t>>* t_reserved = nullptr;

void* reserve(std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  t_reserved->emplace_back(memory, bytes);
  return memory;
}

}  // namespace

ReplayPager::ReplayPager(std::uint64_t local_bytes, const hl_policy_ops* policy, const char* settings,
                         bool far_answers_at_once)
    : ops_(policy) {
  budget_.set_limit(local_bytes);
  if (far_answers_at_once) budget_.park_few();
  second_chance_.saves_a_fetch = !far_answers_at_once;
  second_chance_.enabled = (policy->flags & HL_POLICY_LEAVES_AT_ONCE) == 0;
  if (policy->worth_a_frame != nullptr) budget_.park_an_eighth();
  hl_policy_env environment{};
  environment.abi_version = HL_POLICY_ABI_VERSION;
  environment.window_pages = kPagesMax;
  environment.reserve = reserve;
  environment.runtime = this;
  environment.settings = settings;
  environment.capacity = [](void* self) {
    return static_cast<std::uint64_t>(static_cast<ReplayPager*>(self)->budget_.limit());
  };
  environment.place_of = [](void* self, hl_page page) { return static_cast<ReplayPager*>(self)->addresses_[page]; };
  environment.page_at = [](void* self, std::uint64_t place) {
    return static_cast<ReplayPager*>(self)->page_there(place);
  };
  t_reserved = &reserved_;
  policy_ = policy->create(&environment);
  t_reserved = nullptr;
  has_forecast_ = forecast_.create(UINT32_MAX).has_value();
}

ReplayPager::~ReplayPager() {
  forecast_.destroy();
  for (auto [memory, bytes] : reserved_) munmap(memory, bytes);
}

// A run of zeros more may be needed.
bool ReplayPager::has_room() const {
  return policy_ != nullptr && has_forecast_ && pages_.size() + std::size_t{kRunMax} + kGroup <= kPagesMax;
}

hl_page ReplayPager::number_of(std::uint64_t page) {
  auto [group, fresh] = groups_.try_emplace(page / kGroup, static_cast<hl_page>(pages_.size()));
  if (fresh)
    for (std::uint32_t i = 0; i < kGroup; ++i) {
      addresses_.push_back(page / kGroup * kGroup + i);
      pages_.emplace_back();
    }
  return group->second + static_cast<hl_page>(page % kGroup);
}

ReplayPage& ReplayPager::page_at(std::uint64_t page) { return pages_[number_of(page)]; }

hl_page ReplayPager::page_there(std::uint64_t place) const {
  auto group = groups_.find(place / kGroup);
  return group != groups_.end() ? group->second + static_cast<hl_page>(place % kGroup) : HL_NO_PAGE;
}

bool ReplayPager::missed(std::uint64_t page, std::uint32_t most, std::vector<std::uint64_t>* next) {
  next->clear();
  if (ops_->missed == nullptr) return false;
  hl_page wanted[kRunMax];
  ahead_.wants(number_of(page));
  std::uint32_t count = ops_->missed(policy_, number_of(page), wanted, std::min(most, kRunMax));
  if (count == HL_OWN_READ_AHEAD) return false;
  take_next(std::span(wanted, std::min(count, most)), next);
  return true;
}

void ReplayPager::hinted(std::uint64_t page, std::uint32_t most, std::vector<std::uint64_t>* next) {
  next->clear();
  if (ops_->hinted == nullptr) return;
  hl_page wanted[kRunMax];
  ahead_.wants(number_of(page));
  most = std::min(most, kRunMax);
  std::uint32_t count = ops_->hinted(policy_, number_of(page), wanted, most);
  take_next(std::span(wanted, std::min(count, most)), next);
}

// As PolicyHost::allow_next().
void ReplayPager::take_next(std::span<hl_page> wanted, std::vector<std::uint64_t>* next) {
  auto known = std::ranges::remove_if(wanted, [this](hl_page number) { return number >= addresses_.size(); });
  wanted = wanted.first(static_cast<std::size_t>(known.begin() - wanted.begin()));
  auto is_far = [this](hl_page number) { return pages_[number].state == State::far; };
  std::size_t allowed = ahead_.allow(wanted, came_, static_cast<std::uint64_t>(budget_.limit()), is_far);
  for (hl_page number : wanted.first(allowed)) next->push_back(addresses_[number]);
}

bool ReplayPager::expects_write(std::uint64_t page, bool samples) {
  if (page_at(page).often_written) return true;
  return samples ? forecast_.expects_write(index_of(page)) : forecast_.expects_write_unsampled(index_of(page));
}

// Which pages are mapped writable; for the others a write is a fault.
ReplayPager::Writable ReplayPager::expected_writes(const Fetch& wanted) {
  Writable writable;
  bool by_fault = wanted.why == HL_ARRIVAL_FAULT;
  auto is_asked = [&](std::uint64_t page) { return wanted.asked <= page && page < wanted.asked_end; };
  for (std::uint32_t i = 0; i < wanted.count; ++i)
    writable[i] = expects_write(wanted.first + i, by_fault ? is_asked(wanted.first + i) : i == 0);
  if (forecast_.samples({index_of(wanted.first), wanted.count}))
    writable[!by_fault || wanted.first == wanted.asked ? wanted.count - 1 : 0] = false;
  for (std::uint32_t i = 0; i < wanted.count && wanted.write; ++i)
    if (is_asked(wanted.first + i)) writable[i] = true;
  return writable;
}

void ReplayPager::tick(std::uint64_t now_ns) {
  if (ops_->tick == nullptr || now_ns < next_tick_ns_) return;
  next_tick_ns_ = now_ns + PolicyHost::kTickNs;
  ops_->tick(policy_, now_ns);
}

// As PolicyHost::deliver().
void ReplayPager::tell_arrived(hl_page number, hl_arrival why, std::uint8_t priority) {
  ++came_;
  bool asks = ops_->admits != nullptr && why < HL_ARRIVAL_REFAULT && not_admitted_.size() < PolicyHost::kColdMax;
  if (asks && ops_->admits(policy_, number, why) == 0)
    not_admitted_.push_back(number);
  else
    ops_->arrived(policy_, number, 1, why, priority);
}

void ReplayPager::tell_departed(hl_page number) {
  ops_->departed(policy_, number, 1);
  if (!not_admitted_.empty()) std::erase(not_admitted_, number);
}

// As PolicyHost::choose_victims().
std::uint32_t ReplayPager::choose(std::span<hl_page> out) {
  std::uint32_t chosen = 0;
  auto take = [&](std::size_t stay) {
    for (; chosen < out.size() && not_admitted_.size() > stay; not_admitted_.pop_front())
      out[chosen++] = not_admitted_.front();
  };
  take(PolicyHost::kNotAdmittedStay);
  auto rest = static_cast<std::uint32_t>(out.size() - chosen);
  if (rest != 0) chosen += ops_->choose_victims(policy_, out.data() + chosen, rest);
  if (chosen == 0) take(0);
  return chosen;
}

void ReplayPager::begin(Fetch& wanted) {
  wanted.writable = expected_writes(wanted);
  make_room(wanted.count);
  budget_.add(wanted.count);
}

// In stretches of equal protection.
void ReplayPager::finish(const Fetch& wanted) {
  const Writable& writable = wanted.writable;
  for (std::uint32_t at = 0, end = 0; at < wanted.count; at = end) {
    while (end < wanted.count && writable[end] == writable[at]) ++end;
    end = at + adjacent(wanted.first + at, end - at);
    map(wanted, wanted.first + at, wanted.first + end, writable[at]);
  }
}

// How many of them lie side by side on the device.
std::uint32_t ReplayPager::adjacent(std::uint64_t first, std::uint32_t count) {
  std::uint64_t place = page_at(first).far_place;
  std::uint32_t length = 1;
  while (length < count && page_at(first + length).far_place == place + length) ++length;
  return length;
}

void ReplayPager::map(const Fetch& wanted, std::uint64_t first, std::uint64_t end, bool writable) {
  // What a hint brought, the policy judges by the hints that find it there, and no trace has those. The next best is
  // how soon it came back, as of what a fault brings; but for a page that is to leave first.
  hl_arrival asked = wanted.priority == 0 ? HL_ARRIVAL_FAULT : wanted.why;
  hl_arrival why = wanted.asked < end && first < wanted.asked_end ? asked : HL_ARRIVAL_READ_AHEAD;
  for (std::uint64_t address = first; address < end; ++address) {
    hl_page number = number_of(address);
    ReplayPage& page = pages_[number];
    page.state = State::resident;
    page.dirty = writable;
    if (writable) far_space_.let_go(&page.far_place);
    page.ahead = address < wanted.asked || address >= wanted.asked_end;
    page.zero = false;
    if (writable) page.often_written = recheck_.goes_on_expecting() && page.often_written;
    tell_arrived(number, why, wanted.priority);
  }
}

void ReplayPager::bring_zeros(std::uint64_t first, std::uint32_t count, std::uint64_t demanded) {
  make_room(count);
  budget_.add(count);
  for (std::uint64_t address = first; address < first + count; ++address) {
    hl_page number = number_of(address);
    pages_[number] = {.state = State::resident, .dirty = true, .ahead = address != demanded, .zero = true};
    tell_arrived(number, HL_ARRIVAL_FIRST_TOUCH, 0);
  }
}

// What is only read is copied, and its frame waits to expire; else it moves.
void ReplayPager::take_back(std::uint64_t address, bool write, std::uint8_t priority) {
  second_chance_.note_hit();
  bool stays_clean = !write && !expects_write(address, true);
  hl_page number = number_of(address);
  ReplayPage& page = pages_[number];
  frames_.leave(page.place, stays_clean);
  if (stays_clean) budget_.add(1);
  page.state = State::resident;
  page.dirty = !stays_clean;
  if (page.dirty) far_space_.let_go(&page.far_place);
  tell_arrived(number, HL_ARRIVAL_REFAULT, priority);
}

void ReplayPager::note_written(std::uint64_t address) {
  ReplayPage& page = page_at(address);
  page.dirty = page.often_written = true;
  if (ops_->accessed != nullptr) ops_->accessed(policy_, number_of(address), HL_ACCESS_WRITE);
  far_space_.let_go(&page.far_place);
  forecast_.note_written(index_of(address));
}

void ReplayPager::forget(std::uint64_t address) {
  hl_page number = number_of(address);
  ReplayPage& page = pages_[number];
  if (page.state == State::parked) frames_.leave(page.place, true);
  if (page.state == State::resident) {
    tell_departed(number);
    budget_.subtract(1);
  }
  far_space_.let_go(&page.far_place);
  page = {};
}

void ReplayPager::renew(std::uint64_t address) {
  hl_page number = number_of(address);
  pages_[number].forgotten = false;
  tell_departed(number);
  tell_arrived(number, HL_ARRIVAL_FIRST_TOUCH, 0);
}

void ReplayPager::put_far(std::uint64_t address) {
  bool often_written = page_at(address).often_written;
  forget(address);
  page_at(address).state = State::far;
  page_at(address).often_written = often_written;
}

void ReplayPager::put_into_frame(std::uint64_t address) {
  ReplayPage& page = page_at(address);
  if (page.state == State::parked) return;
  put_far(address);
  page.state = State::parked;
  page.place = frames_.park(number_of(address));
  budget_.add(1);
}

void ReplayPager::far_now(hl_page number) { pages_[number].state = State::far; }

void ReplayPager::make_room(std::uint32_t pages) {
  while (!budget_.has_room(pages))
    if (reclaim(Bringer::pages_to_reclaim(pages)) == 0) return;
}

// Between the two watermarks, as the reclaimer.
void ReplayPager::keep_room(std::uint64_t now, std::vector<std::uint64_t>* left) {
  for (bool goes_on = budget_.should_start(); goes_on && !budget_.should_stop();)
    goes_on = reclaim(budget_.batch_until_stop(kBatchMax)) != 0;
  for (std::uint64_t address : left_) page_at(address).left = now;
  left->swap(left_);
  left_.clear();
}

std::size_t ReplayPager::reclaim(std::size_t wanted) {
  std::size_t freed = 0;
  for (int round = 0; round < Evictor::kRoundsMax && freed < wanted; ++round) {
    std::size_t missing = wanted - freed, chosen = 0;
    std::size_t freed_now = take_round(std::min<std::size_t>(missing, kBatchMax), &chosen);
    freed_now += expire_what_is_due(chosen == 0 || round >= Evictor::kRoundsMax / 2, missing);
    if (chosen == 0 && freed_now == 0) break;
    freed += freed_now;
  }
  return freed;
}

// In the order of addresses, and those that need no frame first.
std::size_t ReplayPager::take_round(std::size_t wanted, std::size_t* chosen) {
  hl_page offered[kBatchMax];
  Victim victims[kBatchMax];
  std::uint32_t count = choose(std::span(offered).first(wanted));
  Victim* end = victims;
  for (hl_page number : std::span(offered, count))
    if (pages_[number].state == State::resident) *end++ = {addresses_[number], number, worth_a_frame(number)};
  *chosen = static_cast<std::size_t>(end - victims);
  std::sort(victims, end, [](const Victim& a, const Victim& b) { return a.address < b.address; });
  Victim* middle = std::stable_partition(victims, end, [this](const Victim& victim) { return !wants_frame(victim); });
  std::for_each(victims, middle, [this](const Victim& victim) { unmap(victim); });
  place_on_device({middle, end});
  std::for_each(middle, end, [this](const Victim& victim) { park(victim); });
  std::size_t left = static_cast<std::size_t>(middle - victims);
  for (const Victim& victim : std::span(middle, end)) left += let_go(victim);
  return left;
}

// As Evictor::ask_what_is_worth_a_frame().
PolicyHost::WorthAFrame ReplayPager::worth_a_frame(hl_page number) const {
  using enum PolicyHost::WorthAFrame;
  if (ops_->worth_a_frame == nullptr || !second_chance_.enabled) return as_usual;
  return ops_->worth_a_frame(policy_, number) != 0 && second_chance_.saves_a_fetch ? yes : no;
}

// As Evictor::let_go(): where it is not worth a frame. Returns how many pages of memory became free.
std::uint32_t ReplayPager::let_go(const Victim& victim) {
  using enum PolicyHost::WorthAFrame;
  ReplayPage& page = pages_[victim.number];
  bool was_zero = page.state != State::parked;
  if (victim.worth_a_frame == as_usual || (victim.worth_a_frame == yes && !was_zero)) return 0;
  frames_.leave(page.place, false);
  if (!was_zero) page.state = State::far;
  budget_.subtract(1);
  return 1;
}

bool ReplayPager::wants_frame(const Victim& victim) {
  const ReplayPage& page = pages_[victim.number];
  if (page.forgotten) return false;
  if (page.dirty) return true;
  if (victim.worth_a_frame != PolicyHost::WorthAFrame::as_usual)
    return victim.worth_a_frame == PolicyHost::WorthAFrame::yes;
  return second_chance_.keeps_clean(second_chance_.saves_a_fetch, &park_sample_);
}

void ReplayPager::note_leaves(const Victim& victim) {
  pages_[victim.number].was_dirty = pages_[victim.number].dirty;
  left_.push_back(victim.address);
}

void ReplayPager::unmap(const Victim& victim) {
  note_leaves(victim);
  ReplayPage& page = pages_[victim.number];
  if (!page.dirty) forecast_.note_left_clean(index_of(victim.address));
  page.state = page.forgotten ? State::untouched : State::far;
  if (page.forgotten) far_space_.let_go(&page.far_place);
  page.often_written = page.ahead = false;
  budget_.subtract(1);
}

// All that are written together lie together.
void ReplayPager::place_on_device(std::span<const Victim> victims) {
  auto is_written = [this](const Victim& victim) {
    const ReplayPage& page = pages_[victim.number];
    return page.dirty && !(page.ahead && page.zero);
  };
  auto count = static_cast<std::uint32_t>(std::count_if(victims.begin(), victims.end(), is_written));
  std::vector<std::uint64_t> places = far_space_.take(count);
  auto place = places.begin();
  for (const Victim& victim : victims)
    if (is_written(victim)) pages_[victim.number].far_place = *place++;
}

void ReplayPager::park(const Victim& victim) {
  note_leaves(victim);
  ReplayPage& page = pages_[victim.number];
  page.place = frames_.park(victim.number);
  if (page.dirty && page.ahead && page.zero) {  // nobody has written to it
    std::uint64_t place = page.place;
    if (victim.worth_a_frame == PolicyHost::WorthAFrame::as_usual) frames_.leave(place, true);
    page = {};
    page.place = place;
    return;
  }
  if (page.dirty)
    ++pages_out_;
  else
    forecast_.note_left_clean(index_of(victim.address));
  page.often_written = page.often_written && page.dirty;
  page.state = State::parked;
  page.dirty = page.ahead = false;
  second_chance_.note_parked();
}

// As Evictor::expire_what_is_due().
std::uint32_t ReplayPager::expire_what_is_due(bool gives_way, std::size_t missing) {
  std::uint32_t expired = frames_.many_dropped() ? frames_.expire_dropped() : 0;
  std::uint32_t surplus = budget_.frames_to_expire(frames_.used()), places = surplus;
  if (gives_way) {
    surplus = std::max(surplus, static_cast<std::uint32_t>(std::min<std::size_t>(frames_.used(), missing)));
    places = FrameRing::kAllPlaces;
  }
  expired += frames_.expire(surplus, [this](hl_page number) { far_now(number); }, places);
  budget_.subtract(expired);
  return expired;
}

}  // namespace hinterland::trace
