// The eviction pipeline: choose, unmap or take, write back, park, expire.
#include "paging/out/evictor.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.hpp"

namespace hinterland {

Result<std::unique_ptr<Evictor>> Evictor::create(Core& core) {
  auto evictor = std::unique_ptr<Evictor>(new Evictor(core));
  auto channels = core.devices.open_channels();
  if (!channels) return std::unexpected(channels.error());
  evictor->channels_ = std::move(*channels);
  return evictor;
}

std::size_t Evictor::reclaim(std::size_t wanted, PageIndex spared) {
  LockGuard guard(mutex_);
  spared_ = spared;
  settle();
  // Signed: a page that could not be written and was copied back takes a local page more, until its frame expires.
  std::ptrdiff_t freed = 0;
  for (int round = 0; round < kRoundsMax && freed < static_cast<std::ptrdiff_t>(wanted);) {
    std::size_t missing = wanted - static_cast<std::size_t>(std::max<std::ptrdiff_t>(freed, 0));
    std::size_t chosen = 0;
    std::ptrdiff_t freed_now = take_round(std::min<std::size_t>(missing, kBatchMax), &chosen);
    settle();

    // Nothing left to choose, or all that was chosen lies in frames: the second chance has to give way.
    bool gives_way = chosen == 0 || round >= kRoundsMax / 2;
    freed_now += expire_what_is_due(gives_way, missing) + freed_aside_;
    freed += freed_now;
    if (freed_now <= 0 && wait_for_frames()) continue;
    ++round;
    if (chosen == 0 && freed_now == 0) break;
    if (core_.devices.all_lost() && freed_now <= 0) break;
  }
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(freed, 0));
}

std::optional<std::size_t> Evictor::take(std::size_t wanted, PageIndex spared) {
  if (!mutex_.try_lock()) return std::nullopt;
  spared_ = spared;
  std::optional<std::size_t> taken;
  if (taken_count_ == 0) {
    std::size_t chosen = 0;
    std::ptrdiff_t freed = take_round(std::min<std::size_t>(wanted, kBatchMax), &chosen) + freed_aside_;
    taken = static_cast<std::size_t>(std::max<std::ptrdiff_t>(freed, 0)) + taken_count_;
    has_taken_.store(taken_count_ != 0, std::memory_order_release);  // pairs with try_settle_taken()
  }
  mutex_.unlock();
  return taken;
}

void Evictor::settle_taken() {
  LockGuard guard(mutex_);
  settle_locked();
}

bool Evictor::try_settle_taken() {
  if (!has_taken_.load(std::memory_order_acquire)) return true;  // pairs with take()
  if (!mutex_.try_lock()) return false;
  settle_locked();
  mutex_.unlock();
  return true;
}

void Evictor::settle_locked() {
  if (taken_count_ == 0) return;
  settle();
  if (std::uint32_t surplus = surplus_frames(); surplus != 0) expire_frames(surplus, surplus);
}

// Returns how many pages of local memory became free.
std::uint32_t Evictor::expire_what_is_due(bool gives_way, std::size_t missing) {
  std::uint32_t expired = expire_dropped();
  std::uint32_t surplus = surplus_frames(), places = surplus;
  if (gives_way) {
    surplus = std::max(surplus, static_cast<std::uint32_t>(std::min<std::size_t>(core_.frames.used(), missing)));
    places = FrameRing::kAllPlaces;
  }
  if (surplus == 0) return expired;
  std::uint32_t expired_now = expire_frames(surplus, places);
  if (expired_now < surplus) empty_frames_of_the_lost();
  return expired + expired_now;
}

std::uint32_t Evictor::expire_dropped() {
  if (!core_.frames.many_dropped()) return 0;
  auto decide = [](std::uint32_t, Frame& frame) {
    bool dropped =
        frame.state.load(std::memory_order_acquire) == FrameState::dropped;  // pairs with FrameRing::drop()
    return dropped ? FrameRing::Decision::discard : FrameRing::Decision::pass;
  };
  return free_now(core_.frames.expire(core_.kernel, FrameRing::kAllPlaces, decide));
}

std::uint32_t Evictor::surplus_frames() { return core_.budget.frames_to_expire(core_.frames.used()); }

