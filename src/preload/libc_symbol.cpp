#include "preload/libc_symbol.hpp"

#include <dlfcn.h>
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

void* find_next(const char* name) {
  static const char in_this_library = 0;
  if (std::uintptr_t found = function_behind(&in_this_library, name, false); found != 0)
    return reinterpret_cast<void*>(found);
  // One whose address a resolver chooses is the loader's to call.
  return function_behind(&in_this_library, name, true) != 0 ? dlsym(RTLD_NEXT, name) : nullptr;
}

}  // namespace hinterland
