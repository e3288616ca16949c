// System calls that take a path, and those that fill in something small.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signal/held.hpp"
#include "signal/interposed.hpp"

using namespace hinterland;

// The mode is there or not, as libc itself takes it.
HL_HELD(int, open, (const char* path, int flags, mode_t mode), (path, flags, mode), held.text(path))
HL_HELD(int, open64, (const char* path, int flags, mode_t mode), (path, flags, mode), held.text(path))
HL_HELD(int, openat, (int at, const char* path, int flags, mode_t mode), (at, path, flags, mode), held.text(path))
HL_HELD(int, openat64, (int at, const char* path, int flags, mode_t mode), (at, path, flags, mode), held.text(path))
HL_HELD(int, __open_2, (const char* path, int flags), (path, flags), held.text(path))
HL_HELD(int, __open64_2, (const char* path, int flags), (path, flags), held.text(path))
HL_HELD(int, __openat_2, (int at, const char* path, int flags), (at, path, flags), held.text(path))
HL_HELD(int, __openat64_2, (int at, const char* path, int flags), (at, path, flags), held.text(path))
HL_HELD(int, creat, (const char* path, mode_t mode), (path, mode), held.text(path))
HL_HELD(int, creat64, (const char* path, mode_t mode), (path, mode), held.text(path))
HL_HELD(FILE*, fopen, (const char* path, const char* how), (path, how), held.text(path))
HL_HELD(FILE*, fopen64, (const char* path, const char* how), (path, how), held.text(path))
HL_HELD(FILE*, freopen, (const char* path, const char* how, FILE* stream), (path, how, stream), held.text(path))
HL_HELD(FILE*, freopen64, (const char* path, const char* how, FILE* stream), (path, how, stream), held.text(path))
HL_HELD(DIR*, opendir, (const char* path), (path), held.text(path))
HL_HELD(int, mkstemp, (char* path), (path), held.text(path))
HL_HELD(int, mkstemp64, (char* path), (path), held.text(path))
HL_HELD(int, mkostemp, (char* path, int flags), (path, flags), held.text(path))
HL_HELD(int, mkostemp64, (char* path, int flags), (path, flags), held.text(path))
HL_HELD(char*, mkdtemp, (char* path), (path), held.text(path))

HL_HELD(int, stat, (const char* path, struct stat* what), (path, what), held.text(path), held.out(what))
HL_HELD(int, stat64, (const char* path, struct stat64* what), (path, what), held.text(path), held.out(what))
HL_HELD(int, lstat, (const char* path, struct stat* what), (path, what), held.text(path), held.out(what))
HL_HELD(int, lstat64, (const char* path, struct stat64* what), (path, what), held.text(path), held.out(what))
HL_HELD(int, fstat, (int file, struct stat* what), (file, what), held.out(what))
HL_HELD(int, fstat64, (int file, struct stat64* what), (file, what), held.out(what))
HL_HELD(int, fstatat, (int at, const char* path, struct stat* what, int flags), (at, path, what, flags),
        held.text(path), held.out(what))
HL_HELD(int, fstatat64, (int at, const char* path, struct stat64* what, int flags), (at, path, what, flags),
        held.text(path), held.out(what))
// What programs called that were built for glibc before 2.33.
HL_HELD(int, __xstat, (int version, const char* path, struct stat* what), (version, path, what), held.text(path),
        held.out(what))
HL_HELD(int, __xstat64, (int version, const char* path, struct stat64* what), (version, path, what), held.text(path),
        held.out(what))
HL_HELD(int, __lxstat, (int version, const char* path, struct stat* what), (version, path, what), held.text(path),
        held.out(what))
HL_HELD(int, __lxstat64, (int version, const char* path, struct stat64* what), (version, path, what), held.text(path),
        held.out(what))
HL_HELD(int, __fxstat, (int version, int file, struct stat* what), (version, file, what), held.out(what))
HL_HELD(int, __fxstat64, (int version, int file, struct stat64* what), (version, file, what), held.out(what))
HL_HELD(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* what),
        (at, path, flags, mask, what), held.text(path), held.out(what))
HL_HELD(int, statfs, (const char* path, struct statfs* what), (path, what), held.text(path), held.out(what))
HL_HELD(int, statfs64, (const char* path, struct statfs64* what), (path, what), held.text(path), held.out(what))
HL_HELD(int, fstatfs, (int file, struct statfs* what), (file, what), held.out(what))
HL_HELD(int, fstatfs64, (int file, struct statfs64* what), (file, what), held.out(what))
HL_HELD(int, statvfs, (const char* path, struct statvfs* what), (path, what), held.text(path))
HL_HELD(int, statvfs64, (const char* path, struct statvfs64* what), (path, what), held.text(path))

