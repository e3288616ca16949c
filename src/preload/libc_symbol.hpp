// Functions of libc by their names, without the loader's help: for those of the loader's own that stand in for others
// here (interpose_loader.cpp), and by which all else is looked up.
#pragma once

namespace hinterland {

// The address of a function that libc defines (or libdl, before glibc 2.34), nullptr where there is none. Reads
// libc's own table; allocates nothing. Of several versions the first in the table: only for names whose versions are
// alike.
void* find_in_libc(const char* name);

}  // namespace hinterland
