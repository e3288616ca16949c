// Functions of libc that a program reaches past the usual lookup: from a library that is opened with RTLD_DEEPBIND,
// and by asking libc itself. Blocks go to and fro, and what is given back reads as zeros. Whether a lookup failed
// many programs tell by dlerror() (dlsym(3) says so), which is about the program's own lookups alone.
#include "report.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { kBlocks = 300, kMapped = 24 << 20, kPage = 4096 };

struct functions {
  void (*free_block)(void*);
  int (*drop)(void*, size_t);
};

static size_t not_of(const unsigned char* bytes, size_t size, unsigned char value) {
  size_t wrong = 0;
  for (size_t i = 0; i < size; i += 97) wrong += bytes[i] != value;
  return wrong;
}

// Blocks of every size that main's malloc, libc's strdup and `make` made are freed by `theirs`, and by main.
static void free_each_others(struct functions theirs, char* (*make)(size_t)) {
  for (size_t i = 1; i <= kBlocks; ++i) {
    char* block = malloc(i * i * 3);
    memset(block, 7, i * i * 3);
    theirs.free_block(block);
    theirs.free_block(strdup("a block that libc allocates"));
    block = make(i * i * 5);
    CHECK(not_of((unsigned char*)block, i * i * 5, 42) == 0);
    free(block);
  }
}

// More than is local is written, half of it dropped by `theirs`, and all of it looked at.
static void drop_half(const char* what, struct functions theirs) {
  unsigned char* mapped = mmap(NULL, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mapped != MAP_FAILED);
  memset(mapped, 9, kMapped);
  CHECK(theirs.drop(mapped, kMapped / 2) == 0);
  printf("%s: %zu of the first half, %zu of the second are wrong\n", what, not_of(mapped, kMapped / 2, 0),
         not_of(mapped + kMapped / 2, kMapped / 2, 9));
  CHECK(munmap(mapped, kMapped) == 0);
}

static void* of(void* library, const char* name) {
  dlerror();
  void* found = dlsym(library, name);
  const char* error = dlerror();
  if (error != NULL) printf("%s: %s\n", name, error);
  CHECK(found != NULL && error == NULL);
  return found;
}

static char* (*g_malloc)(size_t);
static char* filled(size_t size) { return memset(g_malloc(size), 42, size); }

static int (*g_madvise)(void*, size_t, int);
static int dropped(void* memory, size_t size) { return g_madvise(memory, size, MADV_DONTNEED); }

static void* of_version(void* library, const char* name) {
  dlerror();
  void* found = dlvsym(library, name, "GLIBC_2.2.5");
  const char* error = dlerror();
  if (error != NULL) printf("%s: %s\n", name, error);
  CHECK(found != NULL && error == NULL);
  return found;
}

// Asked for with its version, a function is the same; one that has another by default is libc's.
static void ask_for_versions(void) {
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_LOCAL);
  CHECK(libc != NULL);
  g_malloc = (char* (*)(size_t))of_version(libc, "malloc");
  g_madvise = (int (*)(void*, size_t, int))of_version(libc, "madvise");
  struct functions theirs = {(void (*)(void*))of_version(libc, "free"), dropped};
  free_each_others(theirs, filled);
  drop_half("libc itself, by version", theirs);
  printf("no such version: %d\n", dlvsym(libc, "free", "GLIBC_1.0") == NULL && dlerror() != NULL);
  printf("an older one: %d\n", dlvsym(libc, "memcpy", "GLIBC_2.2.5") != dlsym(libc, "memcpy"));
  printf("only an older one: %d\n", of_version(libc, "_IO_vfscanf") != dlsym(libc, "_IO_vfscanf"));
  printf("the next one by version: %d\n", dlvsym(RTLD_NEXT, "getpid", "GLIBC_2.2.5") == dlsym(libc, "getpid"));
  CHECK(dlclose(libc) == 0);
}

