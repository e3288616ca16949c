#include "far/space.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "far/shared_memory.hpp"

// How it works. Two arrays in shared memory: a reference count a page, and a word a slab:
//
//     slab word   63          62..32   31..0
//                 taken from  owner    pages in use (or about to be)
//                 the device
//
// The owner is the process that allocates from the slab. It is an affinity, not a lock: pages are taken by
// compare-and-swap of their count from 0 to 1, and "in use" is raised before and lowered after, so two processes that
// both believe to own a slab, or one that dies half-way, cannot hand a page out twice. A slab goes back to the device
// by the swap of its word to 0, which only succeeds while no page is in use; a former owner notices when its next
// swap on the word fails.

namespace hinterland::far {
namespace {

constexpr std::uint64_t kTaken = std::uint64_t{1} << 63;
constexpr std::uint32_t kNoSlab = UINT32_MAX;
// A page whose last holder is just telling the device to discard it: neither free nor in use.
constexpr std::uint32_t kLeaving = UINT32_MAX;
constexpr std::uint32_t kCountMax = UINT32_MAX - 1;
// An own slab is worth going back to once this much of it is free again: below, its gaps are too short for runs of
// adjacent pages, and scanning for them costs more than the space is worth (at most 1/8 of the device stays idle).
constexpr std::uint32_t kReusePagesMin = kSlabPages / 8;
// After the device was full, it is asked again this much later: a server may have got room again.
constexpr std::uint64_t kFullRetryNs = 10'000'000;
constexpr std::size_t kReleaseBatch = 256;
// Runs of adjacent pages are looked for up to this length; longer ones gain nothing (docs/measurements/floor.md:
// 64 a call).
constexpr std::uint32_t kRunPages = 64;

using SlabWord = std::uint64_t;
constexpr std::uint32_t used_of(SlabWord word) { return static_cast<std::uint32_t>(word); }
constexpr std::uint32_t owner_of(SlabWord word) { return static_cast<std::uint32_t>(word >> 32) & 0x7fffffff; }
constexpr SlabWord make_word(std::uint32_t owner, std::uint32_t used) {
  return kTaken | std::uint64_t{owner} << 32 | used;
}

}  // namespace

struct Space::Shared {
  SharedMemory memory;
  std::uint32_t slabs = 0;

  struct Header {
    std::atomic<std::uint32_t> next_owner;
    std::atomic<std::uint32_t> slabs_ever;  // 1 + highest slab ever taken: bounds scans
    std::atomic<std::uint64_t> returned;    // slabs given back, so that others know the device may have room again
  };
  Header& header() const { return *memory.at<Header>(0); }
  std::atomic<SlabWord>& word(std::uint32_t slab) const { return memory.at<std::atomic<SlabWord>>(kPageSize)[slab]; }
  std::atomic<std::uint32_t>& count(FarPage page) const {
    return memory.at<std::atomic<std::uint32_t>>(kPageSize + page_ceil(slabs * sizeof(SlabWord)))[page.value];
  }
};

// What this process alone knows. The mutex is private to the process and reset in a forked child.
struct Space::Claims {
  Mutex mutex;
  std::uint32_t owner = 0;
  std::uint32_t current = kNoSlab;     // guarded by mutex: the slab pages come from
  std::uint32_t cursor = 0;            // guarded by mutex: page in `current` where the next search begins
  std::uint64_t full_until_ns = 0;     // guarded by mutex: do not ask the device for a slab before
  std::uint64_t full_at_returned = 0;  // guarded by mutex: Header::returned when the device was full
  std::atomic<std::uint32_t> current_hint{kNoSlab};  // `current`, for release() without the mutex
  std::atomic<std::uint32_t> spare{kNoSlab};         // an empty slab kept, so that a swing around zero costs nothing

