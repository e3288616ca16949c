// Hinted modules: their tables, and the nops that become calls.
#include "runtime/sites.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/raw_call.hpp"
#include "base/units.hpp"
#include "runtime/site_checks.hpp"
#include "runtime/site_profile.hpp"

#include <sys/syscall.h>

namespace hinterland::hint {
namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uint8_t kNop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
constexpr std::uint8_t kCall = 0xe8;

constinit Mutex g_mutex;  // of what follows, for writing
constinit SiteTable g_tables[kSiteTablesMax];

std::uint32_t hash_of(std::uintptr_t return_address) {
  return static_cast<std::uint32_t>(return_address * 0x9E3779B97F4A7C15u >> 32);
}

// Memory of the runtime's own, which is never far.
void* take_memory(std::size_t bytes) {
  long result =
      raw::call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return raw::failed(result) ? nullptr : reinterpret_cast<void*>(result);
}

std::uint32_t slots_for(std::size_t sites) {
  std::uint32_t slots = 64;
  while (slots < 2 * sites) slots *= 2;
  return slots;
}
std::size_t bytes_for(std::size_t sites) {
  return page_ceil(sites * sizeof(SiteState) + slots_for(sites) * sizeof(std::uint32_t));
}

// A module that was unloaded leaves its place in memory to another one.
void forget_unloaded(std::uintptr_t low, std::uintptr_t high) {
  for (SiteTable& table : g_tables) {
    if (table.high.load() <= low || high <= table.low.load()) continue;
    table.low.store(0);
    table.high.store(0);
    raw::call(SYS_munmap, reinterpret_cast<long>(table.states), static_cast<long>(bytes_for(table.entries.size())));
  }
}

SiteTable* free_table() {
  for (SiteTable& table : g_tables)
    if (table.high.load() == 0) return &table;
  return nullptr;
}

bool fill(SiteTable& table, std::span<const SiteEntry> entries) {
  void* memory = take_memory(bytes_for(entries.size()));
  if (memory == nullptr) return false;
  table.entries = entries;
  table.states = static_cast<SiteState*>(memory);  // zeros are what it begins with
  table.by_return = reinterpret_cast<std::uint32_t*>(table.states + entries.size());
  table.by_return_mask = slots_for(entries.size()) - 1;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    std::uint32_t slot = hash_of(entries[i].nop_address() + sizeof kNop) & table.by_return_mask;
    while (table.by_return[slot] != 0) slot = (slot + 1) & table.by_return_mask;
    table.by_return[slot] = i + 1;
  }
  Dl_info info{};
  if (dladdr(entries.data(), &info) != 0 && info.dli_fname != nullptr)
    std::snprintf(table.path, sizeof table.path, "%s", info.dli_fname);
  return true;
}

// True when it is a call now. What is not the nop that the compiler wrote is left alone.
bool turn_on(const SiteEntry& entry) {
  auto* nop = reinterpret_cast<std::uint8_t*>(entry.nop_address());
  if (std::memcmp(nop, kNop, sizeof kNop) != 0) return false;
  const std::int64_t distance = static_cast<std::int64_t>(entry.call_address() - (entry.nop_address() + sizeof kNop));
  const auto near = static_cast<std::int32_t>(distance);
  if (near != distance) return false;
  nop[0] = kCall;
  std::memcpy(nop + 1, &near, sizeof near);
  return true;
}

// -errno, or the number of sites that are on now.
long patch(const SiteTable& table) {
  const auto is_static = [](const SiteEntry& entry) { return (entry.kind & kSiteStatic) != 0; };
  long on = std::ranges::count_if(table.entries, is_static);
  if (static_cast<std::size_t>(on) == table.entries.size()) return on;
  const std::uintptr_t low = page_floor(table.low.load()), high = page_ceil(table.high.load());
  const auto protect = [=](int protection) {
    return raw::call(SYS_mprotect, static_cast<long>(low), static_cast<long>(high - low), protection);
  };
  if (long problem = protect(PROT_READ | PROT_WRITE | PROT_EXEC); problem != 0) return problem;
  SiteChoice choice(table);
  for (std::uint32_t i = 0; i < table.entries.size(); ++i)
    if (!is_static(table.entries[i]) && choice.wants(i)) on += turn_on(table.entries[i]);
  protect(PROT_READ | PROT_EXEC);
  return on;
}

void take_module(HintedModule& module) {
  const std::span<const SiteEntry> entries(module.first, module.end);
  if (entries.empty()) return;
  const auto [first, last] = std::ranges::minmax_element(entries, {}, &SiteEntry::nop_address);
  const std::uintptr_t low = first->nop_address(), high = last->nop_address() + sizeof kNop;
  LockGuard guard(g_mutex);
  forget_unloaded(low, high);
  SiteTable* table = free_table();
  if (table == nullptr || !fill(*table, entries)) {
    log::warning("no room for the hints that the compiler put into a library: it runs without them");
    return;
  }
  table->identity = identity_of(*table);
  std::ranges::copy(record_of_sites_wanted() ? counting_checks() : checks(), module.checks);
  table->low.store(low);
  table->high.store(high, std::memory_order_release);  // pairs with site_of: who sees it sees the rest
  const long on = patch(*table);
  if (on < 0)
    log::warning("%s has hints by the compiler, but its text cannot be written (%s): it runs without them",
                 table->path, strerrordesc_np(static_cast<int>(-on)));
  else
    log::info("%s: %ld of %zu hints by the compiler are on", table->path, on, entries.size());
}

}  // namespace

std::span<SiteTable> site_tables() { return g_tables; }

SiteState* site_of(std::uintptr_t return_address) {
  for (SiteTable& table : g_tables) {
    const std::uintptr_t high = table.high.load(std::memory_order_acquire);  // pairs with take_module
    if (high == 0 || return_address > high || return_address <= table.low.load()) continue;
    for (std::uint32_t slot = hash_of(return_address) & table.by_return_mask; table.by_return[slot] != 0;
         slot = (slot + 1) & table.by_return_mask) {
      const std::uint32_t index = table.by_return[slot] - 1;
      if (table.entries[index].nop_address() + sizeof kNop == return_address) return &table.states[index];
    }
  }
  return nullptr;
}

}  // namespace hinterland::hint

void hl_hinted_module(hinterland::hint::HintedModule* module) {
  using namespace hinterland;
  using namespace hinterland::hint;
  if (!sites_wanted()) return;
  InsideRuntime inside;
  if (module->version != kVersion || module->entry_bytes != sizeof(SiteEntry)) {
    log::warning(
        "a program or library has hints by the compiler of version %u, and this runtime knows version %u: it runs "
        "without them; compile it again with this release",
        module->version, kVersion);
    return;
  }
  take_module(*module);
}
