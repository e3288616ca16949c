// The calls that are interposed, each with what has to be there before it.
#pragma once

#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>

struct call {
  const char* name;
  void (*before)(void);          // on a stack with room
  long (*function)(void);        // is measured; as little as possible beside the call itself
  size_t (*after)(long result);  // on a stack with room; what a forked child used of its stack, or 0
  int shows_result;              // the same natively
};

extern const struct call kCalls[];  // ends with one without a name
extern int g_forked;                // this is a child that a measured call made

void prepare_calls(void);
_Noreturn void end_child(size_t deepest);