// Chooses and takes pages: unmaps those that need no frame, and moves the others to frames, to be settled. Returns
// how many pages of local memory are free now.
std::ptrdiff_t Evictor::take_round(std::size_t wanted, std::size_t* chosen) {
  *chosen = choose(wanted);
  // Victims without a frame first in the array, then those that go through one.
  auto middle = std::stable_partition(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(*chosen),
                                      [this](const Victim& victim) { return !wants_frame(victim); });
  std::size_t unmapped = static_cast<std::size_t>(middle - chosen_.begin());
  freed_aside_ = 0;
  flushes_ = core_.parts.batching ? std::min<std::size_t>(unmapped, 1) : unmapped;
  auto freed = static_cast<std::ptrdiff_t>(drop_without_frame(Victims(chosen_.data(), unmapped)));
  take_into_frames(Victims(chosen_.data() + unmapped, *chosen - unmapped));
  core_.flush_share.note(flushes_, *chosen);
  count(Counter::reclaim_batches);
  return freed;
}

// I5: while the other evictor gets no CPU in the middle of a batch, the ring may fill up behind it, and then every
// victim is refused. Without waiting for it, the program would take as much as it likes meanwhile. It waits for
// nobody but the device: this evictor has no page or frame in its hands now, and the fault handler none that it
// needs.
bool Evictor::wait_for_frames() {
  if (!core_.frames.blocked()) return false;
  timespec nap{0, 100'000};
  nanosleep(&nap, nullptr);
  return true;
}

// Locks the policy's victims; what cannot be taken now goes back to it.
std::size_t Evictor::choose(std::size_t wanted) {
  std::array<hl_page, kBatchMax> pages;
  std::size_t offered = core_.policy.choose_victims(std::span(pages.data(), wanted), blocked_devices());
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < offered; ++i)
    if (accept(core_.policy.page_of(pages[i]), &chosen_[accepted])) ++accepted;
  if (core_.second_chance.enabled) ask_what_is_worth_a_frame(Victims(chosen_.data(), accepted));
  std::sort(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(accepted),
            [](const Victim& a, const Victim& b) { return a.page < b.page; });
  return accepted;
}

void Evictor::ask_what_is_worth_a_frame(Victims victims) {
  std::array<PageIndex, kBatchMax> pages;
  std::array<PolicyHost::WorthAFrame, kBatchMax> answers;
  std::ranges::transform(victims, pages.begin(), &Victim::page);
  core_.policy.worth_frames(std::span(pages.data(), victims.size()), std::span(answers.data(), victims.size()));
  for (std::size_t i = 0; i < victims.size(); ++i) {
    victims[i].worth_a_frame = answers[i];
    if (answers[i] == PolicyHost::WorthAFrame::yes && !saves_a_fetch(victims[i]))
      victims[i].worth_a_frame = PolicyHost::WorthAFrame::no;
  }
}

// A page that comes back out of its frame is not fetched, but all else that a miss costs it costs again: the fault,
// and that a page leaves. Where the device answers at once little is saved
// (docs/adr/0088-nothing-is-parked-where-the-device-answers-at-once.md).
bool Evictor::saves_a_fetch(const Victim& victim) const {
  std::uint32_t device = victim.word.has_far() ? victim.word.far_page().device() : device_of(victim);
  return device == 0 ? core_.second_chance.saves_a_fetch : !core_.devices.synchronous(device);
}

bool Evictor::accept(PageIndex page, Victim* victim) {
  PageWord word;
  if (!core_.pages[page].try_lock(&word)) {
    core_.policy.arrived(page, 1, HL_ARRIVAL_RETURNED);
    return false;
  }
  if (word.state() != PageState::resident) {  // freed since it was listed
    core_.transitions.none(page, word);
    return false;
  }
  if (core_.marks.note_offered(page)) {  // out of the policy's lists until nobody holds it
    core_.transitions.none(page, word);
    return false;
  }
  if (page == spared_ || must_stay(page, word) || core_.pinned.contains(page)) {
    core_.transitions.stay(page, word);
    return false;
  }
  *victim = {.page = page, .word = word};
  return true;
}

// Of a lost device not even a clean page's copy can be had again (I4); to a full one nothing can be written.
bool Evictor::must_stay(PageIndex page, PageWord word) const {
  if (word.discardable()) return false;
  std::uint32_t device = word.has_far() ? word.far_page().device() : device_of(page);
  return core_.devices.lost(device) != 0 || (word.dirty() && is_full(device));
}

