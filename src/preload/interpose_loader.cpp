// dlopen and dlsym: ways to functions of libc that lead past those that stand in for them here.
//
// A library that is opened with RTLD_DEEPBIND (PHP opens its extensions so) looks for malloc, free, mmap and the rest
// in libc first. One that asks libc itself, `dlsym(dlopen("libc.so.6"), "free")`, gets libc's: ctypes, JNA and
// P/Invoke do. Both then give libc's free a block of ours, or unmap far memory behind our back. So RTLD_DEEPBIND is
// left out, and who asks libc for a function gets the one that any other library of the program is bound to, if that
// is one of ours.
//
// dlvsym asks for one of several versions of a function. Where that is the one that libc gives by default, the
// program gets what dlsym gives it; an older version that libc keeps beside it is another function, and stays libc's.
//
// Left as they are: RTLD_NEXT, whose caller stands between the program and libc as we do; and dlmopen, whose
// namespaces have a libc and a heap of their own.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "base/log.hpp"
#include "preload/catching.hpp"
#include "preload/libc_symbol.hpp"
#include "preload/object_names.hpp"
#include "preload/own_calls.hpp"
#include "preload/state.hpp"

namespace {

using Lookup = void* (*)(void*, const char*);
using VersionLookup = void* (*)(void*, const char*, const char*);

// The path of the object that has this address, nullptr where there is none.
const char* path_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fname : nullptr;
}

// The result of a lookup of ours. What dlerror() says of it is not for the program: many tell by dlerror() whether
// their own lookup failed.
void* unsaid(void* found) {
  if (found == nullptr) static_cast<void>(dlerror());
  return found;
}

}  // namespace

// They ask who calls them, so they are jumped to.
extern "C" {
__attribute__((used, visibility("hidden"))) std::uintptr_t hinterland_next_dlopen = 0;
__attribute__((used, visibility("hidden"))) std::uintptr_t hinterland_next_dlsym = 0;
__attribute__((used, visibility("hidden"))) std::uintptr_t hinterland_next_dlvsym = 0;

// libc's, which cannot be asked for by themselves: these names are ours.
static Lookup next_dlsym() {
  if (hinterland_next_dlsym == 0)
    hinterland_next_dlsym = reinterpret_cast<std::uintptr_t>(hinterland::find_in_libc("dlsym"));
  return reinterpret_cast<Lookup>(hinterland_next_dlsym);
}
static VersionLookup next_dlvsym() {
  if (hinterland_next_dlvsym == 0)
    hinterland_next_dlvsym = reinterpret_cast<std::uintptr_t>(hinterland::find_in_libc("dlvsym"));
  return reinterpret_cast<VersionLookup>(hinterland_next_dlvsym);
}

// What to return, or nullptr: libc's is to look, and to say what is wrong.
__attribute__((used, visibility("hidden"))) void* hinterland_before_dlsym(void* library, const char* name) {
  Lookup next = next_dlsym();
  if (library == RTLD_NEXT || library == RTLD_DEFAULT || name == nullptr ||
      hinterland::mode() == hinterland::Mode::native)
    return nullptr;
  using namespace hinterland::object_names;
  void* found = next(library, name);
  if (found == nullptr || !is_libc(path_of(found))) return found;
  void* of_program = unsaid(next(RTLD_DEFAULT, name));
  return of_program != nullptr && is_ours(path_of(of_program)) ? of_program : found;
}

__attribute__((used, visibility("hidden"))) void* hinterland_before_dlvsym(void* library, const char* name,
                                                                           const char* version) {
  VersionLookup next = next_dlvsym();
  if (library == RTLD_NEXT || library == RTLD_DEFAULT || name == nullptr || version == nullptr ||
      hinterland::mode() == hinterland::Mode::native)
    return nullptr;
  void* found = next(library, name, version);
  if (found == nullptr || found != unsaid(next_dlsym()(library, name))) return found;
  return hinterland_before_dlsym(library, name);
}

__attribute__((used, visibility("hidden"))) int hinterland_before_dlopen(const char* path, int flags) {
  using namespace hinterland;
  if (hinterland_next_dlopen == 0)
    hinterland_next_dlopen = reinterpret_cast<std::uintptr_t>(hinterland::find_next("dlopen"));
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

__attribute__((visibility("default"))) void hinterland_dlvsym() __asm__("dlvsym");
__attribute__((naked)) void hinterland_dlvsym() {
  __asm__(
      "push %rdi\n\t"
      "push %rsi\n\t"
      "push %rdx\n\t"
      "call hinterland_before_dlvsym\n\t"
      "pop %rdx\n\t"
      "pop %rsi\n\t"
      "pop %rdi\n\t"
      "test %rax, %rax\n\t"
      "jz 1f\n\t"
      "ret\n"
      "1:\n\t"
      "jmp *hinterland_next_dlvsym(%rip)");
}
}
