// Functions that loaded files define, by their names, without the loader's help: it reads the files' own tables and
// allocates nothing. dlsym() allocates where it finds nothing, by the program's own malloc, which may not be ready
// for that before main().
#pragma once

#include <cstdint>

struct dl_phdr_info;

namespace hinterland {

// Its address; 0: this file does not define it. Of several versions the one that dlsym() gives. `indirect`: one whose
// address a resolver chooses counts, too, and it is the resolver's that is returned.
std::uintptr_t function_in(const dl_phdr_info& file, const char* name, bool indirect);

// The same for the first file that dlsym(RTLD_NEXT) looks into when the file with `caller` in it asks, and that
// defines it.
std::uintptr_t function_behind(const void* caller, const char* name, bool indirect);

}  // namespace hinterland
