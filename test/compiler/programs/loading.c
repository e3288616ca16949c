// Loads library.c while it runs, closes it and loads it again, over and over: each time its hints are new.
// Argument: the library.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct link {
  struct link* next;
  long value;
  char room[48];
};

int main(int count, char** arguments) {
  (void)count;
  const int links = 300000;
  struct link* first = NULL;
  struct link** all = malloc(sizeof *all * links);
  for (int i = 0; i < links; ++i) {
    all[i] = malloc(sizeof **all);
    all[i]->value = i;
  }
  // Linked in an order that is none in memory.
  for (int i = 0; i < links; ++i) {
    struct link* at = all[(long)i * 400009 % links];
    at->next = first;
    first = at;
  }
  for (int round = 0; round < 3; ++round) {
    void* library = dlopen(arguments[1], RTLD_NOW);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    long (*follow)(const struct link*) = (long (*)(const struct link*))dlsym(library, "follow");
    printf("%ld\n", follow(first));
    dlclose(library);
  }
  return 0;
}
