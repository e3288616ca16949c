#include "object/heap.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/raw_call.hpp"
#include "base/stats.hpp"
#include "object/arrivals.hpp"
#include "object/evacuator.hpp"

namespace hinterland::object {
namespace {

using hl::far::detail::kReachNontemporal;
using hl::far::detail::kReachWrite;

constexpr unsigned kSpins = kStepped ? 1 : 100;
// One miss in so many is timed: a look at the clock costs a twentieth of one.
constexpr std::uint64_t kMissesATimed = 16;

// So often who waits for an object looks whether it comes by a read that nobody else gathers, and whether such a read
// has begun since.
constexpr std::uint64_t kGatherNs = 50'000, kLookNs = 5'000'000;

// An evacuator holds a word busy for some copies; it may have lost its processor meanwhile.
void pause(unsigned* spins) { ++*spins % kSpins == 0 ? static_cast<void>(sched_yield()) : __builtin_ia32_pause(); }

std::size_t rounded(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + kUnit - 1) & ~(kUnit - 1); }

}  // namespace

Result<std::unique_ptr<Heap>> Heap::create(const HeapOptions& options, std::unique_ptr<far::Device> device,
                                           Grace& grace) {
  if (options.local_bytes < HeapOptions::kLocalBytesMin)
    return std::unexpected(Error::make(EINVAL, "local memory for far objects must be at least %zu MiB",
                                       static_cast<std::size_t>(HeapOptions::kLocalBytesMin / kMiB)));
  if (options.evacuators < 1 || options.evacuators > HeapOptions::kEvacuatorsMax)
    return std::unexpected(
        Error::make(EINVAL, "between 1 and %u threads can make room for far objects", HeapOptions::kEvacuatorsMax));
  std::unique_ptr<Heap> heap(new Heap(options.local_bytes, grace));
  // Room for what evacuators move while there is none for others.
  const std::uint64_t reserved = std::uint64_t{options.evacuators} * kRegionBytes;
  auto local = LocalLog::create(heap->memory_, options.arena_bytes, reserved);
  if (!local) return std::unexpected(local.error());
  heap->local_ = std::move(*local);
  auto far = FarLog::create(std::move(device), options.far_bytes_max);
  if (!far) return std::unexpected(far.error());
  heap->far_ = std::move(*far);
  const std::uint64_t regions = heap->local_->regions_limit();
  // A lane for each processor, as far as a sixteenth of the memory goes; one at least.
  const auto processors = static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const std::uint64_t lanes = std::clamp<std::uint64_t>(regions / 16, 1, processors);
  for (std::uint64_t i = 0; i < 2 * lanes; ++i) {
    heap->lanes_.push_back(std::make_unique<Lane>());
    heap->lanes_.back()->nontemporal = i >= lanes;
  }
  for (unsigned i = 0; i < options.evacuators; ++i) {
    auto port = heap->far_->open_port();
    if (!port) return std::unexpected(port.error());
    heap->evacuators_.push_back(std::make_unique<Evacuator>(*heap, i, std::move(*port)));
  }
  const far::DeviceInfo& info = heap->far_->device().info();
  if (!info.synchronous && !info.direct) heap->arrivals_ = std::make_unique<Arrivals>(*heap);
  return heap;
}

Heap::Heap(std::uint64_t local_bytes, Grace& grace) : memory_(local_bytes), grace_(grace) {}

Status Heap::begin() {
  for (auto& evacuator : evacuators_)
    if (Status begun = evacuator->begin(); !begun) return begun;
  return {};
}

Heap::~Heap() {
  stopping_.store(true, std::memory_order_relaxed);
  interrupted_.store(true, std::memory_order_relaxed);
  for (auto& evacuator : evacuators_) {
    asked_.store(1, std::memory_order_release);
    futex_wake(&asked_, INT32_MAX);
    evacuator->wait_for_end();
  }
  arrivals_.reset();
  grace_.set_pressed(false);
}

// --- an object's parts
// -----------------------------------------------------------------------------------------------

std::size_t Heap::object_bytes(const Header* header) const {
  return local_->bytes_of(header) - sizeof(Header) - (header->placed() ? kUnit : 0) - (header->typed() ? kUnit : 0);
}

std::uint64_t* Heap::location_at(Header* header) const {
  const std::size_t at = object_bytes(header) + (header->typed() ? kUnit : 0);
  return reinterpret_cast<std::uint64_t*>(header->object() + at);
}

std::uint32_t Heap::far_units(const Header* header) const {
  return static_cast<std::uint32_t>((object_bytes(header) + (header->typed() ? kUnit : 0)) / kUnit);
}

const Type* Heap::type_of(Header* header) const {
  return *reinterpret_cast<const Type* const*>(header->object() + object_bytes(header));
}