  void set_current(std::uint32_t slab) {
    current = slab;
    cursor = 0;
    current_hint.store(slab, std::memory_order_relaxed);  // a hint: ordered with nothing
  }
};

Space::Space(Device& device) : device_(device) {}
Space::~Space() = default;

Result<std::unique_ptr<Space>> Space::create(Device& device, std::uint64_t max_bytes) {
  std::unique_ptr<Space> space(new Space(device));
  space->shared_ = std::make_unique<Shared>();
  space->claims_ = std::make_unique<Claims>();
  // A quarter more than the pages need, because slabs are not always full.
  std::uint64_t slabs = max_bytes / kSlabBytes;
  slabs = std::min<std::uint64_t>(slabs + slabs / 4 + 16, kDeviceSlabsMax);
  std::size_t bytes = kPageSize + page_ceil(slabs * sizeof(SlabWord)) + slabs * kSlabPages * sizeof(std::uint32_t);
  auto memory = SharedMemory::reserve(bytes, "the table of far pages");
  if (!memory) return std::unexpected(memory.error());
  space->shared_->memory = std::move(*memory);
  space->shared_->slabs = static_cast<std::uint32_t>(slabs);
  if (Status status = space->holders_.create(slabs * kSlabPages); !status) return std::unexpected(status.error());
  space->place_ = space->holders_.begin();
  space->claims_->owner = 1 + space->shared_->header().next_owner.fetch_add(1, std::memory_order_relaxed);
  space->holders_.set_owner(space->place_, space->claims_->owner);
  return space;
}

void Space::begin_child() { child_place_ = holders_.begin(); }

void Space::cancel_child() {
  if (child_place_ == Holders::kNone) return;
  while (empty(child_place_, kReapPages)) continue;
  holders_.end(std::exchange(child_place_, Holders::kNone));
}

void Space::after_fork_in_child() {
  claims_->mutex.reset_after_fork();
  claims_->owner = 1 + shared_->header().next_owner.fetch_add(1, std::memory_order_relaxed);
  claims_->set_current(kNoSlab);
  claims_->full_until_ns = 0;
  claims_->spare.store(kNoSlab, std::memory_order_relaxed);
  place_ = std::exchange(child_place_, Holders::kNone);
  reaping_ = Holders::kNone;  // the parent goes on with it
  holders_.set_owner(place_, claims_->owner);
}

std::uint64_t Space::pages_in_use() const {
  std::uint64_t pages = 0;
  std::uint32_t end = shared_->header().slabs_ever.load(std::memory_order_acquire);
  for (std::uint32_t slab = 0; slab < end; ++slab)
    pages += used_of(shared_->word(slab).load(std::memory_order_relaxed));
  return pages;
}

std::size_t Space::allocate(std::span<FarPage> out, int* error) {
  LockGuard lock(claims_->mutex);
  std::size_t done = 0;
  while (done < out.size()) {
    std::size_t taken = take_pages_locked(out.subspan(done));
    for (FarPage page : out.subspan(done, taken)) holders_.note(place_, page);
    done += taken;
    if (taken != 0 || find_slab_locked(false)) continue;
    int failure = grow_locked();
    if (failure == 0 || (failure == ENOSPC && find_slab_locked(true))) continue;
    if (done == 0 && error != nullptr) *error = failure;
    break;
  }
  return done;
}

// Takes pages out of the current slab; 0 when it has none or is no longer ours.
std::size_t Space::take_pages_locked(std::span<FarPage> out) {
  std::uint32_t slab = claims_->current;
  if (slab == kNoSlab) return 0;
  auto& word = shared_->word(slab);
  SlabWord seen = word.load(std::memory_order_relaxed);
  std::uint32_t pages;
  do {
    if ((seen & kTaken) == 0 || owner_of(seen) != claims_->owner) {
      claims_->set_current(kNoSlab);
      return 0;
    }
    pages = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), kSlabPages - used_of(seen)));
    if (pages == 0) return 0;
    // acquire: pairs with the release in drop_uses(), so that the counts it set to 0 are seen
  } while (!word.compare_exchange_weak(seen, seen + pages, std::memory_order_acquire, std::memory_order_relaxed));

  std::uint32_t taken = 0;
  for (std::uint32_t shortest : {std::min(pages, kRunPages), 1u}) {
    std::uint32_t before;
    do {
      before = taken;
      taken += static_cast<std::uint32_t>(take_run_locked(shortest, out.subspan(taken, pages - taken)));
    } while (taken != before && taken < pages);
    if (taken == pages) break;
  }
  if (taken < pages) drop_uses(slab, pages - taken);
  return taken;
}

// Takes one run of at least `shortest` adjacent free pages (less when only less is wanted or another process is
// quicker) out of the current slab, searching from the cursor round; 0 when there is none.
std::size_t Space::take_run_locked(std::uint32_t shortest, std::span<FarPage> out) {
  FarPage base{std::uint64_t{claims_->current} * kSlabPages};
  auto count_of = [&](std::uint32_t page) -> auto& { return shared_->count({base.value + page}); };
  auto wanted = static_cast<std::uint32_t>(out.size());
  shortest = std::min(shortest, wanted);
  std::uint32_t run = 0;
  for (std::uint32_t step = 0, page = claims_->cursor; step < kSlabPages; ++step, ++page) {
    if (page == kSlabPages) page = run = 0;
    run = count_of(page).load(std::memory_order_relaxed) == 0 ? run + 1 : 0;
    if (run < shortest) continue;
    page = page + 1 - run;
    std::uint32_t taken = 0;
    for (; taken < wanted && page < kSlabPages; ++taken, ++page) {
      std::uint32_t free = 0;
      // acquire: pairs with the release in finish_release(): the device was told before
      if (!count_of(page).compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed))
        break;
      out[taken] = {base.value + page};
    }
    claims_->cursor = page % kSlabPages;
    return taken;
  }
  return 0;
}

