// exec: the far device is told before the program is replaced, since afterwards nobody is there to do it; and again
// when the call comes back. (What libc executes on its own, in posix_spawn and its kin, does so in a process without
// far memory of its own.)
#include <alloca.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "preload/ending.hpp"
#include "preload/next.hpp"
#include "preload/state.hpp"

namespace {

using namespace hinterland;

using Words = char* const*;
constinit Next<int(const char*, Words, Words)> g_execve("execve");
constinit Next<int(const char*, Words)> g_execv("execv");
constinit Next<int(const char*, Words)> g_execvp("execvp");
constinit Next<int(const char*, Words, Words)> g_execvpe("execvpe");
constinit Next<int(int, Words, Words)> g_fexecve("fexecve");
constinit Next<int(int, const char*, Words, Words, int)> g_execveat("execveat");

template <typename Execute>
int leave_and(Execute&& execute) {
  const bool own = ending::is_own_process();
  if (own) pager().leave_device();
  int result = execute();
  int saved_errno = errno;
  if (own) pager().stay_on_device();
  errno = saved_errno;
  return result;
}

}  // namespace

namespace hinterland::ending {
// Later it may be a vfork child that looks for them, with its parent's loader stopped half-way.
void prepare() {
  g_execve.resolve();
  g_execv.resolve();
  g_execvp.resolve();
  g_execvpe.resolve();
  g_fexecve.resolve();
  g_execveat.resolve();
}
}  // namespace hinterland::ending

HL_INTERPOSED int execve(const char* path, Words words, Words environment) noexcept {
  return leave_and([&] { return g_execve.get()(path, words, environment); });
}
HL_INTERPOSED int execv(const char* path, Words words) noexcept {
  return leave_and([&] { return g_execv.get()(path, words); });
}
HL_INTERPOSED int execvp(const char* file, Words words) noexcept {
  return leave_and([&] { return g_execvp.get()(file, words); });
}
HL_INTERPOSED int execvpe(const char* file, Words words, Words environment) noexcept {
  return leave_and([&] { return g_execvpe.get()(file, words, environment); });
}
HL_INTERPOSED int fexecve(int descriptor, Words words, Words environment) noexcept {
  return leave_and([&] { return g_fexecve.get()(descriptor, words, environment); });
}
// glibc 2.34
HL_INTERPOSED int execveat(int folder, const char* path, Words words, Words environment, int flags) noexcept {
  return leave_and([&] {
    if (g_execveat.get() != nullptr) return g_execveat.get()(folder, path, words, environment, flags);
    errno = ENOSYS;
    return -1;
  });
}

// The words of a variadic call as an array, on the stack of the caller: nothing may be allocated here. In a macro,
// because alloca's memory ends with the function that called it. Gone through twice with one list, which is smaller
// than two.
#define HL_GATHER(words, first, list)                                           \
  va_list list;                                                                 \
  std::size_t list##_count = 1;                                                 \
  va_start(list, first);                                                        \
  while (va_arg(list, char*) != nullptr) ++list##_count;                        \
  va_end(list);                                                                 \
  va_start(list, first);                                                        \
  auto words = static_cast<char**>(alloca((list##_count + 1) * sizeof(char*))); \
  words[0] = const_cast<char*>(first);                                          \
  for (std::size_t at = 1; words[at - 1] != nullptr; ++at) words[at] = va_arg(list, char*)

// Without the vector registers, which no word comes in: saving them would take 128 bytes of the caller's stack.
#define HL_WORDS_ALONE __attribute__((target("general-regs-only")))

HL_WORDS_ALONE HL_INTERPOSED int execl(const char* path, const char* first, ...) noexcept {
  HL_GATHER(words, first, list);
  va_end(list);
  return execv(path, words);
}
HL_WORDS_ALONE HL_INTERPOSED int execlp(const char* file, const char* first, ...) noexcept {
  HL_GATHER(words, first, list);
  va_end(list);
  return execvp(file, words);
}
HL_WORDS_ALONE HL_INTERPOSED int execle(const char* path, const char* first, ...) noexcept {
  HL_GATHER(words, first, list);
  auto environment = va_arg(list, char* const*);
  va_end(list);
  return execve(path, words, environment);
}