void Heap::give_up_far_copy(Header* header) {
  if (!header->placed()) return;
  const std::uint64_t location = std::exchange(*location_at(header), 0);
  if (location == 0) return;
  if (is_packed(header))
    far_->free(location, far_units(header));
  else
    far_->free_large(reinterpret_cast<LargeObject*>(location));
}

void Heap::end_locked(Header* header) {
  local_->region_of(header).live_bytes.fetch_sub(local_->bytes_of(header), std::memory_order_relaxed);
  header->set_owner(0);
}

// --- made and ended
// --------------------------------------------------------------------------------------------------

void* Heap::begin_object(std::size_t bytes, std::size_t alignment, const Type* type, bool nontemporal, bool at_once,
                         bool may_go_beyond) {
  Header* header =
      room({rounded(bytes), alignment_class(alignment), type != nullptr, false, nontemporal, may_go_beyond, at_once});
  if (header == nullptr) return nullptr;
  if (type != nullptr) *reinterpret_cast<const Type**>(header->object() + object_bytes(header)) = type;
  return header->object();
}

void Heap::finish_object(void* object, Word* owner) {
  // The word first: an evacuator that reads the owner finds the object's address there. release: pairs with the
  // acquire of who dereferences it. New objects are cold: a program that only fills its memory would have them all
  // moved once otherwise, before they become far.
  owner->store(reinterpret_cast<std::uint64_t>(object) | kCold, std::memory_order_release);
  Header::of(object)->set_owner(Header::owner_of(owner));
}

void Heap::drop_object(void* object) {
  Header* header = Header::of(object);
  LockGuard guard(local_->region_of(object).lock);
  end_locked(header);
}

void Heap::release(Word* word) {
  for (unsigned spins = 0;;) {
    std::uint64_t value = word->load(std::memory_order_acquire);
    if (value == 0) return;
    if (is_busy(value)) {
      pause(&spins);
      continue;
    }
    if (is_kind(value, kArriving)) {
      wait_for_arrival(word, value, &spins);
      continue;
    }
    if (is_kind(value, kFar) || is_kind(value, kFarLarge)) {
      word->store(0, std::memory_order_relaxed);
      if (is_kind(value, kFar)) return far_->free(location_of(value), far_units_of(value));
      return far_->free_large(reinterpret_cast<LargeObject*>(value & kAddress));
    }
    Region& region = local_->region_of(address_of(value));
    LockGuard guard(region.lock);
    // It may have been moved, or become far, since.
    const std::uint64_t now = word->load(std::memory_order_acquire);
    if (address_of(now) != address_of(value) || !(is_local(now) || is_kind(now, kLeaving)) || is_busy(now)) continue;
    word->store(0, std::memory_order_relaxed);
    Header* header = Header::of(address_of(now));
    give_up_far_copy(header);
    return end_locked(header);
  }
}

void Heap::move(Word* from, Word* to) {
  for (unsigned spins = 0;;) {
    std::uint64_t value = from->load(std::memory_order_acquire);
    if (is_busy(value)) {
      pause(&spins);
      continue;
    }
    if (is_kind(value, kArriving)) {
      wait_for_arrival(from, value, &spins);
      continue;
    }
    if (value == 0 || is_kind(value, kFar) || is_kind(value, kFarLarge)) {
      to->store(value, std::memory_order_release);
      return from->store(0, std::memory_order_relaxed);
    }
    Region& region = local_->region_of(address_of(value));
    LockGuard guard(region.lock);
    const std::uint64_t now = from->load(std::memory_order_acquire);
    if (address_of(now) != address_of(value) || !(is_local(now) || is_kind(now, kLeaving)) || is_busy(now)) continue;
    // Under the lock no evacuator looks at either word.
    to->store(now, std::memory_order_release);
    from->store(0, std::memory_order_relaxed);
    return Header::of(address_of(now))->set_owner(Header::owner_of(to));
  }
}

// --- reached
// ---------------------------------------------------------------------------------------------------------

void* Heap::reach_there(Word* word, std::uint32_t flags, std::uint64_t* seen, bool patient) {
  const bool write = (flags & kReachWrite) != 0, lasting = (flags & kReachNontemporal) == 0;
  *seen = 0;
  for (unsigned spins = 0;;) {
    std::uint64_t value = word->load(std::memory_order_acquire);
    if (is_local(value)) {
      const std::uint64_t wanted = value & ~((lasting ? kCold : 0) | (write ? kClean : 0));
      // relaxed: the object's bytes came with the load above; what is taken away orders nothing.
      if (wanted == value || word->compare_exchange_weak(value, wanted, std::memory_order_relaxed))
        return address_of(value);
    } else if (is_busy(value) && patient) {
      pause(&spins);
    } else if (is_kind(value, kLeaving) && !is_busy(value)) {
      const std::uint64_t clean = (value & kWasClean) != 0 && !write ? kClean : 0;
      // acq_rel: the evacuator that fails to take it after this sees that it stays.
      if (!word->compare_exchange_weak(value, (value & kAddress) | clean, std::memory_order_acq_rel)) continue;
      figures_.stayed.fetch_add(1, std::memory_order_relaxed);
      return address_of(value);
    } else {
      *seen = value;
      return nullptr;
    }
  }
}

