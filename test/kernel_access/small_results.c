// Small structures that the kernel writes into far pages: statuses, directory entries, times, limits, arrays of
// events.
#include "common.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

enum { kSlot = 3 * 4096, kSlots = 64 };

static char* g_arena;

// A place across a page's edge, with contents, far by the time it is used.
static void* far_place(void) {
  static int used;
  CHECK(used < kSlots);
  char* slot = g_arena + (size_t)used++ * kSlot;
  memset(slot, 0x5a, kSlot);
  push_out();
  return slot + 4096 - 8;
}

static void files(void) {
  int file = scratch_file(0);
  CHECK(write(file, "12345", 5) == 5);
  struct stat* status = far_place();
  printf("fstat %d, size %ld\n", fstat(file, status), (long)status->st_size);
  struct stat* by_name = far_place();
  printf("stat %d, directory %d\n", stat(".", by_name), S_ISDIR(by_name->st_mode));
  struct statx* more = far_place();
  printf("statx %d, size %ld\n", statx(file, "", AT_EMPTY_PATH, STATX_ALL, more), (long)more->stx_size);
  struct statfs* system = far_place();
  printf("fstatfs %d, block %d\n", fstatfs(file, system), system->f_bsize > 0);
  int* waiting = far_place();
  int ends[2];
  CHECK(pipe(ends) == 0 && write(ends[1], "123", 3) == 3);
  printf("ioctl %d, %d\n", ioctl(ends[0], FIONREAD, waiting), *waiting);
  struct flock* lock = far_place();
  *lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
  push_out();
  printf("fcntl %d, %d\n", fcntl(file, F_GETLK, lock), lock->l_type);
  char* name = far_place();
  printf("getcwd %d\n", getcwd(name, 4096) == name);
  ssize_t length = readlink("/proc/self/fd/0", name, 4096);
  printf("readlink %d\n", length > 0);
  int* pair = far_place();
  CHECK(pipe2(pair, O_CLOEXEC) == 0);
  printf("pipe2 %d\n", pair[0] >= 0 && pair[1] > pair[0]);
  close(ends[0]);
  close(ends[1]);
  close(pair[0]);
  close(pair[1]);
  close(file);
}

static void directories(void) {
  char folder[] = "kernel-access-XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  int directory = open(folder, O_RDONLY | O_DIRECTORY);
  enum { kEntries = 500 };
  char name[64];
  for (int i = 0; i < kEntries; ++i) {
    snprintf(name, sizeof name, "entry-with-a-longer-name-%d", i);
    close(openat(directory, name, O_CREAT | O_WRONLY, 0600));
  }
  char* entries = big_malloc(256 << 10);
  memset(entries, 1, 256 << 10);
  push_out();
  int found = 0;
  long sum = 0;
  for (;;) {
    long got = syscall(SYS_getdents64, directory, entries, 256 << 10);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      struct dirent64* entry = (struct dirent64*)(entries + at);
      at += entry->d_reclen;
      if (entry->d_name[0] == '.') continue;
      ++found;
      sum += atoi(entry->d_name + 25);
    }
  }
  printf("getdents64 %d entries, sum %ld\n", found, sum);
  for (int i = 0; i < kEntries; ++i) {
    snprintf(name, sizeof name, "entry-with-a-longer-name-%d", i);
    unlinkat(directory, name, 0);
  }
  close(directory);
  rmdir(folder);
  free(entries);
}

