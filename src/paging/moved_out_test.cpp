// Mappings that mremap takes from the window to a place that is the kernel's alone.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::size_t kBytes = bytes_of_pages(4);

void nobody_listens(std::uintptr_t, std::size_t) {}

// Below 4 GiB, and so below the window.
std::uintptr_t place_below_the_window() {
  void* place = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  return place == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(place);
}

// What the program said of the mapping concerns pages that have no marks any more.
std::string move_out_with(Pager& pager, int advice) {
  const std::intptr_t mapped = pager.map(kBytes, kPageSize, kReadWrite);
  const std::uintptr_t target = place_below_the_window();
  if (mapped < 0 || target == 0) return "cannot map";
  const auto from = static_cast<std::uintptr_t>(mapped);
  std::memset(reinterpret_cast<void*>(from), 7, kBytes);
  if (pager.advise(from, kBytes, advice) != 0) return "the advice is refused";
  const std::intptr_t moved =
      pager.move_out(from, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, target, nobody_listens);
  if (moved != static_cast<std::intptr_t>(target)) return "moved to " + std::to_string(moved);
  for (std::size_t at = 0; at < kBytes; ++at)
    if (reinterpret_cast<const char*>(target)[at] != 7) return "another byte at " + std::to_string(at);
  return audit(pager, true);
}

TEST(MovedOutTest, WithWhatTheProgramSaidOfIt) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  for (int advice : {MADV_NORMAL, MADV_DONTDUMP, MADV_WIPEONFORK, MADV_NOHUGEPAGE}) {
    SCOPED_TRACE(advice);
    run_with_real_pager({}, [advice](Pager& pager) { return move_out_with(pager, advice); });
  }
}

// Far memory at the target goes only with a source that can be moved there.
std::string move_out_over_far(Pager& pager) {
  const std::intptr_t mapped = pager.map(kBytes, kPageSize, kReadWrite);
  const std::uintptr_t target = place_below_the_window();
  if (mapped < 0 || target == 0) return "cannot map";
  const auto from = static_cast<std::uintptr_t>(mapped);
  if (pager.take_in(target, kBytes, kReadWrite, 0) != static_cast<std::intptr_t>(target)) return "cannot be far";
  auto* there = reinterpret_cast<volatile char*>(target);
  there[0] = 5;
  *reinterpret_cast<volatile char*>(from) = 7;
  if (pager.unmap(from + kBytes / 2, kBytes / 2) != 0) return "cannot unmap";
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
  std::intptr_t moved = pager.move_out(from, kBytes * 3 / 4, kBytes, kMove, target, nobody_listens);
  if (moved != -EFAULT) return "moved over a hole: " + std::to_string(moved);
  if (there[0] != 5 || !pager.contains(target)) return "a refused call changed the target";
  moved = pager.move_out(from, kBytes / 2, kBytes / 2, kMove, target, nobody_listens);
  if (moved != static_cast<std::intptr_t>(target)) return "moved to " + std::to_string(moved);
  if (there[0] != 7 || pager.contains(target)) return "the target is not what came";
  if (!pager.contains(target + kBytes / 2)) return "what is behind the target is far no longer";
  return audit(pager, true);
}

// A mapping of another kind in the window, of which mremap makes a second one (old length 0).
std::string duplicate_outside(Pager& pager) {
  const std::intptr_t mapped = pager.map(kPageSize, kPageSize, kReadWrite);
  const std::uintptr_t target = place_below_the_window();
  if (mapped < 0 || target == 0) return "cannot map";
  const auto from = static_cast<std::uintptr_t>(mapped);
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED, kAnonymous = MAP_ANONYMOUS | MAP_FIXED;
  if (pager.take_in(target, kPageSize, kReadWrite, 0) != static_cast<std::intptr_t>(target)) return "cannot be far";
  *reinterpret_cast<volatile char*>(target) = 5;
  for (int kind : {MAP_PRIVATE, MAP_SHARED}) {
    if (pager.surrender(from, kPageSize) != 0) return "cannot surrender";
    auto* memory = mmap(reinterpret_cast<void*>(from), kPageSize, kReadWrite, kind | kAnonymous, -1, 0);
    if (memory == MAP_FAILED) return "cannot map another kind";
    if (pager.remap(from, 0, kPageSize, kMove, target) != -ENOMEM) return "not ours, and the pager moved it";
    const std::intptr_t moved = pager.move_out(from, 0, kPageSize, kMove, target, nobody_listens);
    if (moved != (kind == MAP_PRIVATE ? -EINVAL : static_cast<std::intptr_t>(target)))
      return "duplicated: " + std::to_string(moved);
    const char found = *reinterpret_cast<volatile char*>(target);
    if (found != (kind == MAP_PRIVATE ? 5 : 0)) return "a refused call changed the target, or another one did not";
  }
  return audit(pager, true);
}

TEST(MovedOutTest, Duplicated) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  RealPagerOptions options;
  options.addresses = Addresses::all;
  run_with_real_pager(options, duplicate_outside);
}

TEST(MovedOutTest, OverFarMemory) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  RealPagerOptions options;
  options.addresses = Addresses::all;
  run_with_real_pager(options, move_out_over_far);
}

}  // namespace
}  // namespace hinterland::testing
