// Functions of libc by their names, without the loader's help.
#pragma once

namespace hinterland {

// The address of a function that libc defines (or libdl, before glibc 2.34), nullptr where there is none. Reads
// libc's own table; allocates nothing.
void* find_in_libc(const char* name);

// The address of the function of that name that the program would call without this library: of the next file that
// has one, as by dlsym(RTLD_NEXT); nullptr where there is none. Allocates nothing where there is one, and leaves
// alone what the program's next dlerror() says, as dlsym() does not. Takes the loader's lock; needs a kilobyte of
// stack.
void* find_next(const char* name);

}  // namespace hinterland