void* Heap::reach(Word* word, std::uint32_t flags, int* error) {
  for (unsigned spins = 0;;) {
    std::uint64_t value;
    if (void* there = reach_there(word, flags, &value); there != nullptr || value == 0) return there;
    if (is_kind(value, kArriving))
      wait_for_arrival(word, value, &spins);
    else if (word->compare_exchange_weak(value, kArriving, std::memory_order_acquire))
      return fetch(word, value, flags, error);
  }
}

void Heap::wait_for_arrival(Word* word, std::uint64_t value, unsigned* spins) {
  if (++*spins < kSpins) return __builtin_ia32_pause();
  // It may come by a read that a fiber or coroutine of this very thread has begun.
  if (arrivals_ != nullptr && arrivals_->drive()) return;
  if ((value & kWaited) == 0 && !word->compare_exchange_strong(value, value | kWaited, std::memory_order_relaxed))
    return;
  // The kind is in the lower half, which stands first.
  futex_wait(reinterpret_cast<std::atomic<std::uint32_t>*>(word), static_cast<std::uint32_t>(kArriving | kWaited),
             arrivals_ == nullptr     ? 0
             : arrivals_->any_begun() ? kGatherNs
                                      : kLookNs);
}

// Ends arriving.
void Heap::settle_word(Word* word, std::uint64_t value) {
  // release: pairs with the acquire of who dereferences it: the object's bytes are there.
  const std::uint64_t before = word->exchange(value, std::memory_order_release);
  if ((before & kWaited) != 0) futex_wake(reinterpret_cast<std::atomic<std::uint32_t>*>(word), INT32_MAX);
}

Header* Heap::room_for_far(std::uint64_t value, std::uint32_t flags, bool may_go_beyond, bool at_once) {
  Asked asked{0, 0, false, true, (flags & kReachNontemporal) != 0, may_go_beyond, at_once};
  if (is_kind(value, kFar)) {
    asked.typed = (value & kTyped) != 0;
    asked.bytes = (far_units_of(value) - (asked.typed ? 1 : 0)) * kUnit;
    asked.alignment = far_alignment_of(value);
  } else {
    const auto* object = reinterpret_cast<const LargeObject*>(value & kAddress);
    asked.typed = object->typed;
    asked.bytes = object->bytes - (asked.typed ? kUnit : 0);
    asked.alignment = object->alignment;
  }
  return room(asked);
}

int Heap::read(std::uint64_t value, std::byte* to) {
  if (far_->is_copy()) return ENOTSUP;
  if (is_kind(value, kFar)) return far_->read(location_of(value), far_units_of(value), to);
  return far_->read_large(*reinterpret_cast<const LargeObject*>(value & kAddress), to);
}

void* Heap::fetch(Word* word, std::uint64_t value, std::uint32_t flags, int* error) {
  const std::uint64_t started = figures_.brought.load(std::memory_order_relaxed) % kMissesATimed == 0 ? now_ns() : 0;
  Header* header = room_for_far(value, flags, true);
  *error = header == nullptr ? ENOMEM : read(value, header->object());
  if (started != 0) figures_.waited_ns.fetch_add((now_ns() - started) * kMissesATimed, std::memory_order_relaxed);
  if (*error == 0) return arrived(word, value, header, flags);
  not_arrived(word, value, header);
  return nullptr;
}

void* Heap::arrived(Word* word, std::uint64_t value, Header* header, std::uint32_t flags) {
  std::uint64_t bits = reinterpret_cast<std::uint64_t>(header->object()) | kCold;
  *location_at(header) = is_kind(value, kFar) ? location_of(value) : value & kAddress;
  // An object with pointers in it changes when what they point to moves: its far copy is soon wrong.
  if (header->typed())
    give_up_far_copy(header);
  else if ((flags & kReachWrite) == 0)
    bits |= kClean;
  header->set_owner(Header::owner_of(word));
  settle_word(word, bits);
  figures_.brought.fetch_add(1, std::memory_order_relaxed);
  count(Counter::object_misses);
  return header->object();
}

void Heap::not_arrived(Word* word, std::uint64_t value, Header* header) {
  settle_word(word, value);
  if (header == nullptr) return;
  figures_.errors.fetch_add(1, std::memory_order_relaxed);
  LockGuard guard(local_->region_of(header).lock);
  end_locked(header);
}

