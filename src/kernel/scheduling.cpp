#include "kernel/scheduling.hpp"

#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/stats_folder.hpp"

namespace hinterland {
namespace {

constexpr int kHighestPriority = -20;
thread_local bool t_before_others = false;

// The kernel asks for the capability in the first user namespace: root of a container's own namespace does not have
// it. That one has always had this number (PROC_USER_INIT_INO).
bool in_first_user_namespace() { return namespace_number("/proc/self/ns/user") == 0xefff'fffd; }

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

std::array<char, 48> path_of_thread_state(pid_t thread_id) {
  std::array<char, 48> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", static_cast<int>(thread_id));
  return path;
}

bool is_runnable(ProcFile& thread_state) {
  char text[256];
  const std::int64_t length = thread_state.read_at(text, sizeof text - 1, 0);
  if (length <= 0) return false;
  text[length] = '\0';
  const char* state = std::strrchr(text, ')');  // the name before it may hold anything
  return state != nullptr && state[1] == ' ' && state[2] == 'R';
}

}  // namespace hinterland
