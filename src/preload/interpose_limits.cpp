#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/stats.hpp"
#include "kernel/process_sizes.hpp"
#include "preload/held_for_call.hpp"
#include "preload/limits.hpp"
#include "preload/local_range.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

namespace hinterland::limits {
namespace {

// More than any window (16 TiB) and its tables, and no limit that anybody sets; so a limit at or above it is one of
// ours, also in a program that inherits it. Half of the addresses that there are.
constexpr rlim_t kOffset = rlim_t{1} << 46;

struct Used {
  std::uint64_t space = 0, data = 0;  // bytes, as the kernel counts them for RLIMIT_AS and RLIMIT_DATA
};
Used g_before, g_ours;

struct Limit {
  std::atomic<rlim_t> wanted{RLIM_INFINITY};
  std::atomic<rlim_t> hard{RLIM_INFINITY};  // as the program set it
};
constinit Limit g_space, g_data;  // soft, as the program set them; RLIM_INFINITY: none that is ours to keep

Limit* limit_of(int resource) {
  return resource == RLIMIT_AS ? &g_space : resource == RLIMIT_DATA ? &g_data : nullptr;
}

rlim_t to_kernel(rlim_t value) { return value == RLIM_INFINITY || value >= kOffset ? value : value + kOffset; }
rlim_t to_program(rlim_t value) { return value == RLIM_INFINITY || value < kOffset ? value : value - kOffset; }

int call(int process, int resource, const struct rlimit* wanted, struct rlimit* before) {
  return static_cast<int>(
      raw::call(SYS_prlimit64, process, resource, reinterpret_cast<long>(wanted), reinterpret_cast<long>(before)));
}

std::uint64_t without(std::uint64_t whole, std::uint64_t part) { return whole > part ? whole - part : 0; }

Used used_now() {
  const ProcessSizes used = process_sizes();
  if (used.space == 0) return {};
  // The range of local memory is ours from before the start, and grows.
  return {without(used.space, local_range::g_bytes), without(used.data, local_range::used_bytes())};
}

// What the program set, if the kernel still has what came of it; else somebody else set another since, or an
// ancestor.
rlim_t soft_seen(const Limit& limit, const struct rlimit& kernel) {
  rlim_t wanted = limit.wanted.load();
  bool is_real_hard_limit = kernel.rlim_cur < kOffset && kernel.rlim_cur == kernel.rlim_max;
  if (wanted != RLIM_INFINITY && (is_real_hard_limit || kernel.rlim_cur == to_kernel(wanted))) return wanted;
  return to_program(kernel.rlim_cur);
}

// A hard limit from before the start has room for the window, but not for our offset: then it holds for both.
struct rlimit for_kernel(const struct rlimit& wanted, const struct rlimit& now) {
  if (now.rlim_max >= kOffset) return {to_kernel(wanted.rlim_cur), to_kernel(wanted.rlim_max)};
  rlim_t hard = std::max(wanted.rlim_max, now.rlim_max);  // more than that is the kernel's to refuse
  return {now.rlim_max, hard};
}

bool is_self(int process) { return process == 0 || process == raw::call(SYS_getpid); }

}  // namespace

void note_before_start() { g_before = used_now(); }

void note_after_start() {
  Used now = used_now();
  g_ours = {without(now.space, g_before.space), without(now.data, g_before.data)};
  for (int resource : {RLIMIT_AS, RLIMIT_DATA}) {
    struct rlimit inherited;
    if (call(0, resource, nullptr, &inherited) == 0 && inherited.rlim_cur != RLIM_INFINITY &&
        inherited.rlim_cur >= kOffset)
      limit_of(resource)->wanted = inherited.rlim_cur - kOffset;
  }
}

bool are_set() {
  return g_space.wanted.load(std::memory_order_relaxed) != RLIM_INFINITY ||
         g_data.wanted.load(std::memory_order_relaxed) != RLIM_INFINITY;
}

bool allow(std::size_t bytes, bool counts_as_data) {
  // relaxed: who sets a limit beside other threads that map gets it for one of their next mappings
  rlim_t space = g_space.wanted.load(std::memory_order_relaxed), data = g_data.wanted.load(std::memory_order_relaxed);
  if (space == RLIM_INFINITY && data == RLIM_INFINITY) [[likely]]
    return true;
  // As in the kernel: a soft limit of no data at all (valgrind sets it, to be told of brk) means the hard one.
  if (data == 0) data = g_data.hard.load(std::memory_order_relaxed);
  Used now = used_now();
  // What is mapped outside of the window counts by itself.
  std::uint64_t mapped =
      without(stat_page()->gauges[static_cast<std::size_t>(Gauge::mapped_bytes)].load(), pager().outside_bytes());
  // The window as a whole counts as address space; of it as data only what can be written, which is what is mapped.
  std::uint64_t program_space = without(now.space, g_ours.space) + mapped;
  std::uint64_t program_data = without(now.data, g_ours.data);
  bool fits_space = program_space <= space && bytes <= space - program_space;
  bool fits_data = !counts_as_data || (program_data <= data && bytes <= data - program_data);
  return fits_space && fits_data;
}

int change(int process, int resource, const struct rlimit* wanted, struct rlimit* before) {
  Limit* limit = limit_of(resource);
  HeldForCall held_wanted(wanted, sizeof *wanted), held_before(before, sizeof *before);
  if (mode() != Mode::far || limit == nullptr || !is_self(process)) return call(process, resource, wanted, before);
  struct rlimit now, asked{};
  if (int error = call(0, resource, nullptr, &now); error < 0) return error;
  if (wanted != nullptr) asked = *wanted;  // `before` may be the same
  if (before != nullptr)
    if (int error = call(0, resource, nullptr, before); error < 0) return error;  // it is no place to write to
  const struct rlimit seen = {soft_seen(*limit, now), to_program(now.rlim_max)};
  if (wanted != nullptr) {
    if (asked.rlim_cur > asked.rlim_max) return -EINVAL;
    const struct rlimit kernel = for_kernel(asked, now);
    if (int error = call(0, resource, &kernel, nullptr); error < 0) return error;
    limit->wanted = asked.rlim_cur;
    limit->hard = asked.rlim_max;
  }
  if (before != nullptr) *before = seen;
  return 0;
}

}  // namespace hinterland::limits

