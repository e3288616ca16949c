/* Lookups in a table with open addressing, as an operator (operator.h): what one lookup does on one page. Programs
 * include table.hpp; this is for it, and for the library that a server loads (lookup.so).
 *
 * A table is an array of entries that each take a power of two of bytes, 16 to 64, and begin at a multiple of it: a
 * key of 8 bytes and a value. A key of all ones marks an entry that is empty. A key is in the first entry from its
 * own on that has it, without an empty one before.
 */
#ifndef HINTERLAND_TABLE_H
#define HINTERLAND_TABLE_H

#include <string.h>

#include "hinterland/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HL_TABLE_NO_KEY UINT64_MAX
#define HL_TABLE_VALUE_MAX 56u /* bytes */

#define HL_TABLE_BEYOND 0u /* neither the key nor an empty entry is on this page: go on behind it */
#define HL_TABLE_FOUND 1u
#define HL_TABLE_ABSENT 2u

struct hl_table_found {
  uint64_t state;                          /* HL_TABLE_... */
  unsigned char value[HL_TABLE_VALUE_MAX]; /* with what follows it in the entry */
};

/* argument: bytes of an entry, as uint64_t; word: the key; piece: from the entry where to begin, up to the page's
 * end. */
static inline void hl_table_lookup(const void* argument, uint64_t key, const void* piece, size_t bytes,
                                   void* result) {
  const unsigned char* entry = (const unsigned char*)piece;
  struct hl_table_found* found = (struct hl_table_found*)result;
  uint64_t size, here;
  memcpy(&size, argument, sizeof size);
  if (size < 16 || size > sizeof here + HL_TABLE_VALUE_MAX) return; /* not of a table */
  for (; bytes >= size; bytes -= size, entry += size) {
    memcpy(&here, entry, sizeof here);
    if (here == key) {
      found->state = HL_TABLE_FOUND;
      memcpy(found->value, entry + sizeof here, size - sizeof here);
      return;
    }
    if (here == HL_TABLE_NO_KEY) {
      found->state = HL_TABLE_ABSENT;
      return;
    }
  }
}

#define HL_TABLE_LOOKUP                                                      \
  {HL_OPERATOR_ABI_VERSION,       1, "hl-table-lookup", 8, sizeof(uint64_t), \
   sizeof(struct hl_table_found), 0, hl_table_lookup}

#ifdef __cplusplus
}
#endif
#endif
