// mlockall() over the real kernel.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

// Whether the kernel has locked the mapping that this address lies in (proc(5), VmFlags of smaps).
bool is_locked(std::uintptr_t address) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t start = 0, end = 0;
    char dash = 0;
    if (std::istringstream head(line); head >> std::hex >> start >> dash >> end && dash == '-')
      inside = start <= address && address < end;
    else if (inside && line.starts_with("VmFlags:"))
      return (line + " ").find(" lo ") != std::string::npos;
  }
  return false;
}

// The kernel moves no page between memory that is locked and memory that is not: what is unlocked again, or mapped
// later, would leave by a copy.
TEST(PagerLocking, FramesAreNotLockedWithTheProgram) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  for (int flags : {MCL_CURRENT, MCL_CURRENT | MCL_FUTURE})
    run_with_real_pager({}, [flags](Pager& pager) -> std::string {
      const std::intptr_t mapped = pager.map(kPageSize, kPageSize, PROT_READ | PROT_WRITE);
      if (mapped < 0) return "cannot map";
      if (int error = pager.lock_all(flags); error != 0) return error == -ENOMEM ? "" : "cannot lock";
      if (!is_locked(static_cast<std::uintptr_t>(mapped))) return "the program's page is not locked";
      if (is_locked(PagerParts::of(pager).core.frames.address_of(0))) return "frames are locked";
      if (pager.unlock_all() != 0) return "cannot unlock";
      return is_locked(static_cast<std::uintptr_t>(mapped)) ? "the program's page is locked" : "";
    });
}

}  // namespace
}  // namespace hinterland::testing
