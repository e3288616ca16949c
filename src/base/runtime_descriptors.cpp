#include "base/runtime_descriptors.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

int hinterland_first_guarded = hinterland::kFirstRuntimeDescriptor;

namespace hinterland {
namespace {

// A bit for each number. relaxed throughout: the numbers are all there is, ordered with nothing.
constinit std::array<std::atomic<std::uint64_t>, kRememberedDescriptors / 64> g_noted{};

bool is_remembered(int descriptor) { return descriptor >= 0 && descriptor < kRememberedDescriptors; }
std::atomic<std::uint64_t>& word_of(int descriptor) { return g_noted[static_cast<std::size_t>(descriptor) / 64]; }
std::uint64_t bit_of(int descriptor) { return std::uint64_t{1} << (descriptor % 64); }

}  // namespace

void note_runtime_descriptor(int descriptor) {
  if (is_remembered(descriptor)) word_of(descriptor).fetch_or(bit_of(descriptor), std::memory_order_relaxed);
  int first = __atomic_load_n(&hinterland_first_guarded, __ATOMIC_RELAXED);
  while (descriptor >= 0 && descriptor < first &&
         !__atomic_compare_exchange_n(&hinterland_first_guarded, &first, descriptor, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

void forget_runtime_descriptor(int descriptor) {
  if (is_remembered(descriptor)) word_of(descriptor).fetch_and(~bit_of(descriptor), std::memory_order_relaxed);
}

bool is_noted_runtime_descriptor(int descriptor) {
  return is_remembered(descriptor) && (word_of(descriptor).load(std::memory_order_relaxed) & bit_of(descriptor)) != 0;
}

int next_runtime_descriptor(int from) {
  for (int first = std::max(from, 0); is_remembered(first); first = (first / 64 + 1) * 64) {
    const std::uint64_t above = word_of(first).load(std::memory_order_relaxed) & ~(bit_of(first) - 1);
    if (above != 0) return first / 64 * 64 + std::countr_zero(above);
  }
  return -1;
}

}  // namespace hinterland
