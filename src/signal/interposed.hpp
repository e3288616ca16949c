// Functions of libc that programs find here first.
//
// HL_INTERPOSED(result, name, parameters) begins the definition of one; in its body NEXT(name) is the function that
// the program would call without us. Defined under a name of our own, because libc's headers declare the other one in
// their way.
//
// No exceptions in this room (CMakeLists.txt): a thread that is cancelled in such a call unwinds through it with
// libc's unwinder, and must find nothing to do. What was held for the call then stays held until it is freed.
#pragma once

#include <dlfcn.h>

#include <atomic>

#include "base/loaded_functions.hpp"

namespace hinterland {

// Looked up when the library is loaded, or at first use where that comes earlier: later it may be a signal handler or
// a vfork child that asks. What no file has is not looked up: the loader would allocate for its message.
class NextFunction {
 public:
  constexpr explicit NextFunction(const char* name, const char* version = nullptr) : name_(name), version_(version) {}
  void* get() {
    void* found = found_.load(std::memory_order_relaxed);  // relaxed: every thread would find the same address
    if (found == nullptr && function_behind(this, name_, true) != 0) {
      found = version_ != nullptr ? dlvsym(RTLD_NEXT, name_, version_) : dlsym(RTLD_NEXT, name_);
      found_.store(found, std::memory_order_relaxed);
    }
    return found;
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<void*> found_{nullptr};
};

}  // namespace hinterland

// The version where there are several, and the lookup would find the oldest.
#define HL_INTERPOSED_AS(result, name, version, parameters)                                                        \
  extern "C" __attribute__((visibility("default"))) result hl_own_##name parameters __asm__(#name);                \
  static constinit hinterland::NextFunction g_next_##name(#name, version);                                         \
  static hinterland::NextFunction* const g_list_##name __attribute__((used, section("hl_next"))) = &g_next_##name; \
  using Type_##name = result parameters;                                                                           \
  result hl_own_##name parameters
#define HL_INTERPOSED(result, name, parameters) HL_INTERPOSED_AS(result, name, nullptr, parameters)
#define NEXT(name) reinterpret_cast<Type_##name*>(g_next_##name.get())
// Ours, for others in the same file.
#define OWN(name) hl_own_##name

// One that holds what the call uses while it runs: the rest are calls on `held` (held.hpp).
#define HL_HELD(result, name, parameters, arguments, ...)        \
  HL_INTERPOSED(result, name, parameters) {                      \
    if (!hinterland::self_paging()) return NEXT(name) arguments; \
    hinterland::Held held;                                       \
    __VA_ARGS__;                                                 \
    return held.done(NEXT(name) arguments);                      \
  }
