// What libc does for the program, with far memory at both ends: stdio, paths, processes, threads that wait, signals.
#include "common.h"

#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <utime.h>

extern char** environ;

// A copy of the text in far memory, in the middle of a page, and by the time it is used not there.
static char* far_text(const char* text) {
  char* memory = (char*)big_mmap(8192) + 4090;  // across two pages
  strcpy(memory, text);
  return memory;
}

static void streams(void) {
  size_t bytes = big_bytes();
  uint64_t* source = big_malloc(bytes);
  fill(source, bytes, 7);
  FILE* file = tmpfile();
  CHECK(file != NULL);
  push_out();
  printf("fwrite %d\n", fwrite(source, 1, bytes, file) == bytes);
  push_out();
  uint64_t* target = big_malloc(bytes);
  rewind(file);
  printf("fread %d\n", fread(target, 8, bytes / 8, file) == bytes / 8);
  printf("wrong words %zu\n", wrong_words(target, bytes, 7));
  char* buffer = big_malloc(1 << 16);  // of the program's: far
  FILE* own = tmpfile();
  CHECK(own != NULL && setvbuf(own, buffer, _IOFBF, 1 << 16) == 0);
  size_t length = 3 << 20;
  char* text = big_malloc(length + 1);
  for (size_t i = 0; i < length; ++i) text[i] = (char)('a' + i % 26);
  text[length] = '\0';
  push_out();
  printf("fputs %d\n", fputs(text, own) >= 0);
  push_out();
  printf("fprintf %d\n", fprintf(own, "<%s|%d>", text, 42));
  push_out();
  printf("dprintf %d\n", dprintf(fileno(own), "%s", text) > 0);
  CHECK(fflush(own) == 0);
  rewind(own);
  size_t at = 0, wrong = 0;
  for (int c; (c = getc(own)) != EOF; ++at)
    if (at < length) wrong += c != 'a' + (int)(at % 26);
  printf("text %d, wrong %zu\n", at == 3 * length + 5, wrong);
  fclose(own);
  fclose(file);
  free(source);
  free(target);
  free(text);
}

static void paths(void) {
  char* name = far_text("library-calls-here");
  push_out();
  int file = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  push_out();
  printf("open %d, access %d", file >= 0, access(name, R_OK));
  char* other = far_text("library-calls-there");
  push_out();
  printf(", rename %d", rename(name, other));
  push_out();
  FILE* stream = fopen(other, "r");
  push_out();
  printf(", fopen %d, unlink %d\n", stream != NULL, unlink(other));
  if (stream != NULL) fclose(stream);
  close(file);
}

static void processes(void) {
  char** words = big_mmap(4096);
  words[0] = far_text("sh");
  words[1] = far_text("-c");
  words[2] = far_text("exit 23");
  char* path = far_text("/bin/sh");
  int* status = big_mmap(4096);
  pid_t* child = big_mmap(4096);
  push_out();
  int error = posix_spawn(child, path, NULL, NULL, words, environ);
  push_out();
  pid_t ended = waitpid(*child, status, 0);
  printf("posix_spawn %d, waitpid %d, status %d\n", error, ended == *child, WEXITSTATUS(*status));
  push_out();
  printf("system %d\n", WEXITSTATUS(system(far_text("exit 24"))));
  push_out();
  pid_t forked = fork();
  if (forked == 0) {
    push_out();
    execv(path, words);
    _exit(1);
  }
  push_out();
  ended = waitpid(forked, status, 0);
  printf("fork and execv %d, status %d\n", ended == forked, WEXITSTATUS(*status));
}

