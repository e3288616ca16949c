// What the arguments of system calls lead to, by number, for those that are not libc's functions here.
#include "signal/system_calls.hpp"

#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include <array>

#include "base/raw_call.hpp"
#include "base/readable.hpp"
#include "signal/interposed.hpp"
#include "signal/self_paging.hpp"
#include "signal/transfers.hpp"

namespace hinterland {
namespace {

using Arguments = const long (&)[6];
// Each way uses its own part of the caller's stack only, which may be small.
#define HL_OWN_FRAME __attribute__((noinline))

// What an argument points at. Of calls that are not listed, and arguments that are not, at most a page is used.
enum class Leads : std::uint8_t { read, written, vector, message, messages, waiters, mask };

constexpr std::uint16_t kFutexRequeue = 456;  // Linux 6.7; from one word to another

struct Lead {
  std::uint16_t number;
  Leads how;
  std::uint8_t at, count;  // which argument, and which says how many; 6: one
  std::uint16_t unit = 1;  // bytes of each; with one more word, which msgsnd(2) does not count
};

// Calls of the same number one after the other.
constexpr Lead kLeads[] = {
    {SYS_poll, Leads::written, 0, 1, sizeof(pollfd)},
    {SYS_ppoll, Leads::written, 0, 1, sizeof(pollfd)},
    {SYS_pselect6, Leads::mask, 5, 6},
    {SYS_epoll_wait, Leads::written, 1, 2, sizeof(epoll_event)},
    {SYS_epoll_pwait, Leads::written, 1, 2, sizeof(epoll_event)},
    {SYS_epoll_pwait2, Leads::written, 1, 2, sizeof(epoll_event)},
    {SYS_sendmsg, Leads::message, 1, 6},
    {SYS_recvmsg, Leads::message, 1, 6},
    {SYS_sendmmsg, Leads::messages, 1, 2},
    {SYS_recvmmsg, Leads::messages, 1, 2},
    {SYS_setsockopt, Leads::read, 3, 4},
    {SYS_vmsplice, Leads::vector, 1, 2},
    {SYS_getdents, Leads::written, 1, 2},
    {SYS_getdents64, Leads::written, 1, 2},
    {SYS_getcwd, Leads::written, 0, 1},
    {SYS_readlink, Leads::written, 1, 2},
    {SYS_readlinkat, Leads::written, 2, 3},
    {SYS_getrandom, Leads::written, 0, 1},
    {SYS_setxattr, Leads::read, 2, 3},
    {SYS_lsetxattr, Leads::read, 2, 3},
    {SYS_fsetxattr, Leads::read, 2, 3},
    {SYS_getxattr, Leads::written, 2, 3},
    {SYS_lgetxattr, Leads::written, 2, 3},
    {SYS_fgetxattr, Leads::written, 2, 3},
    {SYS_listxattr, Leads::written, 1, 2},
    {SYS_llistxattr, Leads::written, 1, 2},
    {SYS_flistxattr, Leads::written, 1, 2},
    {SYS_msgsnd, Leads::read, 1, 2},
    {SYS_msgrcv, Leads::written, 1, 2},
    {SYS_mq_timedsend, Leads::read, 1, 2},
    {SYS_mq_timedreceive, Leads::written, 1, 2},
    {SYS_semop, Leads::read, 1, 2, sizeof(sembuf)},
    {SYS_semtimedop, Leads::read, 1, 2, sizeof(sembuf)},
    {SYS_getgroups, Leads::written, 1, 0, sizeof(gid_t)},
    {SYS_setgroups, Leads::read, 1, 0, sizeof(gid_t)},
    {SYS_syslog, Leads::written, 1, 2},
    {SYS_add_key, Leads::read, 2, 3},
    {SYS_modify_ldt, Leads::written, 1, 2},
    {SYS_sched_getaffinity, Leads::written, 2, 1},
    {SYS_sched_setaffinity, Leads::read, 2, 1},
    {SYS_move_pages, Leads::read, 2, 1, sizeof(void*)},
    {SYS_move_pages, Leads::read, 3, 1, sizeof(int)},
    {SYS_move_pages, Leads::written, 4, 1, sizeof(int)},
    {SYS_io_getevents, Leads::written, 3, 2, 32},
    {SYS_io_pgetevents, Leads::written, 3, 2, 32},
    {SYS_io_pgetevents, Leads::mask, 5, 6},
    {SYS_semctl, Leads::written, 3, 6, 32000 * sizeof(short)},
    {SYS_futex_waitv, Leads::waiters, 0, 1, sizeof(futex_waitv)},
    {kFutexRequeue, Leads::waiters, 0, 6, 2 * sizeof(futex_waitv)},
};

constexpr std::size_t kNumbers = 512;
constexpr std::uint8_t kNone = 0xff;

constexpr auto kFirstLead = [] {
  std::array<std::uint8_t, kNumbers> first{};
  first.fill(kNone);
  for (std::size_t i = std::size(kLeads); i-- > 0;) first[kLeads[i].number] = static_cast<std::uint8_t>(i);
  return first;
}();
static_assert(std::size(kLeads) < kNone);

template <typename T>
T* pointer(long argument) {
  return reinterpret_cast<T*>(argument);
}

void hold_page(Held& held, long argument) { held.out(pointer<void>(argument), kPageSize); }

// Words that others wait for, and a mask behind a pointer. The kernel asks for the right to write a word that
// processes share: with less it takes the page for one that never changes, and says EFAULT.
void hold_waiters(Held& held, const futex_waitv* waiters, std::size_t count) {
  held.in(waiters, count * sizeof *waiters);
  for (std::size_t i = 0; i < count && is_readable(&waiters[i], sizeof *waiters); ++i)
    held.out(pointer<void>(static_cast<long>(waiters[i].uaddr)), sizeof(std::uint64_t));
}
void hold_mask(Held& held, long argument) {
  struct Mask {
    const void* bits;
    std::size_t bytes;
  };
  const auto* mask = pointer<const Mask>(argument);
  held.in(mask);
  if (mask != nullptr && is_readable(mask, sizeof *mask)) held.in(mask->bits, sizeof(std::uint64_t));
}

void hold_lead(Held& held, const Lead& lead, Arguments a) {
  const long argument = a[lead.at];
  const bool receives = lead.number == SYS_recvmsg || lead.number == SYS_recvmmsg;
  const long given = lead.count < 6 ? a[lead.count] : 1;
  constexpr long kMost = long{64} << 20;  // bytes: what is larger is an error of the program's, or done in part
  if (given < 0 || given > kMost / lead.unit) return hold_page(held, argument);
  const auto count = static_cast<std::size_t>(given);
  switch (lead.how) {
    case Leads::read:
      return held.in(pointer<void>(argument), count * lead.unit + sizeof(long));
    case Leads::written:
      return held.out(pointer<void>(argument), count * lead.unit + sizeof(long));
    case Leads::vector:
      return held.vector(pointer<const iovec>(argument), count, true);
    case Leads::message:
      return held.message(pointer<const msghdr>(argument), receives);
    case Leads::messages:
      return held.messages(pointer<const mmsghdr>(argument), count, receives);
    case Leads::waiters:
      return hold_waiters(held, pointer<const futex_waitv>(argument), count * lead.unit / sizeof(futex_waitv));
    case Leads::mask:
      return hold_mask(held, argument);
  }
}

long make(long number, Arguments a) { return raw::call(number, a[0], a[1], a[2], a[3], a[4], a[5]); }

HL_OWN_FRAME long held_by_table(long number, Arguments a) {
  Held held;
  unsigned listed = 0;  // a bit for each argument
  const std::size_t first =
      number >= 0 && number < static_cast<long>(kNumbers) ? kFirstLead[static_cast<std::size_t>(number)] : kNone;
  for (std::size_t i = first; i < std::size(kLeads) && kLeads[i].number == number; ++i) {
    listed |= 1U << kLeads[i].at;
    hold_lead(held, kLeads[i], a);
  }
  for (unsigned i = 0; i < 6; ++i)
    if ((listed & 1U << i) == 0) hold_page(held, a[i]);
  return held.done(make(number, a));
}

// read, write, pread64, pwrite64.
HL_OWN_FRAME long transfer(long number, Arguments a) {
  const bool in = number == SYS_write || number == SYS_pwrite64;
  const bool has_offset = number == SYS_pread64 || number == SYS_pwrite64;
  if (a[2] < 0) return make(number, a);
  return in_steps(static_cast<int>(a[0]), pointer<void>(a[1]), static_cast<std::size_t>(a[2]), in,
                  [&](void* at, std::size_t bytes, std::size_t done) {
                    return raw::call(number, a[0], raw::word_of(at), raw::word_of(bytes),
                                     has_offset ? a[3] + static_cast<long>(done) : 0);
                  });
}

// readv to pwritev2: the offset is the fourth argument, the fifth has no bits that count here.
HL_OWN_FRAME long vector_transfer(long number, Arguments a) {
  const bool in = number == SYS_writev || number == SYS_pwritev || number == SYS_pwritev2;
  constexpr long kPartsMax = 1024;
  if (a[2] < 0 || a[2] > kPartsMax) return make(number, a);
  return vector_in_steps(static_cast<int>(a[0]), pointer<const iovec>(a[1]), static_cast<int>(a[2]), in,
                         [&](const iovec* parts, int count, std::size_t done) {
                           const long offset = a[3] < 0 ? a[3] : a[3] + static_cast<long>(done);
                           return raw::call(number, a[0], raw::word_of(parts), count, offset, a[4], a[5]);
                         });
}

// sendto and recvfrom. All at once where all is asked for.
HL_OWN_FRAME long socket_transfer(long number, Arguments a) {
  const bool in = number == SYS_sendto;
  auto one = [&](void* at, std::size_t bytes, std::size_t) {
    return raw::call(number, a[0], raw::word_of(at), raw::word_of(bytes), a[3], a[4], a[5]);
  };
  if (a[2] < 0) return make(number, a);
  const auto bytes = static_cast<std::size_t>(a[2]);
  Held held;
  hold_page(held, a[4]);
  if (!in) hold_page(held, a[5]);
  const bool at_once = !in && (a[3] & MSG_WAITALL) != 0;
  if (!at_once) return held.done(in_steps(static_cast<int>(a[0]), pointer<void>(a[1]), bytes, in, one));
  held.out(pointer<void>(a[1]), bytes);
  return held.done(make(number, a));
}

bool is_this_process(long process) {
  const long own = raw::call(SYS_getpid);
  constexpr long kNoSignal = 0;
  return process == own || raw::call(SYS_tgkill, own, process, kNoSignal) == 0;  // a thread's number will do
}

HL_OWN_FRAME long transfer_between(long number, Arguments a) {
  const bool written_here = number == SYS_process_vm_readv;
  constexpr long kPartsMax = 1024;
  if (a[2] < 0 || a[4] < 0 || a[2] > kPartsMax || a[4] > kPartsMax) return make(number, a);
  Held held;
  held.vector(pointer<const iovec>(a[1]), static_cast<std::size_t>(a[2]), written_here);
  if (is_this_process(a[0]))
    held.vector(pointer<const iovec>(a[3]), static_cast<std::size_t>(a[4]), !written_here);
  else
    held.in(pointer<const iovec>(a[3]), static_cast<std::size_t>(a[4]) * sizeof(iovec));
  return held.done(make(number, a));
}

// io_getevents and io_pgetevents: the events are the fourth argument.
HL_OWN_FRAME long gather(long number, Arguments a) {
  Held held;
  if (self_paging()) {
    for (const Lead& lead : kLeads)
      if (lead.number == number) hold_lead(held, lead, a);
    hold_page(held, a[4]);
  }
  const long count = make(number, a);
  if (!hl_self_paging.sees_pins && count > 0) {
    held.in(pointer<const void>(a[3]), static_cast<std::size_t>(count) * 32);
    completed(a[0], pointer<const void>(a[3]), count);
  }
  return held.done(count);
}

}  // namespace
}  // namespace hinterland

