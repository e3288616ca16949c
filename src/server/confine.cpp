#include "server/confine.hpp"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hinterland {
namespace {

// Serving, and what the C library does for it: memory, threads, the end, an internal error.
constexpr unsigned kAllowed[] = {
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_epoll_wait,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_accept4,
    SYS_shutdown,
    SYS_close,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_getcpu,
    SYS_getsockname,
    SYS_getpeername,
    SYS_read,
    SYS_write,
    SYS_writev,
    SYS_poll,
    SYS_ppoll,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_gettid,
    SYS_getpid,
    SYS_tgkill,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_getrandom,
    SYS_fstat,
    SYS_newfstatat,
    SYS_lseek,  // of standard output, before it is written and at the end
    SYS_exit,
    SYS_exit_group,
};

constexpr unsigned kAllowedOfOperators[] = {
    SYS_write,           SYS_writev,        SYS_munmap,       SYS_mremap,     SYS_madvise, SYS_brk,
    SYS_futex,           SYS_setitimer,     SYS_rt_sigreturn, SYS_gettid,     SYS_getpid,  SYS_tgkill,
    SYS_restart_syscall, SYS_clock_gettime, SYS_exit,         SYS_exit_group,
};

constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EPERM;

struct Program {
  std::vector<sock_filter> steps;

  void step(int code, unsigned operand, std::uint8_t yes = 0, std::uint8_t no = 0) {
    steps.push_back({static_cast<std::uint16_t>(code), yes, no, operand});
  }
  void load(std::size_t offset) { step(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)); }
  void answer(unsigned action) { step(BPF_RET | BPF_K, action); }
  // `then` steps are skipped unless the loaded word equals, or has, these bits.
  void unless_equal_skip(unsigned value, std::uint8_t then) { step(BPF_JMP | BPF_JEQ | BPF_K, value, 0, then); }
  void unless_any_skip(unsigned bits, std::uint8_t then) { step(BPF_JMP | BPF_JSET | BPF_K, bits, 0, then); }
  // Only these are let through; 32-bit calls, whose numbers mean others, are refused.
  void allow(std::span<const unsigned> calls) {
    load(offsetof(seccomp_data, arch));
    unless_equal_skip(AUDIT_ARCH_X86_64, 1);
    step(BPF_JMP | BPF_JA, 1);
    answer(kRefuse);
    load(offsetof(seccomp_data, nr));
    for (unsigned call : calls) {
      unless_equal_skip(call, 1);
      answer(SECCOMP_RET_ALLOW);
    }
    for (unsigned call : {SYS_mmap, SYS_mprotect}) by_bits(call, 2, PROT_EXEC, kRefuse, SECCOMP_RET_ALLOW);
  }
  // The call's answer when argument `index` (low word) has any of the bits, and when it has none.
  void by_bits(unsigned call, unsigned index, unsigned bits, unsigned with, unsigned without) {
    unless_equal_skip(call, 4);
    load(offsetof(seccomp_data, args) + index * sizeof(__u64));
    unless_any_skip(bits, 1);
    answer(with);
    answer(without);
  }
};

Program filter() {
  Program program;
  program.allow(kAllowed);
  // Of the calling thread alone: the one that computes makes way for the others.
  program.unless_equal_skip(SYS_setpriority, 7);
  program.load(offsetof(seccomp_data, args));
  program.unless_any_skip(~0u, 1);
  program.answer(kRefuse);
  program.load(offsetof(seccomp_data, args) + sizeof(__u64));
  program.unless_any_skip(~0u, 1);
  program.answer(kRefuse);
  program.answer(SECCOMP_RET_ALLOW);
  program.by_bits(SYS_clone, 0, CLONE_THREAD, SECCOMP_RET_ALLOW, kRefuse);
  // Its flags cannot be looked at from here; the C library falls back to clone.
  program.unless_equal_skip(SYS_clone3, 1);
  program.answer(SECCOMP_RET_ERRNO | ENOSYS);
  program.answer(kRefuse);
  return program;
}

// Root's as well: a server that root starts listens on a low port with one, and needs none from then on. What cannot
// be given up was not had.
void give_up_capabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int each = 0; ::prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; ++each) ::prctl(PR_CAPBSET_DROP, each, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  ::syscall(SYS_capset, &header, none);
}

Status install(const Program& program) {
#ifdef HINTERLAND_COVERAGE
  return {};  // the counts of lines are written to files at the end
#endif
  sock_fprog given{static_cast<unsigned short>(program.steps.size()), const_cast<sock_filter*>(program.steps.data())};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &given, 0, 0) != 0)
    return std::unexpected(Error::make(errno, "cannot filter system calls"));
  return {};
}

}  // namespace

Status confine_operators() {
  give_up_capabilities();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return std::unexpected(Error::make(errno, "cannot give up gaining privileges"));
  Program program;
  program.allow(kAllowedOfOperators);
  program.answer(kRefuse);
  return install(program);
}

Status confine() {
  give_up_capabilities();
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return std::unexpected(Error::make(errno, "cannot give up gaining privileges"));
  return install(filter());
}

}  // namespace hinterland
