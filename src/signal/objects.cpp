// System calls that are about neither paths, sockets nor contents of files: event and timer descriptors, timers,
// message queues and semaphores, attributes, and what a process asks and says about itself and its threads.
#include <dirent.h>
#include <grp.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "base/units.hpp"
#include "signal/held.hpp"
#include "signal/interposed.hpp"

using namespace hinterland;

HL_HELD(int, eventfd_read, (int event, eventfd_t* value), (event, value), held.out(value))
HL_HELD(int, signalfd, (int file, const sigset_t* set, int flags), (file, set, flags), held.in(set))
HL_HELD(int, memfd_create, (const char* name, unsigned flags), (name, flags), held.text(name))
HL_HELD(int, timer_settime, (timer_t timer, int flags, const itimerspec* wanted, itimerspec* old),
        (timer, flags, wanted, old), held.in(wanted), held.out(old))
HL_HELD(int, timer_gettime, (timer_t timer, itimerspec* now), (timer, now), held.out(now))

// Each is a number, or the address of something small; libc takes all of them, too, whatever the option.
HL_HELD(int, prctl, (int option, void* a, void* b, void* c, void* d), (option, a, b, c, d), held.out(a, 16),
        held.out(b, 16), held.out(c, 16), held.out(d, 16))
HL_HELD(int, mincore, (void* address, size_t size, unsigned char* pages), (address, size, pages),
        held.out(pages, size / kPageSize + 1))
HL_HELD(ssize_t, getdents64, (int file, void* entries, size_t size), (file, entries, size), held.out(entries, size))
HL_HELD(int, ttyname_r, (int file, char* name, size_t size), (file, name, size), held.out(name, size))
HL_HELD(int, getresuid, (uid_t * real, uid_t* effective, uid_t* saved), (real, effective, saved), held.out(real),
        held.out(effective), held.out(saved))
HL_HELD(int, getresgid, (gid_t * real, gid_t* effective, gid_t* saved), (real, effective, saved), held.out(real),
        held.out(effective), held.out(saved))
HL_HELD(int, setgroups, (size_t count, const gid_t* groups), (count, groups), held.in(groups, count * sizeof *groups))

HL_HELD(int, sched_getparam, (pid_t thread, sched_param* what), (thread, what), held.out(what))
HL_HELD(int, sched_setparam, (pid_t thread, const sched_param* what), (thread, what), held.in(what))
HL_HELD(int, sched_setscheduler, (pid_t thread, int how, const sched_param* what), (thread, how, what), held.in(what))
HL_HELD(int, sched_rr_get_interval, (pid_t thread, timespec* time), (thread, time), held.out(time))
HL_HELD(int, pthread_getname_np, (pthread_t thread, char* name, size_t size), (thread, name, size),
        held.out(name, size))
HL_HELD(int, pthread_setname_np, (pthread_t thread, const char* name), (thread, name), held.text(name))
HL_HELD(int, pthread_getaffinity_np, (pthread_t thread, size_t size, cpu_set_t* cpus), (thread, size, cpus),
        held.out(cpus, size))
HL_HELD(int, pthread_setaffinity_np, (pthread_t thread, size_t size, const cpu_set_t* cpus), (thread, size, cpus),
        held.in(cpus, size))

HL_HELD(int, utime, (const char* path, const utimbuf* times), (path, times), held.text(path), held.in(times))
HL_HELD(int, lutimes, (const char* path, const timeval* times), (path, times), held.text(path),
        held.in(times, times != nullptr ? 2 * sizeof *times : 0))
HL_HELD(int, futimes, (int file, const timeval* times), (file, times),
        held.in(times, times != nullptr ? 2 * sizeof *times : 0))

// Extended attributes, of a path, of a link, of a descriptor.
#define HL_ATTRIBUTES(prefix, type, where, ...)                                                             \
  HL_HELD(int, prefix##setxattr, (type where, const char* name, const void* value, size_t size, int flags), \
          (where, name, value, size, flags), held.text(name), held.in(value, size), __VA_ARGS__)            \
  HL_HELD(ssize_t, prefix##getxattr, (type where, const char* name, void* value, size_t size),              \
          (where, name, value, size), held.text(name), held.out(value, size), __VA_ARGS__)                  \
  HL_HELD(ssize_t, prefix##listxattr, (type where, char* names, size_t size), (where, names, size),         \
          held.out(names, size), __VA_ARGS__)                                                               \
  HL_HELD(int, prefix##removexattr, (type where, const char* name), (where, name), held.text(name), __VA_ARGS__)
HL_ATTRIBUTES(, const char*, path, held.text(path))
HL_ATTRIBUTES(l, const char*, path, held.text(path))
HL_ATTRIBUTES(f, int, file, static_cast<void>(file))

// A message is gone when the call that takes it fails.
HL_HELD(mqd_t, mq_open, (const char* name, int flags, mode_t mode, const mq_attr* shape), (name, flags, mode, shape),
        held.text(name), held.in(shape, (flags & O_CREAT) != 0 ? sizeof *shape : 0))
HL_HELD(int, mq_send, (mqd_t queue, const char* bytes, size_t size, unsigned priority),
        (queue, bytes, size, priority), held.in(bytes, size))
HL_HELD(int, mq_timedsend, (mqd_t queue, const char* bytes, size_t size, unsigned priority, const timespec* until),
        (queue, bytes, size, priority, until), held.in(bytes, size), held.in(until))
HL_HELD(ssize_t, mq_receive, (mqd_t queue, char* bytes, size_t size, unsigned* priority),
        (queue, bytes, size, priority), held.out(bytes, size), held.out(priority))
HL_HELD(ssize_t, mq_timedreceive, (mqd_t queue, char* bytes, size_t size, unsigned* priority, const timespec* until),
        (queue, bytes, size, priority, until), held.out(bytes, size), held.out(priority), held.in(until))
HL_HELD(int, msgsnd, (int queue, const void* message, size_t size, int flags), (queue, message, size, flags),
        held.in(message, sizeof(long) + size))
HL_HELD(ssize_t, msgrcv, (int queue, void* message, size_t size, long type, int flags),
        (queue, message, size, type, flags), held.out(message, sizeof(long) + size))
HL_HELD(int, semop, (int set, sembuf* steps, size_t count), (set, steps, count),
        held.in(steps, count * sizeof *steps))
HL_HELD(int, semtimedop, (int set, sembuf* steps, size_t count, const timespec* timeout),
        (set, steps, count, timeout), held.in(steps, count * sizeof *steps), held.in(timeout))
