#include "object/evacuator.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/inside.hpp"
#include "base/stats.hpp"
#include "object/heap.hpp"
#include "paging/place/runtime_thread.hpp"

namespace hinterland::object {
namespace {

// A region's lock is held for so many objects at a time: their pointers lie anywhere, so that each may be a miss of
// the processor's caches, and a pointer that moves or ends waits meanwhile.
constexpr std::size_t kMarkedTogether = 32;
// And so many are busy at a time: who dereferences one waits while all are copied.
constexpr std::size_t kBusyTogether = 16;
// Pages that kBusyTogether objects may need: there must be as many, for nothing may be busy while a device works.
constexpr std::uint32_t kPagesTogether = 16;
static_assert(kPagesTogether < FarWriter::kPages);
// A round is this share of the memory, so that what it costs once (the barrier, the wait) is spread.
constexpr std::uint64_t kRoundShare = 20, kRoundRegionsMax = 16;
constexpr int kVainRounds = 8;
constexpr std::uint64_t kStuckRetryNs = 100'000'000, kVainNs = 500'000;

void pause_ns(std::uint64_t ns) {
  std::atomic<std::uint32_t> nobody{0};
  futex_wait(&nobody, 0, ns);
}

}  // namespace

FarLog* Evacuator::heap_far(Heap& heap) { return &heap.far(); }

// --- the thread
// ------------------------------------------------------------------------------------------------------

Status Evacuator::begin() {
  ended_.store(0, std::memory_order_relaxed);
  Status started = start_runtime_thread("hl-evacuator", this, main);
  if (!started) ended_.store(1, std::memory_order_relaxed);
  return started;
}

void Evacuator::wait_for_end() {
  while (ended_.load(std::memory_order_acquire) == 0) futex_wait(&ended_, 0);  // pairs with main()
}

void* Evacuator::main(void* self) {
  auto& evacuator = *static_cast<Evacuator*>(self);
  // All that it allocates is local memory (base/inside.hpp).
  InsideRuntime inside;
  evacuator.work();
  evacuator.ended_.store(1, std::memory_order_release);
  futex_wake(&evacuator.ended_, INT32_MAX);
  return nullptr;
}

Status Evacuator::after_fork_in_child(std::unique_ptr<Port> port) {
  working_.reset_after_fork();
  ended_.store(1, std::memory_order_relaxed);
  const bool able = port != nullptr;
  writer_.after_fork_in_child(std::move(port));
  return able ? begin() : Status{};
}

void Evacuator::work() {
  if (number_ == 0) heap_.far_->enter_process();
  while (!heap_.stopping_.load(std::memory_order_relaxed)) {
    const std::uint64_t sleep_ns = number_ == 0 ? keep_house() : 0;
    // Its exchange pairs with the store of who asks: what made them ask is seen.
    if (heap_.asked_.exchange(0, std::memory_order_acquire) == 0 && !wait_until_wanted(sleep_ns)) continue;
    make_room();
    if (number_ == 0) clean();
  }
}

// True when nobody asks, but memory is still beyond the limit after a while: a program to which all is local has no
// reason to ask.
bool Evacuator::wait_until_wanted(std::uint64_t sleep_ns) {
  const auto is_beyond = [&] { return heap_.memory_.used() > heap_.memory_.limit(); };
  if (!is_beyond()) {
    futex_wait(&heap_.asked_, 0, sleep_ns);
    return false;
  }
  futex_wait(&heap_.asked_, 0, kStuckRetryNs);
  return heap_.asked_.load(std::memory_order_relaxed) == 0 && is_beyond();
}

// For how long nothing has to be done, in ns.
std::uint64_t Evacuator::keep_house() {
  for (;;) {
    LockGuard guard(working_);  // no fork meanwhile
    heap_.show_figures();
    if (const std::uint64_t ns = heap_.far_->keep_house(); ns != 0) return ns;
  }
}

void Evacuator::make_room() {
  for (int vain = 0;
       !heap_.stopping_.load(std::memory_order_relaxed) && heap_.local_->regions_left() < heap_.high_regions();) {
    std::int64_t freed;
    {
      LockGuard guard(working_);
      vain_ = vain;
      if (heap_.orphans_.load(std::memory_order_relaxed)) heap_.keep_orphans();
      freed = round();
    }
    if (number_ == 0) heap_.show_figures();
    if (error_ != 0) {
      heap_.is_stuck(error_);
      return pause_ns(kStuckRetryNs);
    }
    if (freed > 0) {
      vain = 0;
      heap_.made_room();
      continue;
    }
    if (heap_.interrupted_.load(std::memory_order_relaxed)) {  // a fork begins, and waits for this one
      sched_yield();
      continue;
    }
    // All of it is in use, or held by scopes.
    if (++vain < kVainRounds) continue;
    heap_.is_stuck(0);
    return pause_ns(kVainNs);
  }
}

void Evacuator::clean() {
  while (!heap_.stopping_.load(std::memory_order_relaxed) &&
         heap_.local_->regions_left() >= heap_.pressed_regions()) {
    LockGuard guard(working_);
    if (!heap_.far_->clean(writer_.port())) return;
  }
}

// --- a round
// ---------------------------------------------------------------------------------------------------------

std::int64_t Evacuator::round() {
  error_ = 0;
  moved_bytes_ = left_ = 0;
  claim();
  for (Region* region : regions_) mark(*region);
  const bool nobody_holds = !regions_.empty() && heap_.grace_.wait(heap_.interrupted_);
  std::int64_t freed = 0;
  if (nobody_holds) {
    // acquire: pairs with the end of the scope in which it was pinned, or with the arrival, through Grace::wait()
    for (Region* region : regions_)
      if (region->pins.load(std::memory_order_acquire) == 0) empty(*region);
    write_placed();
    empty_waiting();
  }
  for (Region* region : regions_) {
    const bool to_be_looked_at = nobody_holds && region->pins.load(std::memory_order_relaxed) == 0;
    const LocalLog::Left left = to_be_looked_at ? what_is_left(*region) : LocalLog::Left::some;
    freed += left == LocalLog::Left::nothing;
    heap_.local_->let_go(*region, left);
  }
  regions_.clear();
  heap_.figures_.left.fetch_add(left_, std::memory_order_relaxed);
  count(Counter::object_evacuations, left_);
  return freed - static_cast<std::int64_t>(moved_bytes_ / kRegionBytes);
}

// Twice as many after each round in vain, and those that are being filled: what holds objects of other regions leaves
// in one round with them.
void Evacuator::claim() {
  const std::uint64_t wanted =
      std::clamp<std::uint64_t>(heap_.local_->regions_limit() / kRoundShare, 1, kRoundRegionsMax) << vain_;
  for (int pass = 0; pass < 2 && regions_.empty(); ++pass) {
    if (pass == 1 || vain_ != 0) {  // all there is may lie in regions that are being filled
      heap_.seal_lanes();
      heap_.local_->seal(lane_);
    }
    while (regions_.size() < wanted) {
      Region* region = heap_.local_->claim();
      if (region == nullptr) break;
      regions_.push_back(region);
    }
  }
}

void Evacuator::mark(Region& region) {
  some_.clear();
  heap_.local_->walk(region, [&](Header* header) {
    if (header->owner() <= Header::kMaking) return;
    some_.push_back(header);
    if (some_.size() == kMarkedTogether) mark_some(region);
  });
  mark_some(region);
}

void Evacuator::mark_some(Region& region) {
  LockGuard guard(region.lock);
  for (const Header* header : some_)
    if (header->owner() > Header::kMaking) __builtin_prefetch(header->owner_word(), 1);
  for (Header* header : some_) {
    if (header->owner() <= Header::kMaking) continue;
    Word* word = header->owner_word();
    std::uint64_t value = word->load(std::memory_order_relaxed);
    // Being brought, it is not there yet; marked in a round that came to nothing, it is leaving already.
    while (is_local(value) && address_of(value) == header->object()) {
      const std::uint64_t leaving = (value & kAddress) | kLeaving | ((value & kCold) != 0 ? 0 : kWasHot) |
                                    ((value & kClean) != 0 ? kWasClean : 0);
      // release: nothing to publish but the mark itself, which Grace::wait()'s barrier makes seen.
      if (word->compare_exchange_weak(value, leaving, std::memory_order_release, std::memory_order_relaxed)) break;
    }
  }
  some_.clear();
}

void Evacuator::empty(Region& region) {
  some_.clear();
  heap_.local_->walk(region, [&](Header* header) {
    if (header->owner() <= Header::kMaking) return;
    // One with pointers is dealt with alone: while it is busy, what it points to must not be busy by our own hand.
    if (header->typed() || !heap_.is_packed(header)) empty_some(region);
    some_.push_back(header);
    if (header->typed() || !heap_.is_packed(header) || some_.size() == kBusyTogether) empty_some(region);
  });
  empty_some(region);
}

void Evacuator::empty_some(Region& region) {
  if (some_.empty()) return;
  if (writer_.open_pages() + kPagesTogether > FarWriter::kPages) write_placed();
  busy_.clear();
  {
    LockGuard guard(region.lock);
    for (Header* header : some_) {
      if (header->owner() <= Header::kMaking) continue;
      std::uint64_t value = header->owner_word()->load(std::memory_order_relaxed);
      if (!is_kind(value, kLeaving) || address_of(value) != header->object()) continue;  // it stays
      // acquire: pairs with the release of scope::close() through Grace::wait(), and with who made it leave here.
      if (header->owner_word()->compare_exchange_strong(value, value | kBusy, std::memory_order_acquire))
        busy_.emplace_back(header, value);
    }
  }
  some_.clear();
  for (auto [header, value] : busy_) take_out(header, value);
}

// Of a busy object: `value` is its word without that.
void Evacuator::take_out(Header* header, std::uint64_t value) {
  if ((value & kWasHot) != 0 && vain_ == 0) return move_on(header, value);
  Word* word = header->owner_word();
  if ((value & kWasClean) != 0) {
    const std::uint64_t location = *heap_.location_at(header);
    HL_DCHECK(location != 0);
    heap_.figures_.left_clean.fetch_add(1, std::memory_order_relaxed);
    ++left_;
    const bool packed = heap_.is_packed(header);
    const std::uint64_t far = packed
                                  ? far_word(location, heap_.far_units(header), header->typed(), header->alignment())
                                  : location | kFarLarge;
    heap_.end_locked(header);  // no pointer is its owner any more once the word is far
    word->store(far, std::memory_order_release);
    return;
  }
  if (header->typed() && holds_local_objects(header)) {
    word->store(value, std::memory_order_release);
    return waiting_.push_back(header);
  }
  write_out(header, value);
}

void Evacuator::write_out(Header* header, std::uint64_t value) {
  Word* word = header->owner_word();
  heap_.give_up_far_copy(header);
  if (!heap_.is_packed(header)) {
    word->store(value, std::memory_order_release);
    return write_large(header);
  }
  const std::uint32_t units = heap_.far_units(header);
  const Location location = writer_.place(header->object(), units);
  if (location == 0) {
    error_ = writer_.error();
    return stay(header, value);
  }
  placed_.push_back({header, location, writer_.page_index(), units});
  // Its bytes are taken; whoever wants it until it is written may have it back.
  word->store(value, std::memory_order_release);
}

// With its word's value, if it still leaves.
template <typename Call>
void Evacuator::while_busy(Header* header, Call&& call) {
  Word* word;
  std::uint64_t value;
  {
    LockGuard guard(heap_.local_->region_of(header).lock);
    if (header->owner() <= Header::kMaking) return;
    word = header->owner_word();
    value = word->load(std::memory_order_relaxed);
    if (!is_kind(value, kLeaving) || address_of(value) != header->object()) return;
    // acquire: pairs with the release of scope::close() through Grace::wait(), and with who made it leave here.
    if (!word->compare_exchange_strong(value, value | kBusy, std::memory_order_acquire)) return;
  }
  call(value);
}

// The one that this word may lie in, or nullptr. waiting_ is sorted.
Header* Evacuator::waiting_holder_of(const Word* word) const {
  auto behind = std::ranges::upper_bound(waiting_, reinterpret_cast<std::uintptr_t>(word), {},
                                         [](Header* header) { return reinterpret_cast<std::uintptr_t>(header); });
  return behind == waiting_.begin() ? nullptr : behind[-1];
}

// What holds others can leave only behind them: their words lie in it, and must not change once it is far. So a list
// leaves from its end to its beginning. Each becomes far as soon as the last of what it holds has; what still waits
// when nothing has become far any more holds what stays, and moves on.
void Evacuator::empty_waiting() {
  std::ranges::sort(waiting_);
  while (!far_words_.empty() && error_ == 0) {
    some_.clear();
    for (const Word* word : far_words_)
      if (Header* holder = waiting_holder_of(word)) some_.push_back(holder);
    far_words_.clear();
    std::ranges::sort(some_);
    some_.erase(std::ranges::unique(some_).begin(), some_.end());  // who holds several of them is placed once
    for (Header* header : some_) {
      if (writer_.open_pages() + kPagesTogether > FarWriter::kPages) write_placed();
      while_busy(header, [&](std::uint64_t value) {
        if (!holds_local_objects(header)) return write_out(header, value);
        header->owner_word()->store(value, std::memory_order_release);
      });
    }
    write_placed();
  }
  some_.clear();
  far_words_.clear();
  for (Header* header : waiting_)
    while_busy(header, [&](std::uint64_t value) { error_ != 0 ? stay(header, value) : move_on(header, value); });
  waiting_.clear();
}

void Evacuator::stay(Header* header, std::uint64_t value) {
  header->owner_word()->store((value & kAddress) | kCold | ((value & kWasClean) != 0 ? kClean : 0),
                              std::memory_order_release);
}

bool Evacuator::holds_local_objects(Header* header) const {
  bool found = false;
  heap_.type_of(header)->each(
      header->object(),
      [](void* context, Word* word) {
        const std::uint64_t value = word->load(std::memory_order_relaxed);
        if (value != 0 && !is_kind(value, kFar) && !is_kind(value, kFarLarge)) *static_cast<bool*>(context) = true;
      },
      &found);
  return found;
}

void Evacuator::move_on(Header* header, std::uint64_t value) {
  const std::uint64_t units = header->units();
  // A span lies in regions of its own: nothing is gained where it moves.
  Header* to = units == 0
                   ? nullptr
                   : heap_.local_->place(lane_, {units, kAlignments[header->alignment()]}, LocalLog::For::evacuator);
  if (to == nullptr) return stay(header, value);
  const std::size_t bytes = units * kUnit - sizeof(Header);
  if (!header->typed()) {
    std::memcpy(to->object(), header->object(), bytes);
  } else {
    // Evacuators that work on what it points to may change the pointers in it until they have moved.
    for (std::size_t at = 0; at < bytes; at += kUnit)
      *reinterpret_cast<std::uint64_t*>(to->object() + at) =
          reinterpret_cast<std::atomic<std::uint64_t>*>(header->object() + at)->load(std::memory_order_relaxed);
    struct Context {
      Heap* heap;
      std::ptrdiff_t distance;  // from the new object to the old
    } context{&heap_, header->object() - to->object()};
    heap_.type_of(header)->each(
        to->object(),
        [](void* given, Word* word) {
          auto& [heap, distance] = *static_cast<Context*>(given);
          word->store(0, std::memory_order_relaxed);
          heap->move(reinterpret_cast<Word*>(reinterpret_cast<std::byte*>(word) + distance), word);
        },
        &context);
  }
  Word* word = header->owner_word();
  to->set(units, header->value() & (Header::kPlaced | Header::kIsTyped | std::uint64_t{3} << Header::kAlignmentShift),
          header->owner());
  heap_.end_locked(header);
  // release: pairs with the acquire of who dereferences it.
  word->store(reinterpret_cast<std::uint64_t>(to->object()) | kCold | ((value & kWasClean) != 0 ? kClean : 0),
              std::memory_order_release);
  moved_bytes_ += units * kUnit;
  heap_.figures_.moved_on.fetch_add(1, std::memory_order_relaxed);
}

// --- large objects, which are copied and written piece by piece
// ------------------------------------------------------

// A piece, unless somebody wants the object: then all pieces are in vain, for it may change.
bool Evacuator::copy_piece(Header* header, std::uint64_t offset, std::byte* to, std::uint64_t bytes) {
  bool copied = false;
  while_busy(header, [&](std::uint64_t value) {
    std::memcpy(to, header->object() + offset, bytes);
    header->owner_word()->store(value, std::memory_order_release);
    copied = true;
  });
  return copied;
}

void Evacuator::write_large(Header* header) {
  write_placed();
  const std::uint64_t bytes = heap_.object_bytes(header) + (header->typed() ? kUnit : 0);
  LargeObject* written = writer_.write_large(bytes, [&](std::uint64_t offset, std::byte* to, std::uint64_t piece) {
    return copy_piece(header, offset, to, piece);
  });
  if (written == nullptr) {
    if (writer_.error() != 0) error_ = writer_.error();
    return;
  }
  written->typed = header->typed();
  written->alignment = header->alignment();
  LockGuard guard(heap_.local_->region_of(header).lock);
  const std::uint64_t far = reinterpret_cast<std::uint64_t>(written) | kFarLarge;
  if (!become_far_locked(header, far)) heap_.far_->free_large(written);
}

// --- what was placed becomes far
// ---------------------------------------------------------------------------------------

// False: it was used meanwhile, or has ended.
bool Evacuator::become_far_locked(Header* header, std::uint64_t far) {
  if (header->owner() <= Header::kMaking) return false;
  Word* word = header->owner_word();
  std::uint64_t value = word->load(std::memory_order_relaxed);
  if (!is_kind(value, kLeaving) || address_of(value) != header->object()) return false;
  // release: pairs with the acquire of who brings it: it was written before.
  if (!word->compare_exchange_strong(value, far, std::memory_order_release, std::memory_order_relaxed)) return false;
  heap_.end_locked(header);
  ++left_;
  if (!waiting_.empty()) far_words_.push_back(word);
  return true;
}

void Evacuator::write_placed() {
  if (writer_.flush() != 0) {
    error_ = writer_.error();
    heap_.figures_.errors.fetch_add(1, std::memory_order_relaxed);
  }
  for (std::size_t at = 0; at < placed_.size();) {
    Region& region = heap_.local_->region_of(placed_[at].header);
    LockGuard guard(region.lock);
    for (const std::size_t end = std::min(at + kMarkedTogether, placed_.size());
         at < end && &heap_.local_->region_of(placed_[at].header) == &region; ++at) {
      const auto& [header, location, page_index, units] = placed_[at];
      const std::uint64_t far = far_word(location, units, header->typed(), header->alignment());
      if (writer_.failed(page_index) || !become_far_locked(header, far)) heap_.far_->free(location, units);
    }
  }
  placed_.clear();
}

// All scopes have ended since, and what is made is made within one: what is still being made never will be.
LocalLog::Left Evacuator::what_is_left(const Region& region) const {
  LocalLog::Left left = LocalLog::Left::nothing;
  heap_.local_->walk(region, [&](const Header* header) {
    const std::uint64_t owner = header->owner();
    left = std::max(left, owner == 0                 ? LocalLog::Left::nothing
                          : owner == Header::kMaking ? LocalLog::Left::orphans
                                                     : LocalLog::Left::some);
  });
  return left;
}

}  // namespace hinterland::object