std::size_t Heap::reach_many(std::span<Word* const> words, std::uint32_t flags) {
  if (far_->is_copy()) return 0;
  constexpr std::size_t kMany = Port::kPages;
  std::array<FarLog::Wanted, kMany> wanted;
  std::array<Header*, kMany> headers;
  std::array<std::pair<Word*, std::uint64_t>, kMany> taken;
  std::size_t brought = 0;
  while (!words.empty()) {
    std::size_t count = 0, looked = 0;
    bool no_room = false;
    for (; looked < words.size() && count < kMany && !no_room; ++looked) {
      Word* word = words[looked];
      std::uint64_t value = word->load(std::memory_order_acquire);
      if (!is_kind(value, kFar) || value == 0) continue;
      if (!word->compare_exchange_strong(value, kArriving, std::memory_order_acquire)) continue;
      Header* header = room_for_far(value, flags, false);
      if (header == nullptr) {  // looking ahead is no reason to go beyond the limit
        settle_word(word, value);
        no_room = true;
        continue;
      }
      taken[count] = {word, value};
      headers[count] = header;
      wanted[count++] = {location_of(value), far_units_of(value), header->object(), 0};
    }
    far_->read_many(std::span(wanted).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      auto [word, value] = taken[i];
      if (wanted[i].error == 0)
        arrived(word, value, headers[i], flags), ++brought;
      else
        not_arrived(word, value, headers[i]);
    }
    if (no_room) break;
    words = words.subspan(looked);
  }
  return brought;
}

void Heap::show_figures() {
  set_gauge(Gauge::object_local_bytes, memory_.used());
  set_gauge(Gauge::object_far_bytes, bytes_of_pages(far_->pages_held() + far_->large_pages()));
  set_gauge(Gauge::object_live_bytes, far_->all_live_bytes());
  set_gauge(Gauge::object_beyond_bytes, figures_.beyond_bytes.load(std::memory_order_relaxed));
}

// --- fork
// ------------------------------------------------------------------------------------------------------------

void Heap::before_fork(void (*when_still)()) {
  forking_slot_ = grace_.enter();  // room is taken in scopes, which are a slot's
  grace_.begin_fork();
  if (arrivals_ != nullptr) arrivals_->before_fork();
  // One that waits for scopes to end would wait for the caller's too.
  interrupted_.store(true, std::memory_order_relaxed);
  for (auto& evacuator : evacuators_) evacuator->hold();
  interrupted_.store(false, std::memory_order_relaxed);
  when_still();
  grace_.lock_for_fork();
  // Now all other locks of the heap are free, but for instants of an evacuator between two rounds, who holds none
  // that a child needs.
  far_->before_fork();
}

void Heap::after_fork_in_parent(bool forked) {
  if (!forked) far_->fork_failed();
  grace_.end_fork_in_parent();
  if (forking_slot_ != nullptr) grace_.leave(forking_slot_);
  for (auto& evacuator : evacuators_) evacuator->let_go();
}

void Heap::after_fork_in_child() {
  std::vector<Grace::Stack> stacks = grace_.end_fork_in_child();
  if (forking_slot_ != nullptr) grace_.leave(forking_slot_);
  orphaned_.insert(orphaned_.end(), stacks.begin(), stacks.end());
  orphans_.store(!orphaned_.empty(), std::memory_order_relaxed);
  orphans_mutex_.reset_after_fork();
  stuck_.store(false, std::memory_order_relaxed);
  asked_.store(1, std::memory_order_relaxed);
  Status status = far_->after_fork_in_child();
  if (arrivals_ != nullptr) arrivals_->after_fork_in_child();
  for (auto& evacuator : evacuators_) {
    auto port = status ? far_->open_port() : std::unexpected(status.error());
    if (status && !port) status = std::unexpected(port.error());
    Status begun = evacuator->after_fork_in_child(port ? std::move(*port) : nullptr);
    if (status && !begun) status = std::move(begun);
  }
  if (status) return far_->wait_until_entered();
  stuck_.store(true, std::memory_order_relaxed);
  log::warning("far objects of a forked child stay local: %s; what is far cannot be had by it",
               status.error().what());
}

// Objects whose pointers lay on stacks of threads that are not there. They stay where they are: nobody asks for them,
// and their owners' words are not to be looked at.
void Heap::keep_orphans() {
  LockGuard guard(orphans_mutex_);
  if (!orphans_.load(std::memory_order_relaxed)) return;
  seal_lanes();
  local_->walk_sealed([&](Header* header) {
    const std::uintptr_t owner = header->owner() << 3;
    for (const Grace::Stack& stack : orphaned_)
      if (owner >= stack.begin && owner < stack.end) header->set_owner(Header::kMaking);
  });
  orphaned_.clear();
  orphans_.store(false, std::memory_order_relaxed);
}

}  // namespace hinterland::object
