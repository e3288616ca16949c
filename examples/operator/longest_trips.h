/* The operator: of the trips from one city, the longest, and how many there are. Program and server compile this
 * file. */
#ifndef LONGEST_TRIPS_H
#define LONGEST_TRIPS_H

#include <hinterland/operator.h>

struct trip {
  uint32_t from, to;
  uint32_t minutes, passengers;
  double price;
};

struct longest_trip {
  uint64_t count;
  uint64_t where; /* its number in the array */
  uint64_t minutes;
};

/* `first`: the number of the piece's first trip. */
static inline void find_longest_trip(const void* argument, uint64_t first, const void* piece, size_t bytes,
                                     void* result) {
  const uint32_t from = *(const uint32_t*)argument;
  const struct trip* trips = (const struct trip*)piece;
  struct longest_trip* found = (struct longest_trip*)result; /* zeros */
  for (size_t i = 0; i < bytes / sizeof *trips; ++i) {
    if (trips[i].from != from) continue;
    if (found->count++ != 0 && trips[i].minutes <= found->minutes) continue;
    found->where = first + i;
    found->minutes = trips[i].minutes;
  }
}

/* The second number is the version: whoever changes the above changes it. */
#define LONGEST_TRIPS                                                                       \
  {HL_OPERATOR_ABI_VERSION,     1, "longest-trip",   sizeof(struct trip), sizeof(uint32_t), \
   sizeof(struct longest_trip), 0, find_longest_trip}

#endif