HL_HELD(int, access, (const char* path, int mode), (path, mode), held.text(path))
HL_HELD(int, faccessat, (int at, const char* path, int mode, int flags), (at, path, mode, flags), held.text(path))
HL_HELD(int, euidaccess, (const char* path, int mode), (path, mode), held.text(path))
HL_HELD(ssize_t, readlink, (const char* path, char* text, size_t size), (path, text, size), held.text(path),
        held.out(text, size))
HL_HELD(ssize_t, readlinkat, (int at, const char* path, char* text, size_t size), (at, path, text, size),
        held.text(path), held.out(text, size))
HL_HELD(char*, getcwd, (char* text, size_t size), (text, size), held.out(text, size))
HL_HELD(int, chdir, (const char* path), (path), held.text(path))
HL_HELD(int, chroot, (const char* path), (path), held.text(path))
HL_HELD(int, unlink, (const char* path), (path), held.text(path))
HL_HELD(int, unlinkat, (int at, const char* path, int flags), (at, path, flags), held.text(path))
HL_HELD(int, remove, (const char* path), (path), held.text(path))
HL_HELD(int, rmdir, (const char* path), (path), held.text(path))
HL_HELD(int, mkdir, (const char* path, mode_t mode), (path, mode), held.text(path))
HL_HELD(int, mkdirat, (int at, const char* path, mode_t mode), (at, path, mode), held.text(path))
HL_HELD(int, mkfifo, (const char* path, mode_t mode), (path, mode), held.text(path))
HL_HELD(int, mknod, (const char* path, mode_t mode, dev_t device), (path, mode, device), held.text(path))
HL_HELD(int, rename, (const char* from, const char* to), (from, to), held.text(from), held.text(to))
HL_HELD(int, renameat, (int from_at, const char* from, int to_at, const char* to), (from_at, from, to_at, to),
        held.text(from), held.text(to))
HL_HELD(int, renameat2, (int from_at, const char* from, int to_at, const char* to, unsigned flags),
        (from_at, from, to_at, to, flags), held.text(from), held.text(to))
HL_HELD(int, link, (const char* from, const char* to), (from, to), held.text(from), held.text(to))
HL_HELD(int, linkat, (int from_at, const char* from, int to_at, const char* to, int flags),
        (from_at, from, to_at, to, flags), held.text(from), held.text(to))
HL_HELD(int, symlink, (const char* from, const char* to), (from, to), held.text(from), held.text(to))
HL_HELD(int, symlinkat, (const char* from, int at, const char* to), (from, at, to), held.text(from), held.text(to))
HL_HELD(int, chmod, (const char* path, mode_t mode), (path, mode), held.text(path))
HL_HELD(int, fchmodat, (int at, const char* path, mode_t mode, int flags), (at, path, mode, flags), held.text(path))
HL_HELD(int, chown, (const char* path, uid_t user, gid_t group), (path, user, group), held.text(path))
HL_HELD(int, lchown, (const char* path, uid_t user, gid_t group), (path, user, group), held.text(path))
HL_HELD(int, fchownat, (int at, const char* path, uid_t user, gid_t group, int flags), (at, path, user, group, flags),
        held.text(path))
HL_HELD(int, truncate, (const char* path, off_t size), (path, size), held.text(path))
HL_HELD(int, truncate64, (const char* path, off_t size), (path, size), held.text(path))
HL_HELD(int, utimensat, (int at, const char* path, const timespec* times, int flags), (at, path, times, flags),
        held.text(path), held.in(times, 2 * sizeof *times))
HL_HELD(int, futimens, (int file, const timespec* times), (file, times), held.in(times, 2 * sizeof *times))
HL_HELD(int, utimes, (const char* path, const timeval* times), (path, times), held.text(path),
        held.in(times, 2 * sizeof *times))
HL_HELD(int, inotify_add_watch, (int set, const char* path, uint32_t mask), (set, path, mask), held.text(path))

HL_HELD(pid_t, wait, (int* status), (status), held.out(status))
HL_HELD(pid_t, waitpid, (pid_t process, int* status, int flags), (process, status, flags), held.out(status))
HL_HELD(pid_t, wait3, (int* status, int flags, rusage* usage), (status, flags, usage), held.out(status),
        held.out(usage))
HL_HELD(pid_t, wait4, (pid_t process, int* status, int flags, rusage* usage), (process, status, flags, usage),
        held.out(status), held.out(usage))
