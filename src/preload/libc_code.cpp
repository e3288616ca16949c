#include "preload/libc_code.hpp"

#include <link.h>
#include <string.h>

#include "preload/libc_symbol.hpp"
#include "preload/object_names.hpp"

namespace hinterland::libc_code {
namespace {

std::uintptr_t find_bytes(const Places& in, const void* bytes, std::size_t length) {
  return reinterpret_cast<std::uintptr_t>(memmem(reinterpret_cast<const void*>(in.base), in.bytes, bytes, length));
}

int look(dl_phdr_info* object, std::size_t, void* found) {
  if (!object_names::is_libc(object->dlpi_name)) return 0;
  auto* places = static_cast<Places*>(found);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    places->base = object->dlpi_addr + segment.p_vaddr;
    places->bytes = segment.p_memsz;
  }
  return 1;
}

}  // namespace

Places find() {
  Places places;
  dl_iterate_phdr(look, &places);
  if (places.bytes == 0) return {};
  constexpr unsigned char kGate[] = {0x0f, 0x05, 0xc3};
  constexpr unsigned char kHandlerEnd[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  places.gate = find_bytes(places, kGate, sizeof kGate);
  places.handler_end = find_bytes(places, kHandlerEnd, sizeof kHandlerEnd);
  auto function = reinterpret_cast<std::uintptr_t>(find_next("syscall"));
  if (function - places.base < places.bytes) places.function = function;
  return places;
}

}  // namespace hinterland::libc_code
