#include "trace/given_back.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/large_block.hpp"

namespace hinterland::trace {
namespace {

// Whole pages of [address, address + bytes).
GivenBack pages_of(std::uint64_t address, std::uint64_t bytes, GivenBack::How how) {
  return {.first = (address + kPageSize - 1) >> kPageShift, .end = (address + bytes) >> kPageShift, .how = how};
}

}  // namespace

std::vector<GivenBack> given_back(const TraceFile& trace) {
  std::unordered_map<std::uint64_t, std::uint64_t> blocks;  // bytes of those that live, by address
  std::vector<GivenBack> all;
  trace.for_each_allocation([&](const AllocationRecord& record) {
    using How = GivenBack::How;
    GivenBack one;
    switch (record.kind) {
      case AllocationKind::mapping:
        return;
      case AllocationKind::range_ended:
        one = pages_of(record.address, record.bytes, How::unmapped);
        break;
      case AllocationKind::block:
        blocks[record.address] = record.bytes;
        if (record.bytes >= kLargeBlock) one = pages_of(record.address, record.bytes, How::taken_again);
        break;
      case AllocationKind::block_ended:
        auto block = blocks.find(record.address);
        if (block == blocks.end()) return;
        one = pages_of(block->first, block->second, How::freed);
        blocks.erase(block);
        break;
    }
    if (one.first >= one.end) return;
    one.time_ns = record.time_ns - std::min(record.time_ns, trace.process.started_ns);
    all.push_back(one);
  });
  std::stable_sort(all.begin(), all.end(),
                   [](const GivenBack& a, const GivenBack& b) { return a.time_ns < b.time_ns; });
  return all;
}

}  // namespace hinterland::trace