static void sockets(void) {
  int* pair = big_mmap(4096);
  push_out();
  printf("socketpair %d", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  // A datagram is gone when the call that takes it fails: it must not.
  char* datagram = big_mmap(65536);
  char* back = big_mmap(65536);
  size_t right = 0;
  for (int i = 0; i < 20; ++i) {
    memset(datagram, i, 60000);
    push_out();
    ssize_t sent = send(pair[0], datagram, 60000, 0);
    push_out();
    ssize_t got = recv(pair[1], back, 65536, 0);
    right += sent == 60000 && got == 60000 && memcmp(datagram, back, 60000) == 0;
  }
  printf(", datagrams %zu", right);
  struct sockaddr_un* name = big_mmap(4096);
  name->sun_family = AF_UNIX;
  snprintf(name->sun_path + 1, 100, "library-calls-%d", (int)getpid());  // abstract: no file
  socklen_t size = (socklen_t)(sizeof(sa_family_t) + 1 + strlen(name->sun_path + 1));
  int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
  push_out();
  int bound = bind(listener, (struct sockaddr*)name, size);
  CHECK(listen(listener, 5) == 0);
  push_out();
  int connected = connect(client, (struct sockaddr*)name, size);
  struct sockaddr_un* from = big_mmap(8192);
  socklen_t* room = (socklen_t*)((char*)from + 4096);
  *room = sizeof *from;
  push_out();
  int server = accept(listener, (struct sockaddr*)from, room);
  printf(", bind %d, connect %d, accept %d\n", bound, connected, server >= 0);
  struct epoll_event* events = big_mmap(4096);
  events->events = EPOLLIN;
  int set = epoll_create1(0);
  push_out();
  int added = epoll_ctl(set, EPOLL_CTL_ADD, server, events);
  CHECK(write(client, "x", 1) == 1);
  push_out();
  printf("epoll %d %d", added, epoll_wait(set, events, 8, 1000));
  struct pollfd* waits = big_mmap(4096);
  waits[0] = (struct pollfd){server, POLLIN, 0};
  push_out();
  printf(", poll %d", poll(waits, 1, 1000));
  fd_set* reads = big_mmap(4096);
  FD_ZERO(reads);
  FD_SET(server, reads);
  push_out();
  printf(", select %d\n", select(server + 1, reads, NULL, NULL, NULL));
  close(set);
  close(server);
  close(client);
  close(listener);
  close(pair[0]);
  close(pair[1]);
}

// Events, timers, names: what servers set up and wait on beside their sockets.
static void objects(void) {
  eventfd_t* value = big_mmap(4096);
  int event = eventfd(3, EFD_CLOEXEC);
  push_out();
  int error = eventfd_read(event, value);
  printf("eventfd_read %d %d", error, (int)*value);
  sigset_t* set = big_mmap(4096);
  sigemptyset(set);
  sigaddset(set, SIGUSR2);
  push_out();
  int signals = signalfd(-1, set, SFD_CLOEXEC);
  printf(", signalfd %d", signals >= 0);
  struct itimerspec* times = big_mmap(8192);
  struct itimerspec* left = (struct itimerspec*)((char*)times + 4096);
  timer_t timer;
  CHECK(timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_NONE}, &timer) == 0);
  times->it_value.tv_sec = 1000;
  push_out();
  error = timer_settime(timer, 0, times, left);
  push_out();
  printf(", timer %d %d", error, timer_gettime(timer, left));
  printf(", left %d", left->it_value.tv_sec >= 900);
  char* name = far_text("far-name");
  char* back = big_mmap(4096);
  push_out();
  int named = prctl(PR_SET_NAME, name);
  push_out();
  int asked = prctl(PR_GET_NAME, back);
  printf(", prctl %d %d %s", named, asked, back);
  push_out();
  error = pthread_getname_np(pthread_self(), back, 32);
  printf(", pthread_getname_np %d %s", error, back);
  push_out();
  int memory = memfd_create(name, MFD_CLOEXEC);
  printf(", memfd_create %d\n", memory >= 0);
  timer_delete(timer);
  close(memory);
  close(signals);
  close(event);
}

static void attributes(void) {
  char* path = far_text("library-calls-attributes");
  close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  struct utimbuf* times = big_mmap(4096);
  times->modtime = 77;
  push_out();
  int error = utime(path, times);
  char *name = far_text("user.far"), *value = far_text("value"), *back = big_mmap(4096);
  push_out();
  int put = setxattr(path, name, value, 6, 0);
  int refused = put != 0 && errno == ENOTSUP;  // by the file system
  push_out();
  ssize_t got = getxattr(path, name, back, 64);
  printf("utime %d, attribute %d", error, refused || (put == 0 && got == 6 && strcmp(back, "value") == 0));
  push_out();
  printf(", names %d", (int)listxattr(path, back, 4096) >= (refused ? -1 : 9));
  struct sched_param* how = big_mmap(4096);
  how->sched_priority = 5;
  push_out();
  error = sched_getparam(0, how);
  printf(", sched_getparam %d %d", error, how->sched_priority);
  unsigned char* there = big_mmap(8192);
  push_out();
  printf(", mincore %d\n", mincore(there, 4096, there + 4096));
  unlink(path);
}

// A message is gone when the call that takes it fails: it must not.
static void queues(void) {
  int queue = msgget(IPC_PRIVATE, 0600);
  CHECK(queue >= 0);
  struct {
    long type;
    char text[2000];
  }* message = big_mmap(8192);
  size_t right = 0;
  for (int i = 0; i < 20; ++i) {
    message->type = 1;
    memset(message->text, i, sizeof message->text);
    push_out();
    int sent = msgsnd(queue, message, sizeof message->text, 0);
    memset(message->text, -1, sizeof message->text);
    push_out();
    ssize_t got = msgrcv(queue, message, sizeof message->text, 1, IPC_NOWAIT);
    right += sent == 0 && got == sizeof message->text && message->text[1999] == i;
  }
  msgctl(queue, IPC_RMID, NULL);
  char name[64];
  snprintf(name, sizeof name, "/library-calls-%d", (int)getpid());
  struct mq_attr* shape = big_mmap(8192);
  *shape = (struct mq_attr){.mq_maxmsg = 2, .mq_msgsize = 512};
  unsigned* priority = (unsigned*)((char*)shape + 4096);
  char* far_name = far_text(name);
  char *bytes = big_mmap(4096), *back = big_mmap(4096);
  memset(bytes, 9, 512);
  push_out();
  mqd_t posix = mq_open(far_name, O_CREAT | O_RDWR | O_CLOEXEC, 0600, shape);
  push_out();
  int sent = mq_send(posix, bytes, 512, 4);
  push_out();
  ssize_t got = mq_receive(posix, back, 512, priority);
  printf("messages %zu, mq %d %d %d %u\n", right, posix >= 0, sent == 0, got == 512 && memcmp(bytes, back, 512) == 0,
         *priority);
  mq_close(posix);
  mq_unlink(name);
}

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_rwlock_t lock;
  sem_t turns;
  long count;
};

