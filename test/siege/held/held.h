// Random sequences of system calls that name memory, mixed with references that the kernel holds to its pages. One
// lane has addresses, pipes and a connection of its own; many lanes take turns, so that the pages of one leave local
// memory while the others work.
//
// A model says what may be read. Memory and what is sent are told apart in cells of 512 bytes, each filled from a
// stamp that no other write has had. A cell that the kernel holds for a receiver may arrive as it was when it was
// sent, or as it became later while the page was still the program's; once the page was given back, moved over or
// replaced, nothing later may arrive, and never what another page held.
#pragma once

#include "../../preload/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
  kPage = 4096,
  kCell = 512,
  kCellsOfPage = kPage / kCell,
  kPages = 48,  // of a lane
  kCells = kPages * kCellsOfPage,
  kStride = 64,  // pages from one lane to the next
  kLanes = 64,
  kCalls = 30,    // of a sequence
  kVersions = 8,  // of a cell that is held; before there are more, it is received
  kParts = 1536,  // of a stream
  kLongest = 16,  // pages of a call
  kAll = kPages * kPage,
};

// Some bytes of a cell that somebody is to receive.
struct Part {
  uint64_t stamps[kVersions];
  short versions;
  short at;  // the cell that it is still one with, -1: none any more
  short from, bytes;
};

struct Stream {
  int in, out;  // descriptors
  bool is_socket;
  int first, count;
  struct Part parts[kParts];
};

enum { kPipes = 2, kStreams = kPipes + 1, kSocket = kPipes };

// Pages that a request of the kernel's works on.
struct Request {
  bool under_way, completed, reads;  // under way: until the model knows of its end; reads: into memory
  int cell, cells;
  uint64_t stamps[kLongest * kCellsOfPage];  // of what is read or written
  bool dropped[kLongest * kCellsOfPage];     // the cell's page is the lane's no more
  bool together[kLongest * kCellsOfPage];    // and the request under way and what is registered hold the same one
  long result;
};

struct Lane {
  uint64_t random, digest;
  char* memory;
  unsigned number, call;
  uint64_t next_stamp;
  uint64_t cells[kCells];  // the stamp of each; 0: zeros
  int protection[kPages];  // -1: nothing is mapped
  int mapping[kPages];     // which call has made it
  int next_mapping;
  struct Stream streams[kStreams];
  struct Request request;     // of Linux AIO
  struct Request registered;  // what io_uring has pinned
};

// --- model.c
extern long g_traced, g_first;
unsigned draw(struct Lane* lane, unsigned below);
bool chance(struct Lane* lane, unsigned percent);
// Goes into the lane's digest, and is printed of the sequence that is traced.
void record(struct Lane* lane, const char* what, long a, long b, long result);
// Is printed, but may differ from run to run.
void note(const struct Lane* lane, const char* what, long a, long b, long result);
_Noreturn void wrong(const struct Lane* lane, const char* what, long where, uint64_t expected, uint64_t found);
void fill_cell(uint64_t stamp, char* cell);
uint64_t stamp_of(const char* cell);  // what its first word says it is
uint64_t new_stamp(struct Lane* lane);
// The cell has other bytes now, for the program and for all who hold it.
void cell_written(struct Lane* lane, int cell, uint64_t stamp);
// All who hold it may see these bytes from now on; the program does not yet have them.
void cell_seen(struct Lane* lane, int cell, uint64_t stamp);
// The cell's page is another one now, of zeros.
void cell_dropped(struct Lane* lane, int cell);
void cell_moved(struct Lane* lane, int from, int to);
// Everybody who holds the cell and has no room for another version receives first.
void make_room_for_version(struct Lane* lane, int cell);
void check_cells(const struct Lane* lane, const char* what, const char* bytes, int cell, int cells);
bool all_have(const struct Lane* lane, int page, int pages, int protection);
bool is_busy(const struct Lane* lane, int page, int pages);
void check_memory(struct Lane* lane);

// --- memory.c
void open_memory(void);
void call_map(struct Lane* lane);
void call_unmap(struct Lane* lane);
void call_remap(struct Lane* lane);
void call_protect(struct Lane* lane);
void call_advise(struct Lane* lane);
void call_process_advise(struct Lane* lane);
void call_store(struct Lane* lane);
void call_read(struct Lane* lane);
void call_write(struct Lane* lane);

// --- streams.c
void open_streams(struct Lane* lane);
void receive(struct Lane* lane, struct Stream* stream, size_t bytes);
void receive_all(struct Lane* lane);
void call_vmsplice(struct Lane* lane);
void call_pass_on(struct Lane* lane);
void call_send(struct Lane* lane);
void call_receive(struct Lane* lane);
void append_cells(struct Lane* lane, struct Stream* stream, int cell, size_t bytes);

// --- requests.c
void open_requests(void);
void call_ring_send(struct Lane* lane);
void call_registered(struct Lane* lane);
void call_request(struct Lane* lane);
void end_requests(struct Lane* lane);
size_t bytes_waiting(const struct Stream* stream);