namespace {

int as_libc(int result) {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

}  // namespace

using hinterland::limits::change;

// rlimit and rlimit64 are the same here.
HL_INTERPOSED int getrlimit(__rlimit_resource_t resource, struct rlimit* limit) noexcept {
  return as_libc(change(0, static_cast<int>(resource), nullptr, limit));
}
HL_INTERPOSED int getrlimit64(__rlimit_resource_t resource, struct rlimit64* limit) noexcept {
  return as_libc(change(0, static_cast<int>(resource), nullptr, reinterpret_cast<struct rlimit*>(limit)));
}
HL_INTERPOSED int setrlimit(__rlimit_resource_t resource, const struct rlimit* limit) noexcept {
  return as_libc(change(0, static_cast<int>(resource), limit, nullptr));
}
HL_INTERPOSED int setrlimit64(__rlimit_resource_t resource, const struct rlimit64* limit) noexcept {
  return as_libc(change(0, static_cast<int>(resource), reinterpret_cast<const struct rlimit*>(limit), nullptr));
}
HL_INTERPOSED int prlimit(pid_t process, enum __rlimit_resource resource, const struct rlimit* wanted,
                          struct rlimit* before) noexcept {
  return as_libc(change(process, static_cast<int>(resource), wanted, before));
}
HL_INTERPOSED int prlimit64(pid_t process, enum __rlimit_resource resource, const struct rlimit64* wanted,
                            struct rlimit64* before) noexcept {
  return as_libc(change(process, static_cast<int>(resource), reinterpret_cast<const struct rlimit*>(wanted),
                        reinterpret_cast<struct rlimit*>(before)));
}
