// What the program maps and unmaps in the window, where the kernel allows no further mapping.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "paging/testing/mapping_limit.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::size_t kBytes = bytes_of_pages(4);

// To unmap takes no mapping more natively. What was there is gone: who gets the place next reads zeros.
std::string unmap_at_the_limit(Pager& pager, int protection) {
  const std::intptr_t mapped = pager.map(kBytes, kPageSize, PROT_READ | PROT_WRITE);
  if (mapped < 0) return "cannot map";
  const auto at = static_cast<std::uintptr_t>(mapped);
  std::memset(reinterpret_cast<void*>(at), 7, kBytes);
  if (pager.protect(at, kBytes, protection) != 0) return "cannot protect";
  {
    const MappingLimit limit;
    if (!limit.reached()) return "there are more mappings than the kernel said";
    if (const int error = pager.unmap(at, kBytes); error != 0) return "unmap: " + std::to_string(error);
  }
  const std::intptr_t again = pager.map_at(at, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, true);
  if (again != mapped) return "cannot map there again: " + std::to_string(again);
  for (std::size_t i = 0; i < kBytes; ++i)
    if (reinterpret_cast<const char*>(at)[i] != 0) return "another byte at " + std::to_string(i);
  return audit(pager, true);
}

TEST(PagerMappings, MemoryIsUnmappedAtTheLimitOfMappings) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  if (std::string reason = why_no_mapping_limit(); !reason.empty()) GTEST_SKIP() << reason;
  for (int protection : {PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE}) {
    SCOPED_TRACE(protection);
    run_with_real_pager({}, [protection](Pager& pager) { return unmap_at_the_limit(pager, protection); });
  }
}

}  // namespace
}  // namespace hinterland::testing
