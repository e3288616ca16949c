// The words of far pointers and the headers of local objects: their layout, and nothing else.
//
// A pointer's word, beyond what object_runtime.hpp says of local objects:
//
//                63    62       61         58     57..49   48..3             2..0
//     far        -     alignment (60..59)  typed  units    location          001   packed in a far block
//     far large  -     -        -          -      -        descriptor        011   pages of its own
//     leaving    busy  was hot  was clean  -      -        address           101   marked by an evacuator
//     arriving   -     -        -          -      -        (bit 3: waited)   111   somebody brings it
//
// Who may change what, from what, when:
//
//   - local to local: who dereferences it (takes kCold, kClean away), by compare-and-swap, at any time.
//   - local to leaving: an evacuator that has claimed the object's region, under the region's lock.
//   - leaving to local: who dereferences it, so that the object stays after all. At any time but when it is busy.
//   - leaving to busy: that evacuator, under the lock, a grace period after marking: nobody has its address any more.
//   - busy to local: that evacuator, at a new address, or where it was.
//   - busy to leaving: that evacuator, when its bytes are copied, and on the way to the device.
//   - busy or leaving to far: that evacuator, when it is there. From leaving under the lock, and only if it still is.
//   - far to arriving: who dereferences it, or looks ahead, by compare-and-swap.
//   - arriving to local: that thread, or whoever gathers what it has begun (arrivals.hpp); or to far again when the
//     device failed.
//   - any to another pointer's word, or none: the pointer's owner, under the lock of the object's region where it is
//     local; waits while it is busy or arriving.
//
// A header's owner is read by evacuators under the region's lock, and changed by pointers that move under it: while
// the lock is held, the word that the owner names is there. While a word is busy, its pointer can neither move nor
// end, so the evacuator may write it without the lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hinterland/object_runtime.hpp"
#include "object/stepped.hpp"

namespace hinterland::object {

using hl::far::detail::kAway;
using hl::far::detail::kClean;
using hl::far::detail::kCold;
using hl::far::detail::kFlags;
using Word = hl::far::detail::word;
using Type = hl::far::detail::type;

inline constexpr std::size_t kUnit = 8;  // sizes and places of objects are multiples of it
inline constexpr std::uint64_t kFar = kAway, kFarLarge = kAway | 2, kLeaving = kAway | 4, kArriving = kAway | 6;
inline constexpr std::uint64_t kKind = 7;
inline constexpr std::uint64_t kWaited = 8;
inline constexpr std::uint64_t kBusy = std::uint64_t{1} << 63, kWasHot = kBusy >> 1, kWasClean = kBusy >> 2;
inline constexpr std::uint64_t kAddress = ((std::uint64_t{1} << 47) - 1) & ~kFlags;

constexpr bool is_local(std::uint64_t value) { return (value & kAway) == 0; }
constexpr bool is_kind(std::uint64_t value, std::uint64_t kind) { return (value & kKind) == kind; }
constexpr bool is_busy(std::uint64_t value) { return is_kind(value, kLeaving) && (value & kBusy) != 0; }
// Of a local or leaving word.
inline std::byte* address_of(std::uint64_t value) { return reinterpret_cast<std::byte*>(value & kAddress); }

// Where an object lies in far blocks: block * kBlockUnits + unit. Block 0 does not exist, so 0 is nowhere.
using Location = std::uint64_t;
inline constexpr unsigned kLocationShift = 3, kLocationBits = 46, kUnitsShift = 49;
inline constexpr std::uint64_t kTyped = std::uint64_t{1} << 58;
inline constexpr unsigned kFarAlignmentShift = 59;

// Alignments come in four classes; the class is what is kept of one.
inline constexpr std::size_t kAlignments[] = {8, 16, 64, 4096};
constexpr unsigned alignment_class(std::size_t alignment) {
  return alignment <= 8 ? 0 : alignment <= 16 ? 1 : alignment <= 64 ? 2 : 3;
}

constexpr std::uint64_t far_word(Location location, std::uint32_t units, bool typed, unsigned alignment) {
  return kFar | location << kLocationShift | std::uint64_t{units} << kUnitsShift | (typed ? kTyped : 0) |
         std::uint64_t{alignment} << kFarAlignmentShift;
}
constexpr unsigned far_alignment_of(std::uint64_t value) {
  return static_cast<unsigned>(value >> kFarAlignmentShift & 3);
}
constexpr Location location_of(std::uint64_t value) {
  return value >> kLocationShift & ((std::uint64_t{1} << kLocationBits) - 1);
}
constexpr std::uint32_t far_units_of(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> kUnitsShift & 0x1ff);
}
static_assert(location_of(far_word((std::uint64_t{1} << kLocationBits) - 1, 257, true, 3)) ==
              (std::uint64_t{1} << kLocationBits) - 1);
static_assert(far_units_of(far_word(~std::uint64_t{0} >> 18, 257, true, 3)) == 257);

// In front of each local object, 8 bytes:
//
//     63..62     61     60      59..44                43..0
//     alignment  typed  placed  size in units, whole  owner >> 3
//
// and behind the object, within the size: its type (`typed`), and where its far copy lies, if it was brought
// (`placed`): a Location, or a LargeObject's address, or 0, for it has none any more. Type and object become far as
// one. Owner 0: dead; owner 1: it is being made, nobody may take its room.
class Header {
 public:
  static constexpr std::uint64_t kOwnerBits = 44, kOwner = (std::uint64_t{1} << kOwnerBits) - 1;
  static constexpr std::uint64_t kPlaced = std::uint64_t{1} << 60, kIsTyped = std::uint64_t{1} << 61;
  static constexpr unsigned kAlignmentShift = 62;
  static constexpr std::uint64_t kMaking = 1;
  static constexpr std::size_t kUnitsMax = 0xffff;  // 0: the region is a span and knows the size

  static Header* of(const void* object) {
    return reinterpret_cast<Header*>(const_cast<std::byte*>(static_cast<const std::byte*>(object)) - sizeof(Header));
  }
  std::byte* object() { return reinterpret_cast<std::byte*>(this + 1); }

  // release: pairs with the acquire in value(), for evacuators that walk the region.
  void set(std::uint64_t units, std::uint64_t bits, std::uint64_t owner) {
    value_.store(units << kOwnerBits | bits | owner, std::memory_order_release);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_acquire); }
  std::uint64_t units() const { return value() >> kOwnerBits & kUnitsMax; }
  std::uint64_t owner() const { return value() & kOwner; }
  bool placed() const { return (value() & kPlaced) != 0; }
  bool typed() const { return (value() & kIsTyped) != 0; }
  unsigned alignment() const { return static_cast<unsigned>(value() >> kAlignmentShift); }
  Word* owner_word() const { return reinterpret_cast<Word*>(owner() << 3); }
  static std::uint64_t owner_of(const Word* w) { return reinterpret_cast<std::uint64_t>(w) >> 3; }
  // One writer at a time: who makes it; then under the region's lock, or while the word is busy or arriving.
  void set_owner(std::uint64_t owner) { value_.store((value() & ~kOwner) | owner, std::memory_order_release); }

 private:
  Atomic<std::uint64_t> value_;
};
static_assert(sizeof(Header) == 8);

}  // namespace hinterland::object