bool Evictor::is_full(std::uint32_t device) const {
  return full_until_ns_[device] != 0 && now_ns() < full_until_ns_[device];
}

// Those that take no pages now. Of a single device there is nothing to choose.
std::uint32_t Evictor::blocked_devices() const {
  std::uint32_t count = core_.devices.count(), blocked = 0;
  for (std::uint32_t device = 0; count > 1 && device < count; ++device)
    if (is_full(device) || core_.devices.lost(device) != 0) blocked |= 1u << device;
  return blocked;
}

// Dirty pages need one, to be written from. Clean ones get one only as a second chance, and only while second
// chances are being taken: moving a page costs more than unmapping it in a batch.
bool Evictor::wants_frame(const Victim& victim) {
  if (victim.word.discardable()) return false;
  if (victim.word.dirty()) return true;
  if (!core_.take_by_move) return false;
  if (victim.worth_a_frame != PolicyHost::WorthAFrame::as_usual)
    return victim.worth_a_frame == PolicyHost::WorthAFrame::yes;
  return core_.second_chance.keeps_clean(saves_a_fetch(victim), &park_sample_);
}

std::size_t Evictor::drop_without_frame(Victims victims) {
  if (victims.empty()) return 0;
  std::array<iovec, kBatchMax> ranges;
  std::size_t count_of_ranges = 0;
  for (const Victim& victim : victims) {
    std::uintptr_t address = core_.address_of(victim.page);
    if (count_of_ranges > 0) {
      iovec& last = ranges[count_of_ranges - 1];
      if (reinterpret_cast<std::uintptr_t>(last.iov_base) + last.iov_len == address) {
        last.iov_len += kPageSize;
        continue;
      }
    }
    ranges[count_of_ranges++] = {reinterpret_cast<void*>(address), kPageSize};
  }
  if (!core_.parts.batching || core_.kernel.discard(std::span(ranges.data(), count_of_ranges)) != 0)
    victims = discarded_one_by_one(victims);
  count(Counter::pages_evicted_clean, core_.transitions.drop(victims));
  count(Counter::pages_evicted, victims.size());
  return victims.size();
}

// The kernel keeps pages that were locked meanwhile, or by a raw system call. Returns those that are gone.
Evictor::Victims Evictor::discarded_one_by_one(Victims victims) {
  auto gone = std::partition(victims.begin(), victims.end(), [this](const Victim& victim) {
    iovec range{core_.memory_of(victim.page), kPageSize};
    return core_.kernel.discard({&range, 1}) == 0;
  });
  auto count_gone = static_cast<std::size_t>(gone - victims.begin());
  for (Victim& kept : victims.subspan(count_gone)) refuse(kept);
  return victims.first(count_gone);
}

std::size_t Evictor::take_into_frames(Victims victims) {
  taken_count_ = 0;
  std::size_t at = 0;
  while (at < victims.size()) {
    std::size_t length = 1;
    while (core_.parts.batching && at + length < victims.size() &&
           victims[at + length].page == victims[at].page + static_cast<std::uint32_t>(length))
      ++length;
    FrameRun frames = core_.frames.take(static_cast<std::uint32_t>(length));
    if (frames.count == 0 && expire_frames(kBatchMax) != 0) continue;
    if (frames.count == 0) break;
    std::int64_t done = take_run(victims.subspan(at, frames.count), frames);
    at += static_cast<std::size_t>(done);
  }
  // No frame to be had: they stay.
  for (Victim& victim : victims.subspan(at)) refuse(victim);
  return at;
}

// What move() says, of as much of the run as it takes at once.
std::int64_t Evictor::move_run(Victims run, std::uint32_t frame) {
  const std::uintptr_t address = core_.address_of(run[0].page);
  for (int tries = 0;;) {
    const std::int64_t moved = core_.kernel.move(core_.frames.address_of(frame), address, bytes_of_pages(run.size()));
    if (moved == -EAGAIN && ++tries < 4) continue;
    if (moved != -EINVAL) return moved;
    // It reaches beyond one of the kernel's mappings, or that may not be written, or something else is the matter. Of
    // a single page, mprotect may have been it.
    const MappingAt mapping = core_.kernel.mapping_at(address);
    if (mapping.protection >= 0 && (run.size() == 1 || mapping.protection != (PROT_READ | PROT_WRITE)))
      return take_unwritable_run(run, frame);
    if (run.size() == 1) return moved;
    const std::size_t within = mapping.protection < 0 ? run.size() : (mapping.end - address) >> kPageShift;
    run = run.first(within < run.size() ? within : run.size() / 2);
  }
}

