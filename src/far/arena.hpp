// Storage for compressed pages: objects of 128 to 4096 bytes in steps of 64, in memory shared with forked children.
//
//     arena    | block | block | block | ...       blocks of 64 KiB, each cut into objects of one class
//     words      class + objects in use, one a block
//     bitmaps    which objects are in use, one cache line a block
//     hints      a set of blocks with room for each class; sets of empty blocks with and without memory
//
// No locks: an object is taken by setting its bit, after "in use" was raised in the block's word; it is freed by
// clearing the bit and then lowering "in use". Whoever lowers it to 0 takes the whole block back. So a process killed
// at any point leaks at most what it had in hand. Steps of 64 bytes waste 32 bytes an object on average, and the end
// of a block at most 1/16 of it (1.5 % on average over the classes).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "far/hint_set.hpp"
#include "far/shared_memory.hpp"

namespace hinterland::far {

class Arena {
 public:
  static constexpr std::uint32_t kStep = 64;  // bytes
  static constexpr std::uint32_t kObjectMin = 128, kObjectMax = 4096;
  static constexpr std::uint32_t kClasses = kObjectMax / kStep + 1;  // class = bytes / kStep
  static constexpr std::uint32_t kBlockBytes = 64 * 1024;

  // The blocks that one channel allocates from; belongs to one thread at a time.
  struct Cursor {
    Cursor() { blocks.fill(UINT32_MAX); }
    std::array<std::uint32_t, kClasses> blocks;
  };

  Arena() = default;
  static Result<Arena> create(std::uint64_t bytes);

  // Room for `length` bytes (1 to kObjectMax): its offset; nothing when the arena is full.
  std::optional<std::uint64_t> allocate(std::uint32_t length, Cursor& cursor);
  // `length` as it was given to allocate(). Any process may free.
  void free(std::uint64_t offset, std::uint32_t length);
  // A channel ends: others may use the room in its blocks.
  void give_up(Cursor& cursor);

  std::byte* data(std::uint64_t offset) const { return memory_.data() + offset; }
  // Memory that blocks take now, free room in them included.
  std::uint64_t stored_bytes() const;

 private:
  struct Header {
    std::atomic<std::uint32_t> blocks_ever;   // blocks from here on were never used
    std::atomic<std::int64_t> blocks_backed;  // blocks that have memory
    std::atomic<std::int32_t> blocks_ready;   // of these, empty ones in ready_
  };
  using Word = std::atomic<std::uint64_t>;
  static constexpr std::uint32_t kBitmapWords = kBlockBytes / kObjectMin / 64;

  static std::uint32_t class_of(std::uint32_t length);
  static std::uint32_t capacity_of(std::uint32_t size_class) { return kBlockBytes / (size_class * kStep); }
  Header& header() const { return *tables_.at<Header>(0); }
  std::atomic<std::uint32_t>& block_word(std::uint32_t block) const {
    return tables_.at<std::atomic<std::uint32_t>>(words_offset_)[block];
  }
  Word* bitmap(std::uint32_t block) const {
    return tables_.at<Word>(bitmaps_offset_) + std::size_t{block} * kBitmapWords;
  }

  std::optional<std::uint32_t> next_block(std::uint32_t size_class, bool* fresh);
  std::optional<std::uint32_t> empty_block(std::uint32_t size_class);
  bool reserve(std::uint32_t block, std::uint32_t size_class);
  std::uint32_t take_object(std::uint32_t block, std::uint32_t size_class);
  void give_back(std::uint32_t block);

  SharedMemory memory_, tables_;
  std::uint32_t blocks_ = 0;
  std::size_t words_offset_ = 0, bitmaps_offset_ = 0;
  std::array<HintSet, kClasses> with_room_;  // by class
  HintSet ready_, bare_;                     // empty blocks with memory, and without
};

}  // namespace hinterland::far