static void ask_libc(void) {
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_LOCAL);
  CHECK(libc != NULL);
  g_malloc = (char* (*)(size_t))of(libc, "malloc");
  g_madvise = (int (*)(void*, size_t, int))of(libc, "madvise");
  struct functions theirs = {(void (*)(void*))of(libc, "free"), dropped};
  free_each_others(theirs, filled);
  drop_half("libc itself", theirs);
  // Mapped and unmapped by libc's functions, a piece at a time.
  void* (*map)(void*, size_t, int, int, int, long) = (void* (*)(void*, size_t, int, int, int, long))of(libc, "mmap");
  int (*unmap)(void*, size_t) = (int (*)(void*, size_t))of(libc, "munmap");
  unsigned char* mapped = map(NULL, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(mapped, 5, kMapped);
  CHECK(unmap(mapped, kMapped / 2) == 0);
  CHECK(map(mapped, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mapped);
  printf("mapped anew: %zu, kept: %zu are wrong\n", not_of(mapped, kPage, 0),
         not_of(mapped + kMapped / 2, kMapped / 2, 5));
  CHECK(munmap(mapped, kPage) == 0 && unmap(mapped + kMapped / 2, kMapped / 2) == 0);
  printf("nothing: %d, ", dlsym(libc, "no_such_function") == NULL);
  printf("%s\n", dlerror() != NULL ? "an error" : "no error");
  printf("the next one: %d\n", dlsym(RTLD_NEXT, "getpid") == dlsym(libc, "getpid"));
  CHECK(dlclose(libc) == 0);
}

// What went wrong is still said after calls that stand in for libc's here, the first ones of their kind.
#define KEEPS_ERROR(call)                                                      \
  do {                                                                         \
    CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL);                    \
    (void)(call);                                                              \
    if (dlerror() == NULL) printf("what dlerror() says is lost: " #call "\n"); \
  } while (0)

static void keep_errors(void) {
  pthread_mutex_t mutex;
  stack_t stack;
  pid_t child = 0;
  KEEPS_ERROR(pthread_mutex_init(&mutex, NULL));
  KEEPS_ERROR(pthread_mutex_destroy(&mutex));
  KEEPS_ERROR(sigaltstack(NULL, &stack));
  KEEPS_ERROR(signal(SIGUSR1, SIG_IGN));
  KEEPS_ERROR(setlocale(LC_ALL, "C"));
  KEEPS_ERROR(freelocale(duplocale(newlocale(LC_ALL_MASK, "C", (locale_t)0))));
  KEEPS_ERROR(prctl(PR_GET_DUMPABLE));
  KEEPS_ERROR(fclose(fdopen(dup(1), "w")));
  KEEPS_ERROR(dprintf(-1, "nothing"));
  KEEPS_ERROR(close(dup2(1, 500)));
  KEEPS_ERROR(ftruncate(-1, 0));
  KEEPS_ERROR(fcntl(1, F_GETFD));
  KEEPS_ERROR(free(memset(malloc(100000), 1, 100000)));
  KEEPS_ERROR(munmap(mmap(NULL, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), kPage));
  fflush(stdout);
  KEEPS_ERROR((child = fork()) == 0 ? _exit(0) : (void)0);
  CHECK(waitpid(child, NULL, 0) == child);
}

int main(int count, char** arguments) {
  check_preloaded();
  CHECK(count == 2);
  keep_errors();
  void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (plugin == NULL) printf("%s\n", dlerror());
  CHECK(plugin != NULL);
  struct functions theirs = {(void (*)(void*))of(plugin, "plugin_free"),
                             (int (*)(void*, size_t))of(plugin, "plugin_drop")};
  free_each_others(theirs, (char* (*)(size_t))of(plugin, "plugin_make"));
  drop_half("bound deep", theirs);
  printf("its own: %d\n", ((int (*)(int, FILE*))of(plugin, "malloc_info"))(4711, NULL));
  CHECK(dlclose(plugin) == 0);
  ask_libc();
  ask_for_versions();
  return 0;
}
