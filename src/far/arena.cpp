#include "far/arena.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "base/units.hpp"

namespace hinterland::far {
namespace {

constexpr std::uint32_t kNoBlock = UINT32_MAX;
// Empty blocks that keep their memory (2 MiB): taking one again then costs no system call and no page faults.
constexpr std::int32_t kReadyBlocksMax = 32;

// A block's word: its class above, objects in use below; 0 is an empty block.
constexpr std::uint32_t make_word(std::uint32_t size_class, std::uint32_t used) { return size_class << 16 | used; }
constexpr std::uint32_t class_in(std::uint32_t word) { return word >> 16; }
constexpr std::uint32_t used_in(std::uint32_t word) { return word & 0xffff; }

}  // namespace

Result<Arena> Arena::create(std::uint64_t bytes) {
  Arena arena;
  arena.blocks_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes / kBlockBytes, UINT32_MAX - 1));
  arena.words_offset_ = kPageSize;
  arena.bitmaps_offset_ = arena.words_offset_ + page_ceil(std::size_t{arena.blocks_} * sizeof(std::uint32_t));
  std::size_t hints_offset =
      arena.bitmaps_offset_ + page_ceil(std::size_t{arena.blocks_} * kBitmapWords * sizeof(Word));
  std::size_t hint_bytes = page_ceil(HintSet::words_needed(arena.blocks_) * sizeof(Word));
  auto tables = SharedMemory::reserve(hints_offset + hint_bytes * (kClasses + 2), "the tables of compressed pages");
  if (!tables) return std::unexpected(tables.error());
  auto memory = SharedMemory::reserve(std::size_t{arena.blocks_} * kBlockBytes, "compressed pages");
  if (!memory) return std::unexpected(memory.error());
  arena.tables_ = std::move(*tables);
  arena.memory_ = std::move(*memory);
  auto hints = [&](std::size_t index) {
    return HintSet(arena.tables_.at<HintSet::Word>(hints_offset + index * hint_bytes), arena.blocks_);
  };
  for (std::uint32_t i = 0; i < kClasses; ++i) arena.with_room_[i] = hints(i);
  arena.ready_ = hints(kClasses);
  arena.bare_ = hints(kClasses + 1);
  return arena;
}

std::uint32_t Arena::class_of(std::uint32_t length) { return (std::max(length, kObjectMin) + kStep - 1) / kStep; }

std::optional<std::uint64_t> Arena::allocate(std::uint32_t length, Cursor& cursor) {
  std::uint32_t size_class = class_of(length);
  std::uint32_t& block = cursor.blocks[size_class];
  while (block == kNoBlock || !reserve(block, size_class)) {
    bool fresh = false;
    auto next = next_block(size_class, &fresh);
    block = next.value_or(kNoBlock);
    if (!next) return std::nullopt;
    if (fresh) break;  // it comes with its first object reserved
  }
  return std::uint64_t{block} * kBlockBytes + std::uint64_t{take_object(block, size_class)} * size_class * kStep;
}

