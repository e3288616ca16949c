#include "preload/libc_symbol.hpp"

#include <link.h>

#include <cstdint>

#include "base/loaded_functions.hpp"
#include "preload/object_names.hpp"

namespace hinterland {
namespace {

struct Wanted {
  const char* name;
  std::uintptr_t found;
};

int look(dl_phdr_info* object, std::size_t, void* argument) {
  auto* wanted = static_cast<Wanted*>(argument);
  if (!object_names::is_libc(object->dlpi_name) && !object_names::begins_with(object->dlpi_name, "libdl.so"))
    return 0;
  wanted->found = function_in(*object, wanted->name, false);
  return wanted->found != 0 ? 1 : 0;
}

}  // namespace

void* find_in_libc(const char* name) {
  Wanted wanted{name, 0};
  dl_iterate_phdr(look, &wanted);
  return reinterpret_cast<void*>(wanted.found);
}

}  // namespace hinterland