static void clocks(void) {
  struct timespec before, *now = far_place();
  clock_gettime(CLOCK_MONOTONIC, &before);
  int done = clock_gettime(CLOCK_MONOTONIC, now);  // the vDSO writes, in user mode
  printf("clock_gettime %d, %d\n", done, now->tv_sec >= before.tv_sec && now->tv_sec < before.tv_sec + 100);
  struct timespec* process = far_place();
  done = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, process);  // the kernel does
  printf("clock_gettime of the process %d, %d\n", done, process->tv_sec >= 0 && process->tv_nsec < 1000000000);
  struct timeval* day = far_place();
  printf("gettimeofday %d, %d\n", gettimeofday(day, NULL), day->tv_sec > 1600000000);
  struct timespec* wish = far_place();
  *wish = (struct timespec){0, 1000000};
  push_out();
  printf("nanosleep %d\n", nanosleep(wish, NULL));
  struct itimerspec* timer = far_place();
  *timer = (struct itimerspec){.it_value = {1000, 0}};
  int descriptor = timerfd_create(CLOCK_MONOTONIC, 0);
  push_out();
  printf("timerfd %d", timerfd_settime(descriptor, 0, timer, NULL));
  push_out();
  printf(" %d, %d\n", timerfd_gettime(descriptor, timer), timer->it_value.tv_sec >= 900);
  struct tms* used = far_place();
  printf("times %d\n", times(used) != (clock_t)-1 && used->tms_utime >= 0);
  close(descriptor);
}

static void processes(void) {
  struct rlimit *limit = far_place(), plain;
  printf("prlimit %d", prlimit(0, RLIMIT_NOFILE, NULL, limit));
  printf(" %d\n", getrlimit(RLIMIT_NOFILE, &plain) == 0 && plain.rlim_cur == limit->rlim_cur);
  struct rusage* usage = far_place();
  printf("getrusage %d, %d\n", getrusage(RUSAGE_SELF, usage), usage->ru_maxrss > 0);
  struct utsname* system = far_place();
  printf("uname %d, %s\n", uname(system), system->sysname);
  struct sysinfo* information = far_place();
  printf("sysinfo %d, %d\n", sysinfo(information), information->totalram > 0);
  cpu_set_t* set = far_place();
  printf("sched_getaffinity %d, %d\n", sched_getaffinity(0, sizeof *set, set), CPU_COUNT(set) > 0);
  pid_t child = vfork();
  if (child == 0) _exit(7);
  int* status = far_place();
  struct rusage* of_child = far_place();
  pid_t who = wait4(child, status, 0, of_child);
  printf("wait4 %d, %d, %d\n", who == child, WEXITSTATUS(*status), of_child->ru_maxrss >= 0);
  child = vfork();
  if (child == 0) _exit(8);
  siginfo_t* end = far_place();
  printf("waitid %d", waitid(P_PID, (id_t)child, end, WEXITED));
  printf(", %d, %d\n", end->si_pid == child, end->si_status);
  sigset_t* mask = far_place();
  sigset_t* old = far_place();
  sigemptyset(mask);
  sigaddset(mask, SIGUSR1);
  push_out();
  printf("sigprocmask %d\n", sigprocmask(SIG_BLOCK, mask, old));
  CHECK(kill(getpid(), SIGUSR1) == 0);
  siginfo_t* signal = far_place();
  printf("sigwaitinfo %d, %d\n", sigwaitinfo(mask, signal), signal->si_pid == getpid());
  struct sigaction *action = far_place(), *previous = far_place();
  memset(action, 0, sizeof *action);
  action->sa_handler = SIG_IGN;
  push_out();
  printf("sigaction %d, %d\n", sigaction(SIGUSR2, action, previous), previous->sa_handler == SIG_DFL);
  sigprocmask(SIG_SETMASK, old, NULL);
}

