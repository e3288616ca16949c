// Regions that a program asks for by name of what it wants: an own policy, a share of the budget, an own read-ahead.
#include <algorithm>
#include <cerrno>

#include "paging/pager_impl.hpp"

namespace hinterland {
namespace {

// Pools are told apart by groups of pages.
constexpr std::size_t kGroupBytes = bytes_of_pages(PageTable::kGroupPages);

}  // namespace

std::intptr_t Pager::create_region(std::size_t length, const RegionOptions& options, int* pool) {
  Impl& parts = *impl_;
  if (length == 0 || length > bytes_) return -ENOMEM;
  length = (length + kGroupBytes - 1) / kGroupBytes * kGroupBytes;
  MapGuard guard(parts);
  // Half of the budget stays everybody's, so that there is always something that can leave.
  if (options.share_bytes >
      parts.budget_bytes.load() / 2 - std::min(parts.shares_bytes, parts.budget_bytes.load() / 2))
    return -EDQUOT;
  int opened =
      parts.core.policy.open_pool(options.policy, options.share_bytes >> kPageShift, options.read_ahead_pages);
  if (opened < 0) return opened;
  std::uintptr_t address = parts.core.window.allocate(length, kGroupBytes);
  if (address == 0) {
    parts.core.policy.close_pool(opened);
    return -ENOMEM;
  }
  PageRun run{parts.core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift)};
  parts.core.policy.assign(run, opened);
  std::intptr_t placed = parts.place(address, length, PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (placed < 0) {
    parts.core.policy.assign(run, 0);
    parts.core.policy.close_pool(opened);
    parts.core.window.release(address, length);
    return placed;
  }
  parts.shares_bytes += options.share_bytes;
  *pool = opened;
  return placed;
}

int Pager::destroy_region(std::uintptr_t address, std::size_t length, const RegionOptions& options, int pool) {
  Impl& parts = *impl_;
  length = (length + kGroupBytes - 1) / kGroupBytes * kGroupBytes;
  MapGuard guard(parts);
  if (int error = parts.unmap(address, length); error != 0) return error;
  parts.core.policy.assign({parts.core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift)},
                           0);
  parts.core.policy.close_pool(pool);
  parts.shares_bytes -= options.share_bytes;
  return 0;
}

}  // namespace hinterland
