// Names that lead to the far file: it has none of its own, but /proc has one for each descriptor. A program that
// opens that to write, or cuts it, would lose far pages, although it never knew of the file. To the program there is
// no such file: ENOENT. Only calls that may write are asked about, and cost one more system call over `file:`.
#include <fcntl.h>

#include <cstdint>
#include <cstring>

#include "preload/descriptor_guards.hpp"
#include "preload/guard_stubs.hpp"

namespace guards = hinterland::descriptor_guards;

extern "C" {

void hinterland_find_guarded(std::uintptr_t* next, const char* name);
void hinterland_find_all_paths();

__attribute__((used, visibility("hidden"))) bool hinterland_refuses_path(int at, const char* path,
                                                                         const void* caller) {
  return guards::refuses_path(at, path, caller);
}

// Of a stream: what a descriptor is opened for.
__attribute__((used, visibility("hidden"))) bool hinterland_refuses_stream(const char* path, const char* how,
                                                                           const void* caller) {
  return std::strpbrk(how, "wa+") != nullptr && guards::refuses_path(AT_FDCWD, path, caller);
}

}  // extern "C"

static_assert((O_WRONLY | O_RDWR | O_TRUNC) == 0x203 && AT_FDCWD == -100);
#define HL_WRITES(flags) "test $0x203, %" flags "\n\tjnz 1f\n\t"
#define HL_ALWAYS "jmp 1f\n\t"
#define HL_ASKS "mov %rdi, %rsi\n\tmov $-100, %edi\n\tmov %rax, %rdx\n\tcall hinterland_refuses_path\n"
#define HL_ASKS_AT "mov %rax, %rdx\n\tcall hinterland_refuses_path\n"
#define HL_ASKS_OF_STREAM "mov %rax, %rdx\n\tcall hinterland_refuses_stream\n"

#define HL_PATHS(each)                                                                                           \
  each(open, HL_WRITES("esi"), HL_ASKS, "$-1") each(open64, HL_WRITES("esi"), HL_ASKS, "$-1")                    \
      each(__open_2, HL_WRITES("esi"), HL_ASKS, "$-1") each(__open64_2, HL_WRITES("esi"), HL_ASKS, "$-1")        \
          each(openat, HL_WRITES("edx"), HL_ASKS_AT, "$-1") each(openat64, HL_WRITES("edx"), HL_ASKS_AT, "$-1")  \
              each(__openat_2, HL_WRITES("edx"), HL_ASKS_AT, "$-1")                                              \
                  each(__openat64_2, HL_WRITES("edx"), HL_ASKS_AT, "$-1") each(creat, HL_ALWAYS, HL_ASKS, "$-1") \
                      each(creat64, HL_ALWAYS, HL_ASKS, "$-1") each(truncate, HL_ALWAYS, HL_ASKS, "$-1")         \
                          each(truncate64, HL_ALWAYS, HL_ASKS, "$-1")                                            \
                              each(fopen, HL_ALWAYS, HL_ASKS_OF_STREAM, "$0")                                    \
                                  each(fopen64, HL_ALWAYS, HL_ASKS_OF_STREAM, "$0")                              \
                                      each(freopen, HL_ALWAYS, HL_ASKS_OF_STREAM, "$0")                          \
                                          each(freopen64, HL_ALWAYS, HL_ASKS_OF_STREAM, "$0")

#define HL_PATH_STUB(name, looks, asks, none) HL_STUB(name, looks, asks, none);
HL_PATHS(HL_PATH_STUB)

// All of them, before the program needs one in a signal handler.
extern "C" void hinterland_find_all_paths() {
#define HL_FIND(name, looks, asks, none)                                  \
  extern std::uintptr_t next_of_##name __asm__("hinterland_next_" #name); \
  hinterland_find_guarded(&next_of_##name, #name);
  HL_PATHS(HL_FIND)
}
