#include "paging/place/runtime_thread.hpp"

#include <pthread.h>
#include <signal.h>

namespace hinterland {

Status start_runtime_thread(const char* name, void* body, void* (*entry)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = pthread_create(&thread, nullptr, entry, body);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return std::unexpected(
        Error::make(error, "cannot start the %s thread", name).remedy("raise the limit on threads: ulimit -u"));
  pthread_setname_np(thread, name);
  pthread_detach(thread);
  return {};
}

}  // namespace hinterland