HL_HELD(int, waitid, (idtype_t type, id_t id, siginfo_t* info, int flags), (type, id, info, flags), held.out(info))

HL_HELD(ssize_t, getrandom, (void* bytes, size_t size, unsigned flags), (bytes, size, flags), held.out(bytes, size))
HL_HELD(int, getentropy, (void* bytes, size_t size), (bytes, size), held.out(bytes, size))
HL_HELD(int, clock_gettime, (clockid_t clock, timespec* now), (clock, now), held.out(now))
HL_HELD(int, clock_getres, (clockid_t clock, timespec* unit), (clock, unit), held.out(unit))
HL_HELD(int, nanosleep, (const timespec* time, timespec* left), (time, left), held.in(time), held.out(left))
HL_HELD(int, clock_nanosleep, (clockid_t clock, int flags, const timespec* time, timespec* left),
        (clock, flags, time, left), held.in(time), held.out(left))
HL_HELD(int, timerfd_settime, (int timer, int flags, const itimerspec* wanted, itimerspec* old),
        (timer, flags, wanted, old), held.in(wanted), held.out(old))
HL_HELD(int, timerfd_gettime, (int timer, itimerspec* now), (timer, now), held.out(now))
HL_HELD(int, setitimer, (__itimer_which_t which, const itimerval* wanted, itimerval* old), (which, wanted, old),
        held.in(wanted), held.out(old))
HL_HELD(int, getitimer, (__itimer_which_t which, itimerval* now), (which, now), held.out(now))
HL_HELD(int, getrlimit, (__rlimit_resource_t resource, struct rlimit* limits), (resource, limits), held.out(limits))
HL_HELD(int, getrlimit64, (__rlimit_resource_t resource, struct rlimit64* limits), (resource, limits),
        held.out(limits))
HL_HELD(int, setrlimit, (__rlimit_resource_t resource, const struct rlimit* limits), (resource, limits),
        held.in(limits))
HL_HELD(int, setrlimit64, (__rlimit_resource_t resource, const struct rlimit64* limits), (resource, limits),
        held.in(limits))
HL_HELD(int, prlimit, (pid_t process, __rlimit_resource_t resource, const struct rlimit* limits, struct rlimit* old),
        (process, resource, limits, old), held.in(limits), held.out(old))
HL_HELD(int, prlimit64,
        (pid_t process, __rlimit_resource_t resource, const struct rlimit64* limits, struct rlimit64* old),
        (process, resource, limits, old), held.in(limits), held.out(old))
HL_HELD(int, getrusage, (__rusage_who_t who, struct rusage* usage), (who, usage), held.out(usage))
HL_HELD(int, uname, (utsname * names), (names), held.out(names))
HL_HELD(int, sysinfo, (struct sysinfo * info), (info), held.out(info))
HL_HELD(clock_t, times, (tms * spent), (spent), held.out(spent))
HL_HELD(int, getgroups, (int count, gid_t* groups), (count, groups),
        held.out(groups, count > 0 ? static_cast<size_t>(count) * sizeof *groups : 0))
HL_HELD(int, sched_getaffinity, (pid_t thread, size_t size, cpu_set_t* cpus), (thread, size, cpus),
        held.out(cpus, size))
HL_HELD(int, sched_setaffinity, (pid_t thread, size_t size, const cpu_set_t* cpus), (thread, size, cpus),
        held.in(cpus, size))
HL_HELD(ssize_t, sendfile, (int to, int from, off_t* offset, size_t count), (to, from, offset, count),
        held.out(offset))
HL_HELD(ssize_t, sendfile64, (int to, int from, off_t* offset, size_t count), (to, from, offset, count),
        held.out(offset))
HL_HELD(ssize_t, splice, (int from, off_t* from_at, int to, off_t* to_at, size_t count, unsigned flags),
        (from, from_at, to, to_at, count, flags), held.out(from_at), held.out(to_at))
HL_HELD(ssize_t, copy_file_range, (int from, off_t* from_at, int to, off_t* to_at, size_t count, unsigned flags),
        (from, from_at, to, to_at, count, flags), held.out(from_at), held.out(to_at))
HL_HELD(ssize_t, vmsplice, (int file, const iovec* parts, size_t count, unsigned flags), (file, parts, count, flags),
        held.vector(parts, count, true))
// The size of what the argument points at, if it does, is in most requests; the rest are older, and small.
HL_HELD(int, ioctl, (int file, unsigned long request, void* argument), (file, request, argument),
        held.out(argument, (request >> 16 & 0x3fff) > 256 ? request >> 16 & 0x3fff : 256))