// Makes the slab with the most free pages the current one: of our own those worth it, or with `any` whatever has a
// free page, also other processes' (which then look for another: better than to fail).
bool Space::find_slab_locked(bool any) {
  std::uint32_t end = shared_->header().slabs_ever.load(std::memory_order_acquire);
  std::uint32_t best = kNoSlab, best_used = kSlabPages - (any ? 0 : kReusePagesMin);
  SlabWord best_word = 0;
  for (std::uint32_t slab = 0; slab < end; ++slab) {
    SlabWord word = shared_->word(slab).load(std::memory_order_relaxed);
    if ((word & kTaken) == 0 || used_of(word) >= best_used) continue;
    if (owner_of(word) != claims_->owner && !any) continue;
    best = slab;
    best_used = used_of(word);
    best_word = word;
  }
  if (best == kNoSlab) return false;
  if (owner_of(best_word) != claims_->owner) {
    // relaxed: ownership is an affinity, what it protects is ordered by the counts. A failure means that somebody
    // works on the slab: the caller looks again.
    if (!shared_->word(best).compare_exchange_strong(best_word, make_word(claims_->owner, best_used),
                                                     std::memory_order_relaxed))
      return true;
  }
  std::uint32_t spare = best;
  claims_->spare.compare_exchange_strong(spare, kNoSlab, std::memory_order_relaxed);
  claims_->set_current(best);
  return true;
}

// Takes a slab from the device and makes it the current one; 0 or an errno.
int Space::grow_locked() {
  auto& header = shared_->header();
  std::uint64_t returned = header.returned.load(std::memory_order_acquire);
  if (claims_->full_until_ns != 0 && claims_->full_at_returned == returned && now_ns() < claims_->full_until_ns)
    return ENOSPC;
  auto slab = device_.allocate_slab();
  if (!slab) {
    int code = slab.error().code() != 0 ? slab.error().code() : EIO;
    claims_->full_until_ns = code == ENOSPC ? now_ns() + kFullRetryNs : 0;
    claims_->full_at_returned = returned;
    return code;
  }
  claims_->full_until_ns = 0;
  if (*slab >= shared_->slabs) {
    device_.release_slab(*slab);
    return ENOSPC;
  }
  SlabWord free = 0;
  // release: pairs with whoever reads the word; the device's own state was set before
  if (!shared_->word(*slab).compare_exchange_strong(free, make_word(claims_->owner, 0), std::memory_order_release,
                                                    std::memory_order_relaxed))
    return EPROTO;  // the device gave out a slab that is in use
  std::uint32_t ever = header.slabs_ever.load(std::memory_order_relaxed);
  while (ever <= *slab && !header.slabs_ever.compare_exchange_weak(ever, *slab + 1, std::memory_order_release,
                                                                   std::memory_order_relaxed)) {
  }
  claims_->set_current(*slab);
  return 0;
}

void Space::retain(std::span<const FarPage> pages) {
  for (FarPage page : pages) {
    // relaxed: the caller holds the page already, so nothing can happen to it
    std::uint32_t before = shared_->count(page).fetch_add(1, std::memory_order_relaxed);
    HL_CHECK(before != 0 && before < kCountMax);
    holders_.note(child_place_, page);
  }
}

void Space::borrow(std::span<const FarPage> pages) {
  for (FarPage page : pages) {
    // relaxed: as in retain()
    std::uint32_t before = shared_->count(page).fetch_add(1, std::memory_order_relaxed);
    HL_CHECK(before != 0 && before < kCountMax);
  }
}

void Space::release(std::span<const FarPage> pages) {
  // First: a process that dies in between keeps a page for good; the other way round it would be let go twice.
  for (FarPage page : pages) holders_.forget(place_, page);
  let_go(pages);
}

void Space::let_go(std::span<const FarPage> pages) {
  std::array<FarPage, kReleaseBatch> leaving;
  std::size_t count = 0;
  for (FarPage page : pages) {
    if (!let_go_of(page)) continue;
    leaving[count++] = page;
    if (count == leaving.size()) finish_release(std::span(leaving).first(std::exchange(count, 0)));
  }
  if (count != 0) finish_release(std::span(leaving).first(count));
}

