// The way of fault records from a traced process to the recorder: a file in memory that both map, written by the
// process's fault handler alone and read by the recorder alone. It outlives the process, however that ends.
//
// A full ring loses records, never time: the process counts them and goes on.
#pragma once

#include <atomic>
#include <cstdint>

#include "paging/fault_observer.hpp"

namespace hinterland::trace {

struct RingRecord {
  std::uint64_t time_ns;  // monotonic, when the handler looked at the message
  std::uint64_t address;
  std::uint64_t instruction;  // of the faulting thread; 0 unless asked for (kInstructionVariable)
  std::uint32_t thread_id;
  FaultKind kind;
  std::uint8_t write;
  std::uint16_t reserved;
};
static_assert(sizeof(RingRecord) == 32);

struct RingHeader {
  static constexpr std::uint64_t kMagic = 0x31474e4952544c48;  // "HLTRING1"
  // 2 MiB: what half a million faults a second fill while the recorder does not run for 0.1 s.
  static constexpr std::uint32_t kRecords = 65536;

  std::atomic<std::uint64_t> magic;  // written last: a ring without it is not ready
  std::int32_t process_id;
  std::uint32_t read_ahead_pages;
  std::uint64_t opened_ns;  // monotonic
  std::uint64_t window_base, window_bytes, local_bytes;
  char program[64];
  char far_url[256];
  char policy[32];
  alignas(64) std::atomic<std::uint64_t> written;  // records ever; release after the record
  std::atomic<std::uint64_t> lost;                 // records that found no room
  alignas(64) std::atomic<std::uint64_t> taken;    // by the recorder; release after the record was copied
};

inline constexpr std::size_t kRingRecordsAt = 4096;  // bytes into the file
static_assert(sizeof(RingHeader) <= kRingRecordsAt);
inline constexpr std::size_t kRingBytes = kRingRecordsAt + std::size_t{RingHeader::kRecords} * sizeof(RingRecord);

// The directory in which processes make their rings, PID.N each; set by the recorder.
inline constexpr const char* kDirectoryVariable = "HINTERLAND_TRACE_DIR";
// One in so many faults, drawn at random, is recorded with the thread's instruction. For recorders that may not
// sample stacks by the kernel. 0 or not set: none.
inline constexpr const char* kInstructionVariable = "HINTERLAND_TRACE_INSTRUCTIONS";

}  // namespace hinterland::trace
