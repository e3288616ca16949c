// dlopen and dlsym: ways to functions of libc that lead past those that stand in for them here.
//
// A library that is opened with RTLD_DEEPBIND (PHP opens its extensions so) looks for malloc, free, mmap and the rest
// in libc first. One that asks libc itself, `dlsym(dlopen("libc.so.6"), "free")`, gets libc's: ctypes, JNA and
// P/Invoke do. Both then give libc's free a block of ours, or unmap far memory behind our back. So RTLD_DEEPBIND is
// left out, and who asks libc for a function gets the one that any other library of the program is bound to, if that
// is one of ours.
//
// Left as they are: RTLD_NEXT, whose caller stands between the program and libc as we do; dlvsym; and dlmopen, whose
// namespaces have a libc and a heap of their own.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "base/log.hpp"
#include "preload/catching.hpp"
#include "preload/object_names.hpp"
#include "preload/own_calls.hpp"
#include "preload/state.hpp"

namespace {

using Lookup = void* (*)(void*, const char*);

// The path of the object that has this address, nullptr where there is none.
const char* path_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fname : nullptr;
}

}  // namespace

// Both ask who calls them, so they are jumped to.
extern "C" {
__attribute__((used, visibility("hidden"))) std::uintptr_t hinterland_next_dlopen = 0;
__attribute__((used, visibility("hidden"))) std::uintptr_t hinterland_next_dlsym = 0;

// libc's, which cannot be asked for by itself. In libdl.so.2 before glibc 2.34.
static Lookup next_dlsym() {
  if (hinterland_next_dlsym == 0) {
    void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    hinterland_next_dlsym = reinterpret_cast<std::uintptr_t>(found);
  }
  return reinterpret_cast<Lookup>(hinterland_next_dlsym);
}

// What to return, or nullptr: libc's is to look, and to say what is wrong.
__attribute__((used, visibility("hidden"))) void* hinterland_before_dlsym(void* library, const char* name) {
  Lookup next = next_dlsym();
  if (library == RTLD_NEXT || library == RTLD_DEFAULT || name == nullptr ||
      hinterland::mode() == hinterland::Mode::native)
    return nullptr;
  void* found = next(library, name);
  if (found == nullptr) return nullptr;
  void* of_program = next(RTLD_DEFAULT, name);
  if (of_program == nullptr || of_program == found) return found;
  using namespace hinterland::object_names;
  return is_ours(path_of(of_program)) && is_libc(path_of(found)) ? of_program : found;
}

__attribute__((used, visibility("hidden"))) int hinterland_before_dlopen(const char* path, int flags) {
  using namespace hinterland;
  if (hinterland_next_dlopen == 0)
    hinterland_next_dlopen = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_NEXT, "dlopen"));
  if (mode() == Mode::far) own_calls::report(catching::is_on());
  if ((flags & RTLD_DEEPBIND) == 0 || mode() == Mode::native) return flags;
  static std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed))  // relaxed: nothing else is read by it
    log::info(
        "%s and what else asks for RTLD_DEEPBIND is opened without: it would use libc's malloc beside the program's",
        path != nullptr ? path : "the program");
  return flags & ~RTLD_DEEPBIND;
}

__attribute__((visibility("default"))) void hinterland_dlopen() __asm__("dlopen");
__attribute__((naked)) void hinterland_dlopen() {
  __asm__(
      "push %rdi\n\t"
      "push %rsi\n\t"
      "sub $8, %rsp\n\t"
      "call hinterland_before_dlopen\n\t"
      "add $8, %rsp\n\t"
      "pop %rsi\n\t"
      "pop %rdi\n\t"
      "mov %eax, %esi\n\t"
      "jmp *hinterland_next_dlopen(%rip)");
}

__attribute__((visibility("default"))) void hinterland_dlsym() __asm__("dlsym");
__attribute__((naked)) void hinterland_dlsym() {
  __asm__(
      "push %rdi\n\t"
      "push %rsi\n\t"
      "sub $8, %rsp\n\t"
      "call hinterland_before_dlsym\n\t"
      "add $8, %rsp\n\t"
      "pop %rsi\n\t"
      "pop %rdi\n\t"
      "test %rax, %rax\n\t"
      "jz 1f\n\t"
      "ret\n"
      "1:\n\t"
      "jmp *hinterland_next_dlsym(%rip)");
}
}