static void* add(void* argument) {
  struct Shared* shared = argument;
  for (int i = 0; i < 2000; ++i) {
    pthread_mutex_lock(&shared->mutex);
    ++shared->count;
    pthread_cond_signal(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
    pthread_rwlock_wrlock(&shared->lock);
    pthread_rwlock_unlock(&shared->lock);
    sem_post(&shared->turns);
    sem_wait(&shared->turns);
  }
  return NULL;
}

static void* push(void* argument) {
  const int* ends = argument;
  while (__atomic_load_n(ends, __ATOMIC_RELAXED) == 0) push_out();
  return NULL;
}

// While a thread pushes out what the others wait on.
static void waiting(void) {
  static int ends = 0;
  struct Shared* shared = big_mmap(sizeof *shared);
  pthread_mutex_init(&shared->mutex, NULL);
  pthread_cond_init(&shared->changed, NULL);
  pthread_rwlock_init(&shared->lock, NULL);
  sem_init(&shared->turns, 0, 0);
  pthread_t threads[4], pusher;
  CHECK(pthread_create(&pusher, NULL, push, &ends) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, add, shared) == 0);
  pthread_mutex_lock(&shared->mutex);
  while (shared->count < 8000) pthread_cond_wait(&shared->changed, &shared->mutex);
  pthread_mutex_unlock(&shared->mutex);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
  pthread_join(pusher, NULL);
  printf("counted %ld\n", shared->count);
}

static volatile sig_atomic_t g_bus = 0, g_other = 0;
static size_t g_wrong = 0;
static uint64_t* g_data;

static void on_bus(int number) {
  (void)number;
  g_wrong += wrong_words(g_data, big_bytes() / 4, 3);
  g_bus = g_bus + 1;
}
static void on_other(int number) {
  (void)number;
  g_wrong += wrong_words(g_data, big_bytes() / 4, 3);
  g_other = g_other + 1;
}

// SIGBUS is the program's as ever: blocked, handled, asked for; and its memory is there all the time.
static void signals(void) {
  g_data = big_malloc(big_bytes() / 4);
  fill(g_data, big_bytes() / 4, 3);
  sigset_t all, old, now;
  sigfillset(&all);
  sigemptyset(&now);
  sigprocmask(SIG_BLOCK, &all, &old);
  printf("blocked, wrong words %zu", wrong_words(g_data, big_bytes() / 4, 3));
  sigprocmask(SIG_BLOCK, NULL, &now);
  printf(", SIGBUS is in the mask %d", sigismember(&now, SIGBUS));
  signal(SIGBUS, on_bus);
  raise(SIGBUS);
  printf(", delivered %d", (int)g_bus);
  sigprocmask(SIG_SETMASK, &old, NULL);
  printf(", then %d\n", (int)g_bus);

  // A handler that blocks everything and touches far memory, on a small alternate stack that is far.
  stack_t stack = {.ss_sp = big_mmap(16384), .ss_size = 16384}, before;
  int set = sigaltstack(&stack, &before);
  printf("sigaltstack %d, before %d\n", set, before.ss_flags == SS_DISABLE);
  struct sigaction action = {.sa_handler = on_other, .sa_flags = SA_ONSTACK};
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  push_out();
  raise(SIGUSR1);
  struct sigaction is;
  sigaction(SIGUSR1, NULL, &is);
  set = sigaltstack(NULL, &before);
  printf("handled %d, its mask has SIGBUS %d, stack again %d\n", (int)g_other, sigismember(&is.sa_mask, SIGBUS),
         set == 0 && before.ss_sp == stack.ss_sp);
  sigaction(SIGBUS, NULL, &is);
  printf("the action is mine %d, wrong words %zu\n", is.sa_handler == on_bus, g_wrong);
  signal(SIGBUS, SIG_DFL);
  pid_t child = fork();
  if (child == 0) {
    g_wrong = wrong_words(g_data, big_bytes() / 4, 3);
    raise(SIGBUS);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  printf("the child ended by SIGBUS %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void) {
  check_preloaded();
  streams();
  paths();
  processes();
  sockets();
  objects();
  attributes();
  queues();
  waiting();
  signals();
  return 0;
}
