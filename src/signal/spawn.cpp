// Starting programs: the kernel reads path, words and environment.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_call.hpp"
#include "signal/held.hpp"
#include "signal/interposed.hpp"
#include "signal/system_calls.hpp"

using namespace hinterland;

using Words = char* const*;

// In the child that these make, libc runs with SIGBUS at its default or blocked.
#define HL_SPAWN(name)                                                                              \
  HL_HELD(int, name,                                                                                \
          (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,              \
           const posix_spawnattr_t* attributes, Words words, Words environment),                    \
          (child, path, actions, attributes, words, environment), held.out(child), held.text(path), \
          held.in(actions), held.in(attributes), held.texts(words), held.texts(environment))
HL_SPAWN(posix_spawn)
HL_SPAWN(posix_spawnp)
HL_HELD(int, system, (const char* command), (command), held.text(command), held.texts(environ))
HL_HELD(FILE*, popen, (const char* command, const char* how), (command, how), held.text(command), held.texts(environ))

// A call that succeeds does not come back to let go, and in a vfork child what is held is the parent's. So nothing is
// held; should something leave just then, the call fails without effect, and is made again.
// A function of its own, whose part of the stack is free again when the call is made.
__attribute__((noinline)) static void bring_in(const char* path, Words words, Words environment) {
  Held held;
  held.text(path);
  held.texts(words);
  held.texts(environment);
  held.done(0);
}

template <typename Call>
static int execute(const char* path, Words words, Words environment, Call&& call) {
  constexpr int kTries = 100;
  for (int tries = 0;; ++tries) {
    bring_in(path, words, environment);
    int result = call();
    if (errno != EFAULT || tries == kTries) return result;
  }
}

#define HL_EXECUTE(name, parameters, arguments, path, environment)                  \
  HL_INTERPOSED(int, name, parameters) {                                            \
    if (!self_paging()) return NEXT(name) arguments;                                \
    return execute(path, words, environment, [=] { return NEXT(name) arguments; }); \
  }
namespace hinterland {
long execute_held(long number, const long (&a)[6]) {
  const int first = number == SYS_execveat ? 1 : 0;
  const auto words = [&a](int which) { return reinterpret_cast<Words>(a[which]); };
  return execute(reinterpret_cast<const char*>(a[first]), words(first + 1), words(first + 2),
                 [&] { return raw::checked(number, a[0], a[1], a[2], a[3], a[4]) == 0 ? 0 : -errno; });
}
}  // namespace hinterland

HL_EXECUTE(execve, (const char* path, Words words, Words envp), (path, words, envp), path, envp)
HL_EXECUTE(execv, (const char* path, Words words), (path, words), path, environ)
HL_EXECUTE(execvp, (const char* path, Words words), (path, words), path, environ)
HL_EXECUTE(execvpe, (const char* path, Words words, Words envp), (path, words, envp), path, envp)
HL_EXECUTE(fexecve, (int file, Words words, Words envp), (file, words, envp), nullptr, envp)
HL_EXECUTE(execveat, (int at, const char* path, Words words, Words envp, int flags), (at, path, words, envp, flags),
           path, envp)
