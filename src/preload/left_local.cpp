#include "preload/left_local.hpp"

#include <algorithm>
#include <map>

#include "base/mutex.hpp"
#include "base/stats.hpp"
#include "base/units.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::left_local {
namespace {

Mutex g_mutex;
using Ranges = std::map<std::uintptr_t, std::uintptr_t>;  // start -> end, disjoint

// Never destroyed: programs unmap in their own destructors.
Ranges& ranges() {
  alignas(Ranges) static char storage[sizeof(Ranges)];
  static Ranges* made = new (storage) Ranges;
  return *made;
}

std::size_t remove_locked(std::uintptr_t start, std::uintptr_t end) {
  Ranges& all = ranges();
  std::size_t removed = 0;
  auto at = all.upper_bound(start);
  if (at != all.begin() && std::prev(at)->second > start) --at;
  while (at != all.end() && at->first < end) {
    auto [first, last] = *at;
    at = all.erase(at);
    removed += std::min(last, end) - std::max(first, start);
    if (first < start) all.emplace(first, start);
    if (last > end) all.emplace(end, last);
  }
  return removed;
}

}  // namespace

void add(std::uintptr_t address, std::size_t length) {
  uninterrupted([=] {
    LockGuard guard(g_mutex);
    std::uintptr_t end = page_ceil(address + length);
    std::size_t replaced = remove_locked(address, end);
    ranges().emplace(address, end);
    add_gauge(Gauge::left_local_bytes, static_cast<std::int64_t>(end - address - replaced));
  });
}

void remove(std::uintptr_t address, std::size_t length) {
  uninterrupted([=] {
    LockGuard guard(g_mutex);
    if (ranges().empty()) return;
    std::size_t removed = remove_locked(address, page_ceil(address + length));
    add_gauge(Gauge::left_local_bytes, -static_cast<std::int64_t>(removed));
  });
}

void moved(std::uintptr_t from, std::size_t old_length, std::uintptr_t to, std::size_t new_length) {
  bool counted = uninterrupted([=] {
    LockGuard guard(g_mutex);
    std::size_t removed = remove_locked(from, page_ceil(from + old_length));
    add_gauge(Gauge::left_local_bytes, -static_cast<std::int64_t>(removed));
    return removed != 0;
  });
  if (counted) add(to, new_length);
}

void before_fork() { g_mutex.lock(); }
void after_fork() { g_mutex.unlock(); }

}  // namespace hinterland::left_local