// One holder less. True: it was the last, and the caller has the page freed.
bool Space::let_go_of(FarPage page) {
  auto& holders = shared_->count(page);
  std::uint32_t seen = holders.load(std::memory_order_relaxed);
  do {
    HL_CHECK(seen != 0 && seen != kLeaving);
    // release: what this holder read or wrote is done before another frees the page; acquire: the reverse
  } while (!holders.compare_exchange_weak(seen, seen == 1 ? kLeaving : seen - 1, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  return seen == 1;
}

// The device is told first: once a page is free another thread may write it anew.
void Space::finish_release(std::span<const FarPage> pages) {
  device_.discard(pages);
  // release: pairs with the acquire in take_run_locked()
  for (FarPage page : pages) shared_->count(page).store(0, std::memory_order_release);
  for (std::size_t at = 0; at < pages.size();) {
    std::uint32_t slab = pages[at].slab(), run = 0;
    while (at < pages.size() && pages[at].slab() == slab) ++at, ++run;
    drop_uses(slab, run);
  }
}

// Lets go of pages of a place whose process is gone, or never was. False: none are left. May end at any step, with
// this process: then the next to empty the place goes on, and one page at most is kept for good.
bool Space::empty(std::uint32_t place, std::size_t pages_max) {
  const std::uint64_t end = std::uint64_t{shared_->header().slabs_ever.load(std::memory_order_acquire)} * kSlabPages;
  for (std::size_t done = 0;;) {
    finish_leaving(place);
    if (done >= pages_max) return true;
    std::size_t taken = 0;
    for (FarPage page; taken < Holders::kLeavingMax && holders_.take(place, end, &page); ++taken)
      if (let_go_of(page)) holders_.add_leaving(place, page);
    if (taken == 0) return false;
    done += taken;
  }
}

// As finish_release(), page by page.
void Space::finish_leaving(std::uint32_t place) {
  const std::span<const FarPage> leaving = holders_.leaving(place);
  if (leaving.empty()) return;
  device_.discard(leaving);
  for (FarPage page; holders_.take_leaving(place, &page);) {
    // release: pairs with the acquire in take_run_locked()
    shared_->count(page).store(0, std::memory_order_release);
    drop_uses(page.slab(), 1);
  }
}

bool Space::reap() {
  if (reaping_ == Holders::kNone) reaping_ = holders_.find_dead(place_);
  if (reaping_ == Holders::kNone) return false;
  if (empty(reaping_, kReapPages)) return true;
  return_slabs_of(holders_.owner(reaping_));
  holders_.end(std::exchange(reaping_, Holders::kNone));
  return true;
}

// Empty slabs that a process kept to allocate from, and now never will.
void Space::return_slabs_of(std::uint32_t owner) {
  std::uint32_t end = shared_->header().slabs_ever.load(std::memory_order_acquire);
  for (std::uint32_t slab = 0; slab < end; ++slab) {
    SlabWord empty = make_word(owner, 0);
    // acquire: all counts of the slab are 0 before it goes
    if (!shared_->word(slab).compare_exchange_strong(empty, 0, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    device_.release_slab(slab);
    shared_->header().returned.fetch_add(1, std::memory_order_release);
  }
}

// Lowers "in use"; the last one gives the slab back to the device unless it is worth keeping.
void Space::drop_uses(std::uint32_t slab, std::uint32_t pages) {
  auto& word = shared_->word(slab);
  SlabWord seen = word.load(std::memory_order_relaxed), next;
  do {
    HL_CHECK_OP(used_of(seen), >=, pages);
    bool empty = used_of(seen) == pages;
    next = empty && !(owner_of(seen) == claims_->owner && keep_as_spare(slab)) ? 0 : seen - pages;
    // release: pairs with the acquire in take_pages_locked(); acquire: all counts of the slab are 0 before it goes
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (next != 0) return;
  device_.release_slab(slab);
  shared_->header().returned.fetch_add(1, std::memory_order_release);
}

// Whether an own slab that became empty stays ours. Races only decide whether one more or one less is kept.
bool Space::keep_as_spare(std::uint32_t slab) {
  auto is_empty_and_ours = [&](std::uint32_t other) {
    return other != kNoSlab && shared_->word(other).load(std::memory_order_relaxed) == make_word(claims_->owner, 0);
  };
  std::uint32_t current = claims_->current_hint.load(std::memory_order_relaxed);
  if (current == slab) return true;
  std::uint32_t spare = claims_->spare.load(std::memory_order_relaxed);
  if (spare == slab) return true;
  if (is_empty_and_ours(current) || is_empty_and_ours(spare)) return false;
  return claims_->spare.compare_exchange_strong(spare, slab, std::memory_order_relaxed);
}

}  // namespace hinterland::far