// Raises "in use"; false when the block is full or no longer of this class.
bool Arena::reserve(std::uint32_t block, std::uint32_t size_class) {
  auto& word = block_word(block);
  std::uint32_t seen = word.load(std::memory_order_relaxed);
  do {
    if (class_in(seen) != size_class || used_in(seen) >= capacity_of(size_class)) return false;
    // acquire: pairs with the release in free(): the freed object's bit is seen cleared
  } while (!word.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

// Sets the bit of a free object. There is one, because "in use" was raised before.
std::uint32_t Arena::take_object(std::uint32_t block, std::uint32_t size_class) {
  Word* words = bitmap(block);
  std::uint32_t capacity = capacity_of(size_class);
  for (std::uint32_t at = 0;; at = (at + 64 < capacity ? at + 64 : 0)) {
    std::uint64_t beyond = capacity - at < 64 ? ~std::uint64_t{0} << (capacity - at) : 0;
    std::uint64_t seen = words[at / 64].load(std::memory_order_relaxed);
    while (~(seen | beyond) != 0) {
      std::uint64_t bit = std::uint64_t{1} << std::countr_one(seen | beyond);
      // acquire: pairs with the release in free(): the former contents were read to their end
      std::uint64_t before = words[at / 64].fetch_or(bit, std::memory_order_acquire);
      if ((before & bit) == 0) return at + static_cast<std::uint32_t>(std::countr_zero(bit));
      seen = before | bit;
    }
  }
}

// A block of the class with room (maybe gone when it is looked at), or an empty one with one object reserved (fresh).
std::optional<std::uint32_t> Arena::next_block(std::uint32_t size_class, bool* fresh) {
  if (auto block = with_room_[size_class].take()) return block;
  *fresh = true;
  return empty_block(size_class);
}

std::optional<std::uint32_t> Arena::empty_block(std::uint32_t size_class) {
  Header& head = header();
  for (;;) {
    std::optional<std::uint32_t> block = ready_.take();
    if (block) {
      head.blocks_ready.fetch_sub(1, std::memory_order_relaxed);
    } else {
      block = bare_.take();
      if (!block && head.blocks_ever.load(std::memory_order_relaxed) < blocks_)
        block = head.blocks_ever.fetch_add(1, std::memory_order_relaxed);
      if (!block || *block >= blocks_) return std::nullopt;
      head.blocks_backed.fetch_add(1, std::memory_order_relaxed);
    }
    std::uint32_t empty = 0;
    if (block_word(*block).compare_exchange_strong(empty, make_word(size_class, 1), std::memory_order_acquire,
                                                   std::memory_order_relaxed))
      return block;
  }
}

void Arena::free(std::uint64_t offset, std::uint32_t length) {
  std::uint32_t size_class = class_of(length);
  auto block = static_cast<std::uint32_t>(offset / kBlockBytes);
  auto object = static_cast<std::uint32_t>(offset % kBlockBytes) / (size_class * kStep);
  std::uint64_t bit = std::uint64_t{1} << (object % 64);
  // release: pairs with the acquire in take_object()
  HL_CHECK((bitmap(block)[object / 64].fetch_and(~bit, std::memory_order_release) & bit) != 0);
  auto& word = block_word(block);
  std::uint32_t seen = word.load(std::memory_order_relaxed);
  do {
    HL_CHECK_OP(class_in(seen), ==, size_class);
    // release: pairs with the acquire in reserve() and empty_block(); acquire: all bits are clear before it goes
  } while (!word.compare_exchange_weak(seen, used_in(seen) == 1 ? 0 : seen - 1, std::memory_order_acq_rel,
                                       std::memory_order_relaxed));
  if (used_in(seen) == 1)
    give_back(block);
  else
    with_room_[size_class].put(block);
}

// An empty block: a few are kept ready, the memory of the others goes back to the system.
void Arena::give_back(std::uint32_t block) {
  Header& head = header();
  if (head.blocks_ready.fetch_add(1, std::memory_order_relaxed) < kReadyBlocksMax) {
    ready_.put(block);
    return;
  }
  head.blocks_ready.fetch_sub(1, std::memory_order_relaxed);
  memory_.punch(std::size_t{block} * kBlockBytes, kBlockBytes);
  head.blocks_backed.fetch_sub(1, std::memory_order_relaxed);
  bare_.put(block);
}

void Arena::give_up(Cursor& cursor) {
  for (std::uint32_t size_class = 0; size_class < kClasses; ++size_class) {
    std::uint32_t block = std::exchange(cursor.blocks[size_class], kNoBlock);
    if (block == kNoBlock) continue;
    std::uint32_t word = block_word(block).load(std::memory_order_relaxed);
    if (class_in(word) == size_class && used_in(word) < capacity_of(size_class)) with_room_[size_class].put(block);
  }
}

std::uint64_t Arena::stored_bytes() const {
  return static_cast<std::uint64_t>(
             std::max<std::int64_t>(0, header().blocks_backed.load(std::memory_order_relaxed))) *
         kBlockBytes;
}

}  // namespace hinterland::far
