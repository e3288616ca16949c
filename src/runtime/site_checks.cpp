#include "runtime/site_checks.hpp"

#include <atomic>

#include "base/keeping_registers.hpp"
#include "hinterland/hint.h"

namespace hinterland::hint {
namespace {

constexpr int kPageShift = 12;
constexpr std::uintptr_t kPage = std::uintptr_t{1} << kPageShift;
constexpr std::uint64_t kStripPages = 64;  // of a long range, what faults would read ahead

// The runtime's map is written by whoever finds something out (hint_map.hpp).
std::atomic_ref<unsigned char> byte_of(std::uintptr_t address) {
  return std::atomic_ref(const_cast<unsigned char&>(hl_runtime.map[(address - hl_runtime.base) >> kPageShift]));
}
unsigned needed(bool writes) { return writes ? HL_WRITABLE : HL_THERE; }
bool is_missing(std::uintptr_t address, bool writes) {
  return address - hl_runtime.base < hl_runtime.size &&
         (byte_of(address).load(std::memory_order_relaxed) & needed(writes)) == 0;  // orders nothing: hint_map.hpp
}

// A page that is still missing after it was asked for was never touched, or is in motion: the fault will come, and be
// told. To ask again at each access would be dear (millions of calls, measured), so it is noted as there. Who moves
// the page next notes what is true. False when it was so.
bool note_there(std::uintptr_t address, bool writes) {
  if (!is_missing(address, writes)) return true;
  byte_of(address).store(writes ? HL_THERE | HL_WRITABLE : HL_THERE, std::memory_order_relaxed);
  return false;
}

// Whether what comes next at this site is what lies next: twice in a row, and the runtime may read ahead. A crossing
// alone is no reason: rows of a graph are short.
bool goes_on_in_order(SiteState& site, std::uint64_t page) {
  const auto step = static_cast<std::int64_t>(page - site.next_page.load(std::memory_order_relaxed));
  constexpr std::int64_t kGapPages = 4, kBackPages = -64;  // of a run; behind, what has been read ahead
  constexpr std::uint32_t kRunMax = 32;
  std::uint32_t run = site.run.load(std::memory_order_relaxed);
  if (step >= 0 && step <= kGapPages)
    run = run < kRunMax ? run + 1 : run;
  else if (step > 0 || step < kBackPages)
    run = 0;
  site.run.store(run, std::memory_order_relaxed);
  const bool in_order = run >= 2;
  if (in_order)
    site.next_page.store(page + kStripPages, std::memory_order_relaxed);
  else if (step >= 0 || step < kBackPages)
    site.next_page.store(page + 1, std::memory_order_relaxed);
  return in_order;
}

void ask_for_page(std::uintptr_t address, SiteState* site, bool writes) {
  const bool in_order = site != nullptr && goes_on_in_order(*site, address >> kPageShift);
  std::uint32_t flags = (writes ? HL_HINT_WRITE : 0) | (in_order ? HL_HINT_SEQUENTIAL : 0);
  hl_runtime.hint(reinterpret_cast<const void*>(address), 1, in_order ? INT32_MAX : 0, flags);
  if (note_there(address, writes) && site != nullptr) site->misses.fetch_add(1, std::memory_order_relaxed);
}

void ask_for_range(std::uintptr_t address, std::uint64_t length, SiteState* site, bool writes) {
  if (length == 0 || address - hl_runtime.base >= hl_runtime.size) return;
  const std::uintptr_t window_end = hl_runtime.base + hl_runtime.size;
  std::uintptr_t page = address & ~(kPage - 1);
  std::uintptr_t end = length > window_end - address ? window_end : address + length;
  while (page < end && !is_missing(page, writes)) page += kPage;
  if (page >= end) return;
  end = std::min(end, page + kStripPages * kPage);
  hl_runtime.hint(reinterpret_cast<const void*>(page), end - page, 0, writes ? HL_HINT_WRITE : 0);
  bool came = false;
  for (std::uintptr_t each = page; each < end; each += kPage) came |= note_there(each, writes);
  if (came && site != nullptr) site->misses.fetch_add(1, std::memory_order_relaxed);
}

void count_pass(SiteState* site) {
  if (site != nullptr) site->passes.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace
}  // namespace hinterland::hint

// --- from the assembly below
// -----------------------------------------------------------------------------------------
using namespace hinterland::hint;

#define HL_SLOW(name_, writes_)                                                            \
  extern "C" __attribute__((visibility("hidden"), used)) void hl_site_ask_##name_(         \
      std::uintptr_t address, std::uintptr_t back, std::uint64_t /*length*/) {             \
    ask_for_page(address, site_of(back), writes_);                                         \
  }                                                                                        \
  extern "C" __attribute__((visibility("hidden"), used)) void hl_site_ask_range_##name_(   \
      std::uintptr_t address, std::uintptr_t back, std::uint64_t length) {                 \
    ask_for_range(address, length, site_of(back), writes_);                                \
  }                                                                                        \
  extern "C" __attribute__((visibility("hidden"), used)) void hl_site_count_##name_(       \
      std::uintptr_t address, std::uintptr_t back, std::uint64_t /*length*/) {             \
    SiteState* site = site_of(back);                                                       \
    count_pass(site);                                                                      \
    if (is_missing(address, writes_)) ask_for_page(address, site, writes_);                \
  }                                                                                        \
  extern "C" __attribute__((visibility("hidden"), used)) void hl_site_count_range_##name_( \
      std::uintptr_t address, std::uintptr_t back, std::uint64_t length) {                 \
    SiteState* site = site_of(back);                                                       \
    count_pass(site);                                                                      \
    ask_for_range(address, length, site, writes_);                                         \
  }
