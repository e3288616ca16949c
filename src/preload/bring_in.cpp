// For debuggers, which stop all threads and then cannot read far pages: called in the stopped program, it touches
// them while everything runs for a moment (packaging/hinterland-gdb.py).
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "preload/state.hpp"

// Pages of [address, address + length) that lie in far memory's window.
HL_INTERPOSED unsigned long hl_bring_in(unsigned long address, unsigned long length) {
  using namespace hinterland;
  if (mode() != Mode::far || !pager().overlaps(address, length)) return 0;
  unsigned long pages = 0;
  for (std::uintptr_t page = page_floor(address); page < address + length; page += kPageSize) {
    if (!pager().contains(page)) continue;
    static_cast<void>(*reinterpret_cast<const volatile char*>(page));
    ++pages;
  }
  return pages;
}
