#include "base/testing/happens_before.hpp"

#include <algorithm>

namespace hinterland::testing {
namespace {

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

}  // namespace

HappensBefore::HappensBefore() {
  for (std::size_t mover = 0; mover < clocks_.size(); ++mover) clocks_[mover][mover] = 1;
}

void HappensBefore::join(std::size_t mover, const Clock& other) {
  for (std::size_t i = 0; i < other.size(); ++i) clocks_[mover][i] = std::max(clocks_[mover][i], other[i]);
}

void HappensBefore::operated(std::size_t mover, AtomicOperation operation, const void* cell,
                             std::memory_order order) {
  const bool writes = operation != AtomicOperation::load && operation != AtomicOperation::glance;
  const bool swaps = writes && operation != AtomicOperation::store;
  if ((!writes || swaps) && acquires(order)) join(mover, released_[cell]);
  if (!writes) return;
  Clock& released = released_[cell];
  // A swap goes on with what was released before it; a store ends that.
  if (!swaps) released = {};
  if (!releases(order)) return;
  for (std::size_t i = 0; i < released.size(); ++i) released[i] = std::max(released[i], clocks_[mover][i]);
  ++clocks_[mover][mover];
}

void HappensBefore::unlocking(std::size_t mover, const void* mutex) {
  released_[mutex] = clocks_[mover];
  ++clocks_[mover][mover];
}

void HappensBefore::barrier(std::size_t mover) {
  for (std::size_t i = 0; i < clocks_.size(); ++i) {
    if (i == mover) continue;
    join(mover, clocks_[i]);
    join(i, clocks_[mover]);
    ++clocks_[i][i];
  }
  ++clocks_[mover][mover];
}

bool HappensBefore::knows(std::size_t mover, const Clock& times) const {
  for (std::size_t i = 0; i < times.size(); ++i)
    if (times[i] > clocks_[mover][i]) return false;
  return true;
}

bool HappensBefore::knows_writes(std::size_t mover, const Unit& unit, Of of) const {
  return knows(mover, unit[static_cast<std::size_t>(Of::runtime)].written) &&
         (of == Of::program || knows(mover, unit[static_cast<std::size_t>(Of::program)].written));
}

template <typename Each>
bool HappensBefore::each_unit(const void* begin, std::size_t bytes, const Each& each) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / kUnitBytes;
  const auto end = (reinterpret_cast<std::uintptr_t>(begin) + bytes + kUnitBytes - 1) / kUnitBytes;
  bool ordered = true;
  for (std::uintptr_t unit = first; unit < end; ++unit) ordered = each(units_[unit]) && ordered;
  return ordered;
}

bool HappensBefore::read(std::size_t mover, const void* begin, std::size_t bytes, Of of) {
  return each_unit(begin, bytes, [&](Unit& unit) {
    unit[static_cast<std::size_t>(of)].read[mover] = clocks_[mover][mover];
    return knows_writes(mover, unit, of);
  });
}

bool HappensBefore::write(std::size_t mover, const void* begin, std::size_t bytes, Of of) {
  return each_unit(begin, bytes, [&](Unit& unit) {
    const bool ordered = knows_writes(mover, unit, of) &&
                         knows(mover, unit[static_cast<std::size_t>(Of::runtime)].read) &&
                         (of == Of::program || knows(mover, unit[static_cast<std::size_t>(Of::program)].read));
    unit[static_cast<std::size_t>(of)].written[mover] = clocks_[mover][mover];
    return ordered;
  });
}

}  // namespace hinterland::testing
