#include "kernel/scheduling.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/raw_call.hpp"

namespace hinterland {
namespace {

constexpr int kHighestPriority = -20;
thread_local bool t_before_others = false;

// System calls made directly: in a preloaded library the libc symbols may be interposers.
ssize_t read_file(const char* path, char* text, std::size_t size) {
  int descriptor = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (descriptor < 0) return -1;
  ssize_t length = syscall(SYS_read, descriptor, text, size - 1);
  raw::checked(SYS_close, descriptor);
  text[length > 0 ? length : 0] = '\0';
  return length;
}

// The kernel asks for the capability in the first user namespace: root of a container's own namespace does not have
// it.
bool in_first_user_namespace() {
  char text[64];
  unsigned inside = 1, outside = 1, count = 0;
  return read_file("/proc/self/uid_map", text, sizeof text) > 0 &&
         std::sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
         count == 0xffffffff;
}

}  // namespace

bool several_cpus_allowed() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
}

bool may_leave_idle_policy() {
  rlimit limit{};
  long nice_limit =
      20 - getpriority(PRIO_PROCESS, 0);  // as RLIMIT_NICE counts: 40 is the highest priority, 1 the lowest
  if (getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur >= static_cast<rlim_t>(nice_limit)) return true;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  return (data[0].effective & 1u << CAP_SYS_NICE) != 0 && in_first_user_namespace();
}

int set_idle_policy(pid_t thread_id, bool idle) {
  sched_param none{};
  return sched_setscheduler(thread_id, idle ? SCHED_IDLE : SCHED_OTHER, &none) == 0 ? 0 : -errno;
}

void go_before_others() {
  t_before_others = setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kHighestPriority) == 0;
}

void take_usual_priority() {
  if (!std::exchange(t_before_others, false)) return;
  int usual = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), usual);
}

bool is_runnable(pid_t thread_id) {
  char path[64], text[256];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(thread_id));
  if (read_file(path, text, sizeof text) <= 0) return false;
  const char* state = std::strrchr(text, ')');  // the name before it may hold anything
  return state != nullptr && state[1] == ' ' && state[2] == 'R';
}

}  // namespace hinterland