// Moves a run into frames. Returns how many victims are dealt with: taken, or refused when the first could not be.
std::int64_t Evictor::take_run(Victims run, FrameRun frames) {
  ++flushes_;
  const std::int64_t moved = core_.take_by_move ? move_run(run, frames.first) : -EINVAL;
  auto pages = static_cast<std::uint32_t>(moved > 0 ? moved >> kPageShift : 0);
  for (std::uint32_t i = 0; i < pages; ++i) {
    run[i].frame = frames.first + i;
    taken_[taken_count_++] = run[i];
  }
  if (pages == run.size()) return pages;
  if (pages > 0) {
    core_.frames.untake(frames, frames.count - pages);
    return pages;
  }
  if (frames.count > 1) core_.frames.untake(frames, frames.count - 1);
  after_refused_move(run[0], frames.first, moved);
  return 1;
}

// The first page of a run could not be moved: why, and the other way to take it.
void Evictor::after_refused_move(Victim& victim, std::uint32_t frame, std::int64_t error) {
  FrameRun one{frame, 1};
  if (!victim.word.dirty() && error == -EBUSY) {  // shared since a fork, but clean: no need for its bytes
    core_.frames.untake(one, 1);
    freed_aside_ += static_cast<std::ptrdiff_t>(drop_without_frame(Victims(&victim, 1)));
    return;
  }
  if (error == -EBUSY && core_.kernel.make_exclusive(core_.address_of(victim.page)) == 0 &&
      core_.kernel.move(core_.frames.address_of(frame), core_.address_of(victim.page), kPageSize) ==
          static_cast<std::int64_t>(kPageSize)) {
    victim.frame = frame;
    taken_[taken_count_++] = victim;
    return;
  }
  // Reading a page that is not there would wait for the fault handler, and that waits for us.
  std::uint64_t present = 1;
  if (error == -EINVAL && core_.kernel.present(core_.address_of(victim.page), 1, {&present, 1}) == 0 && present == 0)
    error = -ENOENT;
  if (error == -ENOENT) {  // the program dropped it behind our back: it reads as zeros
    core_.frames.untake(one, 1);
    ++freed_aside_;
    return core_.transitions.found_gone(victim.page, victim.word, false);
  }
  if (error == -EINVAL && take_by_copy(victim, frame)) {
    victim.frame = frame;
    taken_[taken_count_++] = victim;
    return;
  }
  core_.frames.untake(one, 1);
  refuse(victim);
}

// A victim that cannot be taken (pinned by the kernel, no frame): it stays, and comes up again later.
void Evictor::refuse(const Victim& victim) {
  count(Counter::reclaim_refused_pages);
  core_.transitions.stay(victim.page, victim.word);
}

std::uint32_t Evictor::expire_frames(std::uint32_t max, std::uint32_t places) {
  auto decide = [this](std::uint32_t index, Frame& frame) { return core_.transitions.expire(index, frame); };
  return free_now(core_.frames.expire(core_.kernel, max, decide, places));
}

// So many frames have gone back to the kernel.
std::uint32_t Evictor::free_now(std::uint32_t frames) {
  core_.budget.subtract(frames);
  return frames;
}

// The frames of a lost device's pages hold their only copy, and are never free again. Where other devices go on,
// which need frames, those pages go back to the program instead.
void Evictor::empty_frames_of_the_lost() {
  if (core_.devices.count() == 1 || !core_.devices.some_lost()) return;
  for (std::uint32_t index = 0; index < core_.frames.capacity(); ++index) {
    Frame& frame = core_.frames[index];
    if (frame.state.load(std::memory_order_acquire) != FrameState::parked)
      continue;  // pairs with Transitions::park()
    PageIndex page = frame.page.load(std::memory_order_relaxed);
    PageWord word;
    if (!core_.transitions.try_lock(page, PageState::parked, &word)) continue;
    if (word.frame() == index && core_.devices.lost(frame.far.device()) != 0)
      core_.transitions.return_from_frame(page, word);
    else
      core_.transitions.none(page, word);
  }
}

}  // namespace hinterland
