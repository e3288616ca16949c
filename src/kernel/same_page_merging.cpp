#include "kernel/same_page_merging.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>

#include "base/log.hpp"
#include "base/raw_call.hpp"

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67  // Linux 6.4
#define PR_GET_MEMORY_MERGE 68
#endif

namespace hinterland::same_page_merging {
namespace {

bool g_known = false;               // to the kernel; set once, before the program can ask
std::atomic<bool> g_wished{false};  // relaxed: no other memory goes with it

}  // namespace

Status leave() {
  const long merged = raw::call(SYS_prctl, PR_GET_MEMORY_MERGE, 0, 0, 0, 0);
  g_known = !raw::failed(merged);
  if (merged != 1) return {};
  if (long result = raw::call(SYS_prctl, PR_SET_MEMORY_MERGE, 0, 0, 0, 0); result != 0) {
    Error error = Error::make(static_cast<int>(-result), "cannot take this process out of same-page merging (KSM)");
    error.remedy("start it without: MemoryKSM=no in its systemd unit");
    return std::unexpected(error);
  }
  g_wished.store(true, std::memory_order_relaxed);
  log::info("equal pages are not merged (KSM), as was asked for with MemoryKSM= or prctl: far memory cannot be");
  return {};
}

std::optional<int> answer(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  const bool asks = option == PR_GET_MEMORY_MERGE, sets = option == PR_SET_MEMORY_MERGE;
  if ((!asks && !sets) || !g_known) return std::nullopt;
  if ((b | c | d) != 0 || (asks && a != 0)) return -EINVAL;
  if (asks) return g_wished.load(std::memory_order_relaxed) ? 1 : 0;
  g_wished.store(a != 0, std::memory_order_relaxed);
  return 0;
}

}  // namespace hinterland::same_page_merging
