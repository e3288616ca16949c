// Hints that a compiler put into programs (src/compiler): the runtime's side.
//
// A program or library with such hints has a table of its sites, each a nop of five bytes. When it is loaded, it
// shows the table, and here the nops of the sites that are wanted become calls. Nothing runs its code at that time: a
// constructor of it calls, before its others. So the text is written while nobody executes it, and is writable only
// for that moment. What the calls reach, and the slow path behind, is all here: programs hold no code of ours that
// could grow old. (docs/adr/0062-hints-by-the-compiler.md)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hinterland::hint {

// One site, as the compiler wrote it (src/compiler/emit.hpp). Distances from each field itself.
struct SiteEntry {
  SiteEntry(const SiteEntry&) = delete;  // elsewhere, the distances would lead elsewhere
  SiteEntry& operator=(const SiteEntry&) = delete;

  std::int32_t nop;
  std::int32_t call;   // of what computes the address and goes on to the module's check
  std::uint32_t kind;  // kSiteWrites, kSiteHasLength, kSiteStatic; from bit 8 on what only people ask for
                       // (trace/site_table.hpp)

  std::uintptr_t nop_address() const { return reinterpret_cast<std::uintptr_t>(&nop) + nop; }
  std::uintptr_t call_address() const { return reinterpret_cast<std::uintptr_t>(&call) + call; }
};
static_assert(sizeof(SiteEntry) == 12);
inline constexpr std::uint32_t kSiteWrites = 1, kSiteHasLength = 2, kSiteKinds = 4;
// It calls its check by itself, as soon as there is one: nothing is patched, and it is always on. The address of its
// nop is five bytes before where the call returns to.
inline constexpr std::uint32_t kSiteStatic = 4;

// Of each program and library with hints there is one, in its data.
struct HintedModule {
  std::uint32_t version;  // 1
  std::uint32_t entry_bytes;
  const SiteEntry* first;
  const SiteEntry* end;
  void (*checks[kSiteKinds])();  // by kind; set here
};
static_assert(offsetof(HintedModule, checks) == 24);

// What is known of a site while the program runs. Written by any thread, without order: it is for guessing.
struct SiteState {
  std::atomic<std::uint64_t> next_page{0};  // behind what was asked for last
  std::atomic<std::uint32_t> run{0};        // how often in a row that was what came next
  std::atomic<std::uint32_t> misses{0};     // times the page was not there and could be had
  std::atomic<std::uint64_t> passes{0};     // counted only for a profile
};

// A module that was shown, as the slow path looks for it.
struct SiteTable {
  std::atomic<std::uintptr_t> low{0}, high{0};  // its nops lie there; both 0: the slot is free
  std::span<const SiteEntry> entries;           // as the linker put them together
  SiteState* states = nullptr;                  // one an entry
  std::uint32_t* by_return = nullptr;           // index + 1, hashed by the address behind the nop; 0: nothing there
  std::uint32_t by_return_mask = 0;
  std::uint64_t identity = 0;  // of what the compiler and the linker made (site_profile.hpp)
  char path[256] = {};
};
inline constexpr std::size_t kSiteTablesMax = 256;
std::span<SiteTable> site_tables();

// The site whose call returns to this address; null when there is none. Any thread, never blocks.
SiteState* site_of(std::uintptr_t return_address);

// Whether hints may be about far memory in this process. Each library has its own: src/preload/runtime.cpp and
// src/runtime/linked.cpp.
bool sites_wanted();

}  // namespace hinterland::hint

// For the constructors of hinted programs and libraries. Any thread; blocks others that call.
extern "C" __attribute__((visibility("default"))) void hl_hinted_module(hinterland::hint::HintedModule* module);
