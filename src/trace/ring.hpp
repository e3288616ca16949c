// The way of records from a traced process to the recorder: a file in memory that both map. It outlives the process,
// however that ends.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/large_block.hpp"
#include "paging/page/fault_observer.hpp"
#include "trace/shared_queue.hpp"

namespace hinterland::trace {

// The kind of an event that is no fault: its thread goes on, having served the one on that page.
inline constexpr auto kServed = static_cast<FaultKind>(255);

struct FaultEvent {
  std::uint64_t time_ns;  // monotonic, when the handler looked at the message
  std::uint64_t address;
  std::uint64_t instruction;  // of the faulting thread; 0 unless asked for (kInstructionVariable)
  std::uint32_t thread_id;
  FaultKind kind;
  std::uint8_t write;
  std::uint8_t expects_write;  // as FaultObserver::fault()
  std::uint8_t reserved;
};
static_assert(sizeof(FaultEvent) == 32);

struct HintEvent {
  static constexpr std::size_t kFrames = 6;
  std::uint64_t time_ns;
  std::uint64_t address;
  std::uint64_t callers[kFrames];  // byte before the return address, innermost first, in the program; 0: not sampled
  std::int32_t read_ahead;
  std::uint32_t thread_id;
  std::uint32_t pages, far, far_ahead;
  std::uint16_t parked, write_protect;
  std::uint8_t write, sequential, priority;
  std::uint8_t found_all;  // 1: nothing was missing; one in kHintCallersEvery of such is told, with its callers
  std::uint8_t reserved[4];
};
static_assert(sizeof(HintEvent) == 96);

enum class AllocationKind : std::uint8_t {
  block = 0,        // by malloc and its kin
  mapping = 1,      // by mmap and its kin
  block_ended = 2,  // freed
  range_ended = 3,  // unmapped: whatever was mapped there
};

// Allocations of so many bytes and more are all recorded, and of smaller ones a sample, one in so many bytes.
inline constexpr std::uint64_t kAllocationInterval = kLargeBlock;

struct AllocationEvent {
  static constexpr std::size_t kFrames = 8;
  std::uint64_t time_ns;  // monotonic: before it was made, or given back
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t stands_for;        // bytes of such allocations, itself included
  std::uint64_t made_ns;           // of one that ended: time_ns of the event that it ends
  std::uint64_t callers[kFrames];  // as in HintEvent; 0 beyond the last
  AllocationKind kind;
  std::uint8_t reserved[7];
};
static_assert(sizeof(AllocationEvent) == 112);

struct RingHeader {
  static constexpr std::uint64_t kMagic = 0x34474e4952544c48;  // "HLTRING4"

  std::atomic<std::uint64_t> magic;  // written last: a ring without it is not ready
  std::int32_t process_id;
  std::uint32_t read_ahead_pages;
  std::uint32_t faults_by_signal;  // 1: threads serve their own faults, and a kServed follows each
  std::uint64_t opened_ns;         // monotonic
  std::uint64_t window_base, window_bytes, local_bytes;
  char program[64];
  char far_url[256];
  char policy[32];
  // By the recorder:
  alignas(64) std::atomic<std::uint64_t> looked_ns;  // monotonic, when it last took records
  std::atomic<std::uint32_t> closed;                 // 1: it takes no more
};

struct RingFile {
  RingHeader header;
  // 2.5 MiB: what half a million faults a second fill while the recorder does not run for 0.1 s.
  alignas(kPageSize) SharedQueue<FaultEvent, 65536> faults;
  // 1.6 MiB; a hint that fetches takes longer than a fault record does.
  alignas(kPageSize) SharedQueue<HintEvent, 16384> hints;
  // 3.8 MiB. As many as the process's table of what lives can hold, which is told when the ring is made.
  static constexpr std::uint32_t kAllocationRoom = 32768;
  alignas(kPageSize) SharedQueue<AllocationEvent, kAllocationRoom> allocations;
};
inline constexpr std::size_t kRingBytes = page_ceil(sizeof(RingFile));

// A recorder that has not looked for so long, with a queue full, is gone: the process stops recording.
inline constexpr std::uint64_t kRecorderGoneNs = 10'000'000'000;

// The directory in which processes make their rings, PID.N each; set by the recorder.
inline constexpr const char* kDirectoryVariable = "HINTERLAND_TRACE_DIR";
// One in so many faults, drawn at random, is recorded with the thread's instruction. For recorders that may not
// sample stacks by the kernel. 0 or not set: none.
inline constexpr const char* kInstructionVariable = "HINTERLAND_TRACE_INSTRUCTIONS";
// Set: hints are recorded, and not followed.
inline constexpr const char* kNoteHintsVariable = "HINTERLAND_TRACE_NOTE_HINTS";
// One in so many hints is recorded with its callers: unwinding takes a microsecond or two. Where they are only noted
// all are: each costs a fault anyway.
inline constexpr std::uint64_t kHintCallersEvery = 8;

}  // namespace hinterland::trace
