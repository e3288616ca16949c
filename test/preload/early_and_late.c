// Allocation before main, after main, and in objects that are loaded and unloaded.
#include "report.h"

#include <dlfcn.h>
#include <sys/wait.h>

static char* g_early;

__attribute__((constructor)) static void early(void) {
  g_early = malloc(300000);
  memset(g_early, 3, 300000);
}
__attribute__((destructor)) static void late(void) {
  g_early = realloc(g_early, 600000);
  CHECK(write(1, g_early[299999] == 3 ? "late ok\n" : "late bad\n", 8) == 8);
  free(g_early);
}
static void at_end(void) {
  free(strdup("exit"));
  puts("exit handler");
}

static void fork_and_show(const char* what) {
  printf("-- %s\n", what);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    fflush(stdout);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
}

int main(int count, char** arguments) {
  check_preloaded();
  CHECK(count == 2);
  atexit(at_end);
  g_early = realloc(g_early, 400000);
  printf("early %d\n", g_early[299999]);
  for (int i = 0; i < 3; ++i) {
    void* plugin = dlopen(arguments[1], RTLD_NOW);
    if (plugin == NULL) printf("%s\n", dlerror());
    CHECK(plugin != NULL);
    char* (*make)(size_t) = (char* (*)(size_t))dlsym(plugin, "plugin_make");
    CHECK(make != NULL);
    char* block = make(1000000);
    fork_and_show("loaded");
    CHECK(dlclose(plugin) == 0);
    printf("made %d\n", block[999999]);
    free(block);
    fork_and_show("unloaded");  // its handlers are gone, and its code, too
  }
  return 0;
}
