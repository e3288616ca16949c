// The bytes of a trace file that writer and reader share. Little-endian, as all machines that this runs on.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>

namespace hinterland::trace {

struct FileHead {
  char magic[8];  // "HLTRACE\n"
  std::uint32_t version;
  std::uint32_t head_bytes;
};
inline constexpr char kFileMagic[9] = "HLTRACE\n";

struct BlockHead {
  std::uint32_t kind;
  std::uint32_t bytes;     // behind this head
  std::uint64_t checksum;  // checksum_of()
};

enum BlockKind : std::uint32_t {
  kProcessBlock = 1,
  kModuleBlock = 2,
  kThreadBlock = 3,
  kFaultBlock = 4,
  kStackBlock = 5,
  kSampleBlock = 6,
  kSummaryBlock = 7,
  kHintBlock = 8,
  kAllocationBlock = 9,
  kHintFoundBlock = 10,
};
// Of the number that says what a fault found: its kind is behind bit 0, which says that it wrote.
inline constexpr std::uint64_t kExpectsWriteBit = 1u << 6;

// XXH3 of the bytes, the kind being the seed: a damaged kind must not pass for one of a newer version.
inline std::uint64_t checksum_of(std::uint32_t kind, const void* bytes, std::size_t size) {
  return XXH3_64bits_withSeed(bytes, size, kind);
}

inline constexpr std::uint32_t kBlockBytesMax = 64u << 20;

}  // namespace hinterland::trace