static void events(void) {
  enum { kCount = 200 };
  int all[kCount];
  int queue = epoll_create1(0);
  struct epoll_event* event = far_place();
  for (int i = 0; i < kCount; ++i) {
    all[i] = eventfd(i % 2, 0);
    CHECK(all[i] >= 0);
    *event = (struct epoll_event){.events = EPOLLIN, .data.u64 = (uint64_t)i};
    CHECK(epoll_ctl(queue, EPOLL_CTL_ADD, all[i], event) == 0);
  }
  struct epoll_event* got = big_malloc(kCount * 4096);
  memset(got, 1, kCount * 4096);
  push_out();
  int ready = epoll_wait(queue, got, kCount, 0);
  uint64_t sum = 0;
  for (int i = 0; i < ready; ++i) sum += got[i].data.u64;
  printf("epoll_wait %d, sum %lu\n", ready, (unsigned long)sum);
  struct pollfd* wanted = (struct pollfd*)((char*)got + 4096 - 12);
  for (int i = 0; i < kCount; ++i) wanted[i] = (struct pollfd){all[i], POLLIN, 0};
  push_out();
  ready = poll(wanted, kCount, 0);
  int marked = 0;
  for (int i = 0; i < kCount; ++i) marked += wanted[i].revents == POLLIN;
  printf("poll %d, marked %d\n", ready, marked);
  fd_set* set = far_place();
  FD_ZERO(set);
  for (int i = 0; i < 20; ++i) FD_SET(all[i], set);
  push_out();
  printf("select %d\n", select(all[19] + 1, set, NULL, NULL, &(struct timeval){0, 0}));
  uint64_t* value = far_place();
  printf("read of an eventfd %zd", read(all[1], value, 8));
  printf(", %lu\n", (unsigned long)*value);
  for (int i = 0; i < kCount; ++i) close(all[i]);
  close(queue);
  free(got);
}

static void sockets(void) {
  struct sockaddr_un* name = far_place();
  *name = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = {0}};
  int server = socket(AF_UNIX, SOCK_DGRAM, 0), client = socket(AF_UNIX, SOCK_DGRAM, 0);
  push_out();
  CHECK(bind(server, (struct sockaddr*)name, sizeof(sa_family_t)) == 0);
  socklen_t* length = far_place();
  *length = sizeof *name;
  push_out();
  printf("getsockname %d", getsockname(server, (struct sockaddr*)name, length));
  printf(", %d\n", *length > sizeof(sa_family_t) && name->sun_family == AF_UNIX);
  char* message = big_malloc(100000);
  memset(message, 'm', 100000);
  push_out();
  printf("sendto %zd\n", sendto(client, message, 100000, 0, (struct sockaddr*)name, *length));
  memset(message, 0, 100000);
  push_out();
  struct ucred* identity = far_place();
  socklen_t size = sizeof *identity;
  printf("recvfrom %zd, %c\n", recvfrom(server, message, 100000, 0, NULL, NULL), message[99999]);
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  printf("getsockopt %d", getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, identity, &size));
  printf(", %d\n", identity->pid == getpid());
  // A descriptor travels, its message in far memory.
  char* control = far_place();
  struct msghdr* header = far_place();
  struct iovec* part = far_place();
  *part = (struct iovec){message, 1};
  memset(header, 0, sizeof *header);
  header->msg_iov = part;
  header->msg_iovlen = 1;
  header->msg_control = control;
  header->msg_controllen = CMSG_SPACE(sizeof(int));
  struct cmsghdr* first = CMSG_FIRSTHDR(header);
  first->cmsg_level = SOL_SOCKET;
  first->cmsg_type = SCM_RIGHTS;
  first->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(first), &ends[0], sizeof(int));
  push_out();
  printf("sendmsg %zd\n", sendmsg(ends[0], header, 0));
  memset(control, 0, CMSG_SPACE(sizeof(int)));
  push_out();
  printf("recvmsg %zd", recvmsg(ends[1], header, 0));
  int arrived = -1;
  memcpy(&arrived, CMSG_DATA(CMSG_FIRSTHDR(header)), sizeof(int));
  printf(", a descriptor %d\n", fcntl(arrived, F_GETFD) >= 0);
  free(message);
}

static void random_bytes(void) {
  unsigned char* memory = big_malloc(8 * kMiB);
  memset(memory, 0, 8 * kMiB);
  push_out();
  printf("getrandom %zd\n", getrandom(memory, 8 * kMiB, 0));
  long sum = 0;
  for (size_t i = 0; i < 8 * kMiB; ++i) sum += memory[i];
  long mean = sum / (8 * kMiB);
  printf("mean %d\n", mean >= 126 && mean <= 128);
  free(memory);
}

int main(void) {
  check_preloaded();
  g_arena = big_mmap((size_t)kSlots * kSlot);
  files();
  directories();
  clocks();
  processes();
  events();
  sockets();
  random_bytes();
  return 0;
}