using namespace hinterland;

// What only signal mode needs.
static long held_by_number(long number, const long (&a)[6]) {
  switch (number) {
    case SYS_sendto:
    case SYS_recvfrom:
      return socket_transfer(number, a);
    case SYS_execve:
    case SYS_execveat:
      return execute_held(number, a);
    default:
      return held_by_table(number, a);
  }
}

static long as_libc(long result) {
  if (!raw::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

extern "C" __attribute__((visibility("default"))) long hl_held_system_call(long number, const long (&a)[6]) {
  if (!holds_pins()) return make(number, a);
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
      return transfer(number, a);
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
      return vector_transfer(number, a);
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
      return transfer_between(number, a);
    case SYS_io_submit:
      return submit_held(a[0], a[1], pointer<const void>(a[2]));
    case SYS_io_getevents:
    case SYS_io_pgetevents:
      return gather(number, a);
    case SYS_io_destroy: {
      const long result = make(number, a);
      if (!raw::failed(result)) context_ended(a[0]);
      return result;
    }
    case SYS_io_uring_register:
      return register_held(a);
    case SYS_io_uring_setup:
      return set_up_ring(a);
    case SYS_io_uring_enter:
      return enter_ring(a);
    default:  // pins nothing that the kernel writes to
      return self_paging() ? held_by_number(number, a) : make(number, a);
  }
}

// Functions of libc that few programs call, and that do no more than the system call.
#define HL_BY_NUMBER(result, name, parameters, ...)                                      \
  HL_INTERPOSED(result, name, parameters) {                                              \
    return static_cast<result>(as_libc(hl_held_system_call(SYS_##name, {__VA_ARGS__}))); \
  }
#define HL_BETWEEN(name)                                                                        \
  HL_BY_NUMBER(ssize_t, name,                                                                   \
               (pid_t process, const iovec* here, unsigned long parts_here, const iovec* there, \
                unsigned long parts_there, unsigned long flags),                                \
               process, raw::word_of(here), raw::word_of(parts_here), raw::word_of(there),      \
               raw::word_of(parts_there), raw::word_of(flags))
HL_BETWEEN(process_vm_readv)
HL_BETWEEN(process_vm_writev)
HL_BY_NUMBER(int, semctl, (int set, int number, int command, void* argument), set, number, command,
             raw::word_of(argument), 0, 0)
HL_BY_NUMBER(int, shmctl, (int segment, int command, void* argument), segment, command, raw::word_of(argument), 0, 0,
             0)
HL_BY_NUMBER(int, msgctl, (int queue, int command, void* argument), queue, command, raw::word_of(argument), 0, 0, 0)
HL_BY_NUMBER(int, mount,
             (const char* source, const char* target, const char* type, unsigned long flags, const void* data),
             raw::word_of(source), raw::word_of(target), raw::word_of(type), raw::word_of(flags), raw::word_of(data),
             0)
HL_BY_NUMBER(int, umount2, (const char* target, int flags), raw::word_of(target), flags, 0, 0, 0, 0)
HL_BY_NUMBER(long, move_pages,
             (int process, unsigned long count, void** pages, const int* nodes, int* status, int flags), process,
             raw::word_of(count), raw::word_of(pages), raw::word_of(nodes), raw::word_of(status), flags)
