// The runtime of the test library: the local pager, a thread of its own that never ends, and two descriptors that the
// program must not close. On when HINTERLAND_LOCAL is set; HINTERLAND_TEST_START_FAILS makes it fail,
// with HINTERLAND_TEST_NOT_PERMITTED as if for want of permission.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/inside.hpp"
#include "base/runtime_descriptors.hpp"
#include "base/stats.hpp"
#include "kernel/kept_file.hpp"
#include "object/entry.hpp"
#include "preload/runtime.hpp"
#include "preload/testing/local_pager.hpp"

namespace hinterland {
namespace {

void* sleep_for_ever(void*) {
  InsideRuntime inside;
  for (;;) pause();
}

}  // namespace

// It has no far objects.
void object::before_fork() {}
void object::after_fork_in_parent(bool) {}
void object::after_fork_in_child() {}

bool runtime_wanted() { return getenv("HINTERLAND_LOCAL") != nullptr; }

bool runtime_permitted() { return getenv("HINTERLAND_TEST_NOT_PERMITTED") == nullptr; }

Status start_runtime(const char* program) {
  if (getenv("HINTERLAND_TEST_START_FAILS") != nullptr)
    return std::unexpected(Error::make(EPERM, "the test asks for a failure").remedy("unset it"));
  open_stat_page(program);
  Result<Pager*> pager = start_local_pager(64 * kMiB);
  if (!pager) return std::unexpected(pager.error());
  for (int i = 0; i < 2; ++i) {
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    note_runtime_descriptor(fcntl(low, F_DUPFD_CLOEXEC, 700));
    close(low);
  }
  sigset_t all, before;  // as the real ones, it takes no signals of the program
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  pthread_create(&thread, nullptr, sleep_for_ever, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

}  // namespace hinterland

// Without far memory there is no far file.
namespace hinterland {
std::atomic<unsigned> KeptFile::s_count{0};
bool KeptFile::is_one(dev_t, ino_t) { return false; }
}  // namespace hinterland
