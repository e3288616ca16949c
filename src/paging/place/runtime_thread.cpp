#include "paging/place/runtime_thread.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <array>
#include <cstdio>
#include <memory>

namespace hinterland {
namespace {

struct Beginning {
  std::array<char, 16> name;  // with its end
  void* body;
  void* (*entry)(void*);
};

// The thread names itself: another could do it only through a file, which would take a number of the program's.
void* begin(void* of) {
  std::unique_ptr<Beginning> own(static_cast<Beginning*>(of));
  const Beginning beginning = *own;
  own.reset();
  prctl(PR_SET_NAME, beginning.name.data());
  return beginning.entry(beginning.body);
}

}  // namespace

Status start_runtime_thread(const char* name, void* body, void* (*entry)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  auto beginning = std::make_unique<Beginning>(Beginning{{}, body, entry});
  std::snprintf(beginning->name.data(), beginning->name.size(), "%s", name);
  int error = pthread_create(&thread, nullptr, begin, beginning.get());
  if (error == 0) static_cast<void>(beginning.release());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return std::unexpected(
        Error::make(error, "cannot start the %s thread", name).remedy("raise the limit on threads: ulimit -u"));
  pthread_detach(thread);
  return {};
}

}  // namespace hinterland
