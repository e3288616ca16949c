/* An operator: a function of the bytes of one page, which a memory server computes in the place of sending the page.
 *
 * The owner of a memory server installs operators: each is a shared library in the folder of `hinterland serve
 * --operators DIR` that defines hl_operator_plugin. A program has the same operator, written down once for both, and
 * asks for it by hinterland/operator.hpp. Where the server has it, far pages are computed on there; everything else
 * is computed by the program's own copy. docs/offload.md builds one from an empty file.
 *
 * The same bytes, argument and word must give the same result on both sides, bit by bit. Whoever changes what an
 * operator computes changes its `version`: a server is asked only for what has the same name, version and sizes.
 *
 * At the server an operator runs in a process of its own, which has copies of the pieces and nothing else of the
 * server: no files, no network, no threads. Where it crashes, or takes longer than HL_OPERATOR_TIME_MS of a
 * processor's time for one message of up to 64 pieces, it is withdrawn until the server is started anew, and programs
 * compute for themselves. In a program it runs on the thread that asks, with nothing around it.
 *
 * C11 and C++, for x86-64. Part of the interface, like everything in this folder.
 */
#ifndef HINTERLAND_OPERATOR_H
#define HINTERLAND_OPERATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HL_OPERATOR_ABI_VERSION 1u
#define HL_OPERATOR_NAME_BYTES 32u    /* with the NUL at its end */
#define HL_OPERATOR_ELEMENT_MAX 4096u /* bytes */
#define HL_OPERATOR_ARGUMENT_MAX 256u /* bytes */
#define HL_OPERATOR_RESULT_MAX 512u   /* bytes a piece */
#define HL_OPERATOR_TIME_MS 250u      /* of a processor's time, for 64 pieces */

typedef struct hl_operator {
  uint32_t abi_version; /* HL_OPERATOR_ABI_VERSION */
  uint32_t version;     /* of what it computes: the owner's own number */
  const char* name;     /* 1 to 31 letters, digits and any of _-. */
  /* A piece is a whole number of elements of so many bytes, 1 to HL_OPERATOR_ELEMENT_MAX, on one page. */
  uint32_t element_bytes;
  uint32_t argument_bytes; /* of what all pieces of a call are told; up to HL_OPERATOR_ARGUMENT_MAX, may be 0 */
  uint32_t result_bytes;   /* for each piece, 1 to HL_OPERATOR_RESULT_MAX */
  uint32_t reserved;       /* 0 */
  /* Computes one piece. `argument`: argument_bytes bytes, aligned to 16. `word`: what this piece alone is told.
   * `piece`: `bytes` bytes, at least one element, to be read only; aligned as in the program's memory, to at most a
   * page. `result`: result_bytes zeros, aligned to 8, to be filled in. It must not keep anything from one piece for
   * the next, must not depend on addresses, and must not block. It need not be safe against other threads at the
   * server. */
  void (*compute)(const void* argument, uint64_t word, const void* piece, size_t bytes, void* result);
} hl_operator;

/* A piece as a program names it; `word` is for the operator. */
typedef struct hl_piece {
  const void* address;
  size_t bytes; /* a whole number of elements, up to HL_OPERATOR_ELEMENT_MAX bytes */
  uint64_t word;
} hl_piece;

/* What the shared library defines:
 *   HL_OPERATOR_PLUGIN = {HL_OPERATOR_ABI_VERSION, 1, "name", element_bytes, argument_bytes, result_bytes, 0,
 * compute};
 */
#ifdef __cplusplus
#define HL_OPERATOR_PLUGIN extern "C" __attribute__((visibility("default"))) const hl_operator hl_operator_plugin
#else
#define HL_OPERATOR_PLUGIN __attribute__((visibility("default"))) const hl_operator hl_operator_plugin
#endif

#ifdef __cplusplus
}
#endif
#endif