HL_SLOW(read, false)
HL_SLOW(write, true)

// They have the address, where the site's call returns to, and the length.
HL_KEEPING_REGISTERS(hl_site_slow_read, hl_site_ask_read);
HL_KEEPING_REGISTERS(hl_site_slow_write, hl_site_ask_write);
HL_KEEPING_REGISTERS(hl_site_slow_range_read, hl_site_ask_range_read);
HL_KEEPING_REGISTERS(hl_site_slow_range_write, hl_site_ask_range_write);
HL_KEEPING_REGISTERS(hl_site_counted_read, hl_site_count_read);
HL_KEEPING_REGISTERS(hl_site_counted_write, hl_site_count_write);
HL_KEEPING_REGISTERS(hl_site_counted_range_read, hl_site_count_range_read);
HL_KEEPING_REGISTERS(hl_site_counted_range_write, hl_site_count_range_write);

// The page is outside the window, or there: back. hl_runtime_here: base at 8, size at 16, map at 24. The base is read
// before the size, which is written last when paging begins.
#define HL_CHECK_OF_PAGE(name_, bit_)                                                                          \
  __asm__(".pushsection .text\n.p2align 4\n.hidden hl_site_check_" #name_ "\n.globl hl_site_check_" #name_     \
          "\n.type hl_site_check_" #name_ ", @function\nhl_site_check_" #name_                                 \
          ":\n.cfi_startproc\n"                                                                                \
          "sub hl_runtime_here+8(%rip), %r11\ncmp hl_runtime_here+16(%rip), %r11\njae 1f\n"                    \
          "shr $12, %r11\nadd hl_runtime_here+24(%rip), %r11\ntestb $" #bit_                                   \
          ", (%r11)\nje 2f\n1: ret\n"                                                                          \
          "2: sub hl_runtime_here+24(%rip), %r11\nshl $12, %r11\nadd hl_runtime_here+8(%rip), %r11\n"          \
          "jmp hl_site_slow_" #name_ "\n.cfi_endproc\n.size hl_site_check_" #name_ ", .-hl_site_check_" #name_ \
          "\n.popsection\n")
HL_CHECK_OF_PAGE(read, 1);
HL_CHECK_OF_PAGE(write, 2);

// Of a range within one page the page; of one on two pages both; the slow path looks at more.
#define HL_CHECK_OF_RANGE(name_, bit_)                                                                      \
  __asm__(".pushsection .text\n.p2align 4\n.hidden hl_site_check_range_" #name_                             \
          "\n.globl hl_site_check_range_" #name_ "\n.type hl_site_check_range_" #name_                      \
          ", @function\nhl_site_check_range_" #name_                                                        \
          ":\n.cfi_startproc\n"                                                                             \
          "test %r10, %r10\nje 4f\npush %rax\n.cfi_def_cfa_offset 16\n"                                     \
          "mov %r11, %rax\nsub hl_runtime_here+8(%rip), %rax\ncmp hl_runtime_here+16(%rip), %rax\njae 3f\n" \
          "and $4095, %eax\nadd %r10, %rax\njc 5f\ncmp $4096, %rax\njbe 2f\ncmp $8192, %rax\nja 5f\n"       \
          "mov %r11, %rax\nsub hl_runtime_here+8(%rip), %rax\nadd $4096, %rax\n"                            \
          "cmp hl_runtime_here+16(%rip), %rax\njae 5f\nshr $12, %rax\nadd hl_runtime_here+24(%rip), %rax\n" \
          "testb $" #bit_ ", -1(%rax)\nje 5f\ntestb $" #bit_                                                \
          ", (%rax)\nje 5f\n"                                                                               \
          "3: pop %rax\n.cfi_def_cfa_offset 8\n4: ret\n.cfi_def_cfa_offset 16\n"                            \
          "2: pop %rax\n.cfi_def_cfa_offset 8\njmp hl_site_check_" #name_                                   \
          "\n.cfi_def_cfa_offset 16\n"                                                                      \
          "5: pop %rax\n.cfi_def_cfa_offset 8\njmp hl_site_slow_range_" #name_                              \
          "\n.cfi_endproc\n.size hl_site_check_range_" #name_ ", .-hl_site_check_range_" #name_ "\n.popsection\n")
HL_CHECK_OF_RANGE(read, 1);
HL_CHECK_OF_RANGE(write, 2);

extern "C" {
#define HL_DECLARED(name_) __attribute__((visibility("hidden"))) void name_()
HL_DECLARED(hl_site_check_read);
HL_DECLARED(hl_site_check_write);
HL_DECLARED(hl_site_check_range_read);
HL_DECLARED(hl_site_check_range_write);
HL_DECLARED(hl_site_counted_read);
HL_DECLARED(hl_site_counted_write);
HL_DECLARED(hl_site_counted_range_read);
HL_DECLARED(hl_site_counted_range_write);
}

namespace hinterland::hint {
namespace {

constexpr Check kChecks[kSiteKinds] = {hl_site_check_read, hl_site_check_write, hl_site_check_range_read,
                                       hl_site_check_range_write};
constexpr Check kCountingChecks[kSiteKinds] = {hl_site_counted_read, hl_site_counted_write,
                                               hl_site_counted_range_read, hl_site_counted_range_write};

}  // namespace

std::span<const Check, kSiteKinds> checks() {
  prepare_to_keep_registers();
  return kChecks;
}
std::span<const Check, kSiteKinds> counting_checks() {
  prepare_to_keep_registers();
  return kCountingChecks;
}

}  // namespace hinterland::hint
