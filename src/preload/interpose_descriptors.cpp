// Calls on the runtime's descriptors: to the program these are not open, whatever it does with them. One that goes
// through all numbers there are (sandboxes, servers that clean up before they begin) could otherwise cut the far
// file, take far memory off its userfaultfd, or stop a connection's timer.
//
// Nearly all calls are on lower numbers than the runtime takes: those cost a comparison and a jump, and nothing of
// the caller's stack. The runtime's own calls come here as well, and pass, because they come from this library.
#include <sys/socket.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "preload/descriptor_guards.hpp"
#include "preload/guard_stubs.hpp"
#include "preload/libc_symbol.hpp"
#include "preload/next.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

static_assert(EBADF == 9, "descriptor_calls.inc has it as a number");

extern "C" {

// `next` is what the function with that name is to jump to: libc's.
__attribute__((used, visibility("hidden"))) void hinterland_find_guarded(std::uintptr_t* next, const char* name) {
  int saved_errno = errno;
  void* found = hinterland::uninterrupted([name] { return hinterland::find_next(name); });
  if (found != nullptr) *next = reinterpret_cast<std::uintptr_t>(found);
  errno = saved_errno;
}

__attribute__((used, visibility("hidden"))) bool hinterland_refuses(int first, int second, const void* caller) {
  return hinterland::descriptor_guards::refuses(first, second, caller);
}

__attribute__((used, visibility("hidden"))) bool hinterland_refuses_messages(int socket, const void* messages,
                                                                             const void* caller, unsigned count) {
  return hinterland::descriptor_guards::refuses_messages(socket, static_cast<const mmsghdr*>(messages), count,
                                                         caller);
}

}  // extern "C"

#define HL_LOOKS(number) "cmp %" number ", hinterland_first_guarded(%rip)\n\tjle 1f\n\t"
#define HL_GUARDED(name, first, second, none)              \
  HL_STUB(name, HL_LOOKS(first) HL_LOOKS(second),          \
          "mov %" second ", %r8d\n\tmov %" first           \
          ", %edi\n\tmov %r8d, %esi\n\tmov %rax, %rdx\n\t" \
          "call hinterland_refuses\n",                     \
          none);
#include "preload/descriptor_calls.inc"

// All of them, before the program needs one in a signal handler.
extern "C" void hinterland_find_all_guarded() {
#define HL_GUARDED(name, first, second, none)                             \
  extern std::uintptr_t next_of_##name __asm__("hinterland_next_" #name); \
  hinterland_find_guarded(&next_of_##name, #name);
#include "preload/descriptor_calls.inc"
}

// The messages of all are looked at: one may hand on a descriptor.
HL_STUB(sendmsg, "jmp 1f\n\t", "mov %rax, %rdx\n\tmov $1, %ecx\n\tcall hinterland_refuses_messages\n", "$-1");
HL_STUB(sendmmsg, "jmp 1f\n\t", "mov %edx, %ecx\n\tmov %rax, %rdx\n\tcall hinterland_refuses_messages\n", "$-1");

// With arguments in vector registers, which would have to be kept, too.
HL_INTERPOSED int hinterland_dprintf(int descriptor, const char* format, ...) __asm__("dprintf");
HL_INTERPOSED int hinterland_dprintf(int descriptor, const char* format, ...) {
  static constinit hinterland::Next<int(int, const char*, va_list)> next("vdprintf");
  if (hinterland::descriptor_guards::refuses(descriptor, descriptor, __builtin_return_address(0))) return -1;
  va_list arguments;
  va_start(arguments, format);
  int result = next.get()(descriptor, format, arguments);
  va_end(arguments);
  return result;
}
HL_INTERPOSED int __dprintf_chk(int descriptor, int flag, const char* format, ...) {
  static constinit hinterland::Next<int(int, int, const char*, va_list)> next("__vdprintf_chk");
  if (hinterland::descriptor_guards::refuses(descriptor, descriptor, __builtin_return_address(0))) return -1;
  va_list arguments;
  va_start(arguments, format);
  int result = next.get()(descriptor, flag, format, arguments);
  va_end(arguments);
  return result;
}
