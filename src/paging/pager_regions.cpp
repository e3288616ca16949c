// Regions that a program asks for by name of what it wants: an own policy, a share of the budget, an own read-ahead,
// a far device.
#include <algorithm>
#include <cerrno>

#include "paging/page/undisturbed.hpp"
#include "paging/pager_impl.hpp"

namespace hinterland {
namespace {

// Pools are told apart by groups of pages.
constexpr std::size_t kGroupBytes = bytes_of_pages(PageTable::kGroupPages);

}  // namespace

// Under the lock all the while: of two regions that name the same device at once, one opens it. Opening a file or a
// connection is a cancellation point, and a signal handler could leave it, or touch what nobody can bring while the
// movers stand still.
Result<std::uint32_t> Pager::open_device(const std::string& url) {
  Impl& parts = *impl_;
  Undisturbed undisturbed;
  MapGuard guard(parts);
  Result<std::uint32_t> number;
  if (auto known = parts.core.devices.find(url)) {
    number = *known;
  } else {
    auto device = far::open_device(url, parts.options.device_settings);
    if (!device) return std::unexpected(device.error());
    number = parts.add_device(std::move(*device), url);
  }
  if (!number || !parts.core.managed.load()) return number;
  if (Status status = parts.start_gatherer(); !status) return std::unexpected(status.error());
  return number;
}

// Who fetches or evicts has a channel to each device: they stand still while they get theirs.
Result<std::uint32_t> Pager::Impl::add_device(std::unique_ptr<far::Device> device, const std::string& url) {
  const bool pages = core.managed.load();
  if (pages) pause_movers();
  auto number = core.devices.add(std::move(device), url);
  if (pages) resume_movers();
  if (!number) return number;
  set_gauge(Gauge::device_capacity_bytes, core.devices.capacity_bytes());
  kick_housekeeper();  // which lives as long as the process, and enters it with the device
  return number;
}

std::intptr_t Pager::create_region(std::size_t length, const RegionOptions& options, int* pool) {
  Impl& parts = *impl_;
  if (length == 0 || length > bytes_) return -ENOMEM;
  length = (length + kGroupBytes - 1) / kGroupBytes * kGroupBytes;
  MapGuard guard(parts);
  // Half of the budget stays everybody's, so that there is always something that can leave.
  if (options.share_bytes >
      parts.budget_bytes.load() / 2 - std::min(parts.shares_bytes, parts.budget_bytes.load() / 2))
    return -EDQUOT;
  std::uint64_t share = options.common_share ? PolicyHost::kCommonShare : options.share_bytes >> kPageShift;
  int opened = parts.core.policy.open_pool(options.policy, share, options.read_ahead_pages, options.device);
  if (opened < 0) return opened;
  std::uintptr_t address = parts.core.window.allocate(length, kGroupBytes);
  if (address == 0) {
    parts.core.policy.close_pool(opened);
    return -ENOMEM;
  }
  PageRun run{parts.core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift)};
  parts.core.policy.assign(run, opened);
  std::intptr_t placed =
      parts.place(address, length, PROT_READ | PROT_WRITE, MAP_NORESERVE, 0, {HL_MAPPING_REGION, options.tag});
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
