// Room for objects, and what is done when local memory runs short.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "object/heap.hpp"

namespace hinterland::object {
namespace {

std::size_t own_lane(std::size_t lanes) {
  // A thread's block lies on pages of its own.
  return (reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) >> 12) % lanes;
}

}  // namespace

Header* Heap::try_room(const Asked& asked, LocalLog::For purpose) {
  const std::size_t extra = (asked.placed ? kUnit : 0) + (asked.typed ? kUnit : 0);
  const std::size_t whole = sizeof(Header) + asked.bytes + extra;
  const std::size_t alignment = kAlignments[asked.alignment];
  Header* header;
  if (whole > kRegionObjectMax) {
    header = local_->place_span(asked.bytes + extra, alignment, asked.nontemporal, purpose);
  } else {
    const std::size_t half = lanes_.size() / 2;
    Lane& lane = *lanes_[own_lane(half) + (asked.nontemporal ? half : 0)];
    header = local_->place(lane, {whole / kUnit, alignment}, purpose);
  }
  if (header != nullptr)
    header->set(whole > kRegionObjectMax ? 0 : whole / kUnit,
                (asked.placed ? Header::kPlaced : 0) | (asked.typed ? Header::kIsTyped : 0) |
                    std::uint64_t{asked.alignment} << Header::kAlignmentShift,
                Header::kMaking);
  return header;
}

Header* Heap::room(const Asked& asked) {
  look_at_pressure();
  if (Header* header = try_room(asked, LocalLog::For::program)) return header;
  ask_evacuators();
  if (!asked.may_go_beyond) return nullptr;
  for (const std::uint64_t end = asked.at_once ? 0 : now_ns() + kPatienceInScopeNs;
       !stuck_.load(std::memory_order_relaxed) && now_ns() < end;) {
    const std::uint32_t before = progress_.load(std::memory_order_acquire);
    if (Header* header = try_room(asked, LocalLog::For::program)) return header;
    futex_wait(&progress_, before, kPatienceInScopeNs / 3);
  }
  Header* header = try_room(asked, LocalLog::For::beyond);
  if (header != nullptr) tell_of_beyond(memory_.used() - std::min(memory_.used(), memory_.limit()));
  return header;
}

// Once for each time that it doubles, from an eighth of the limit on: some regions more for a moment are in the
// nature of it.
void Heap::tell_of_beyond(std::uint64_t bytes) {
  std::uint64_t most = figures_.beyond_bytes.load(std::memory_order_relaxed);
  while (bytes > most && !figures_.beyond_bytes.compare_exchange_weak(most, bytes, std::memory_order_relaxed))
    continue;
  std::uint64_t told = beyond_told_bytes_.load(std::memory_order_relaxed);
  if (bytes < std::max(told * 2, std::max<std::uint64_t>(memory_.limit() / 8, 4 * kMiB))) return;
  if (!beyond_told_bytes_.compare_exchange_strong(told, bytes, std::memory_order_relaxed)) return;
  const bool refused = stuck_.load(std::memory_order_relaxed) && stuck_error_.load(std::memory_order_relaxed) != 0;
  const char* why = far_->is_copy() ? "a copy of the process that fork() has not made keeps them"
                    : refused       ? "the far device takes none (it is full, or failed)"
                                    : "scopes that are open hold them, or all of them are in use";
  log::warning("far objects take %llu MiB more local memory than the %llu MiB they may: %s",
               static_cast<unsigned long long>(bytes / kMiB), static_cast<unsigned long long>(memory_.limit() / kMiB),
               why);
}

void Heap::look_at_pressure() {
  const std::uint64_t left = local_->regions_left();
  if (left >= low_regions()) return;
  ask_evacuators();
  if (left < pressed_regions() && !stuck_.load(std::memory_order_relaxed)) grace_.set_pressed(true);
}

void Heap::set_limit(std::uint64_t bytes) {
  memory_.set_limit(std::max(bytes, HeapOptions::kLocalBytesMin));
  local_->shed();
  if (local_->regions_left() < low_regions()) ask_evacuators();
}

void Heap::ask_evacuators() {
  if (asked_.load(std::memory_order_relaxed) != 0) return;
  asked_.store(1, std::memory_order_release);
  futex_wake(&asked_, INT32_MAX);
}

void Heap::relieve(Grace::Slot* slot) {
  // What is dereferenced in an outer scope would be waited for by those whom we would wait for.
  if (slot->active[0].load(std::memory_order_relaxed) != 0 || slot->active[1].load(std::memory_order_relaxed) != 0)
    return;
  const std::uint64_t started = now_ns();
  for (;;) {
    const std::uint32_t before = progress_.load(std::memory_order_acquire);
    if (now_ns() >= started + kPatienceNs || !still_pressed()) break;
    futex_wait(&progress_, before, kPatienceNs / 4);
  }
  figures_.waited_ns.fetch_add(now_ns() - started, std::memory_order_relaxed);
}

bool Heap::still_pressed() {
  if (!grace_.pressed()) return false;
  ask_evacuators();
  if (local_->regions_left() < pressed_regions()) return true;
  grace_.set_pressed(false);
  return false;
}

void Heap::made_room() {
  stuck_.store(false, std::memory_order_relaxed);
  if (local_->regions_left() >= pressed_regions()) grace_.set_pressed(false);
  progress_.fetch_add(1, std::memory_order_release);
  futex_wake(&progress_, INT32_MAX);
}

void Heap::is_stuck(int error) {
  stuck_error_.store(error, std::memory_order_relaxed);
  if (!stuck_.exchange(true, std::memory_order_relaxed) && error != 0)
    log::warning("far objects stay local, because %s does not take them: %s", far_->device().info().url.c_str(),
                 std::strerror(error));
  grace_.set_pressed(false);
  progress_.fetch_add(1, std::memory_order_release);
  futex_wake(&progress_, INT32_MAX);
}

void Heap::seal_lanes() {
  for (auto& lane : lanes_) local_->seal(*lane);
}

}  // namespace hinterland::object
