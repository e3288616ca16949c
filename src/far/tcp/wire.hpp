// The wire protocol of tcp: devices, shared by client and server. Version 2.
//
// A connection begins with hellos and, when a key is used, proofs (handshake.hpp). From then on it carries frames:
//
//   client -> server:  Header | body           server -> client:  Header | body
//
// Every request has exactly one reply with the same id; the client may send many before the first reply comes
// (pipelining), and must accept replies in any order. The length of a body follows from type and count, so a
// length that does not fit is an error, never an amount to wait for. All integers are little-endian.
//
//   type           request body                              reply body
//   session_open   SessionRequest                            SessionReply
//   session_join   SessionRequest                            SessionReply
//   leave          -                                         -
//   ping           -                                         -
//   slab_allocate  -                                         -      (slab in the header)
//   slab_release   -             (slab in the header)        -
//   discard        count * PageRun                           -
//   read           count * page number                       count * kPageSize bytes
//   write          count * page number, then the pages       -
//   compute        ComputeRequest, count * Piece             results (compute_reply_bytes)
//   find_operator  OperatorRequest                           -      (its number in the header, as slab)
//   apply          ApplyRequest, count * (Piece), count *    results (applied_result_bytes each)
//                  word of 64 bits
//   read_ranges    count * Range                             the bytes of one range after the other
//   compose        pages * page number, count * Piece,       pages * checksum
//                  count * mask
//   patch          pages * Patched, count * Place,           pages * checksum
//                  count * element
//
// A reply whose status is not ok has no body. A client asks for nothing to be computed that the reply to session_open
// or session_join does not offer, for operators only where that says that there are some, and for ranges and for
// pages to be composed or patched only where it says that the server knows them.
//
// Stamps order writes and discards of one session that travel on different connections: each write, compose, patch
// and discard carries a number from one counter of the session (header.stamp). The server remembers the stamp of the
// last write of each page, drops older writes (resent after a reconnect), and ignores discards older than the write.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "base/units.hpp"
#include "far/device.hpp"
#include "hinterland/offload_pages.hpp"
#include "hinterland/operator.h"

namespace hinterland::far::wire {

inline constexpr std::uint16_t kVersion = 2;    // 2: the server proves itself first
inline constexpr std::uint16_t kPagesMax = 64;  // pages a message; 256 KiB bounds what a peer can make us hold
inline constexpr std::uint16_t kRunsMax = 128;  // runs a discard message; its body then fits a receive buffer
inline constexpr std::uint64_t kPageNumbers = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kSlabNumbers = kPageNumbers / kSlabPages;

// An unsigned integer as it lies on the wire: little-endian, without alignment.
template <typename T>
class Le {
 public:
  static_assert(std::is_unsigned_v<T>);
  constexpr Le() = default;
  constexpr Le(T value) : bytes_(std::bit_cast<Bytes>(swapped(value))) {}  // NOLINT: implicit on purpose
  constexpr operator T() const { return swapped(std::bit_cast<T>(bytes_)); }

 private:
  using Bytes = std::array<unsigned char, sizeof(T)>;
  static constexpr T swapped(T value) {
    if constexpr (std::endian::native == std::endian::big) {
      T result = 0;
      for (std::size_t i = 0; i < sizeof(T); ++i)
        result = static_cast<T>((result << 8) | ((value >> (8 * i)) & 0xff));
      return result;
    }
    return value;
  }
  Bytes bytes_{};
};

enum class Type : std::uint16_t {
  session_open = 1,
  session_join = 2,
  leave = 3,
  ping = 4,
  slab_allocate = 5,
  slab_release = 6,
  discard = 7,
  read = 8,
  write = 9,
  compute = 10,
  find_operator = 11,
  apply = 12,
  read_ranges = 13,
  compose = 14,
  patch = 15,
};
inline constexpr std::uint16_t kReplyBit = 0x8000;

enum class Code : std::uint32_t {
  ok = 0,
  no_space = 1,         // the server, or this client's share of it, is full
  session_unknown = 2,  // join: the server restarted, or the session ended
  too_many = 3,         // sessions, or connections of a session
  not_yours = 4,        // a page or slab that this session does not have
  bad_request = 5,      // out of place: a second session_open, a token in use; compute, compose, patch: no sense
  damaged = 6,      // compute, apply, compose, patch: a page is not the one that the client means, by its checksum
  no_operator = 7,  // find_operator, apply: it is not, or no longer, there
};
inline constexpr std::uint32_t kCodes = 8;

struct Header {
  Le<std::uint32_t> length;  // bytes of body behind the header
  Le<std::uint16_t> type;    // Type, with kReplyBit in replies
  Le<std::uint16_t> count;   // pages or runs; 0 for other types
  Le<std::uint64_t> id;      // chosen by the client, echoed by the server
  Le<std::uint64_t>
      stamp;  // write, compose, patch, discard: see above. Reply to what has a list: echo_of() it. Else 0
  Le<std::uint32_t> status;  // replies: Code. Requests: 0
  Le<std::uint32_t> slab;    // slab_release, and the reply to slab_allocate; compute: the operation; apply, and the
                             // reply to find_operator: operator_field(); read_ranges: bytes of all ranges together;
                             // compose, patch: compose_field(). Else 0
};
static_assert(sizeof(Header) == 32 && alignof(Header) == 1);
static_assert(offsetof(Header, type) == 4 && offsetof(Header, count) == 6 && offsetof(Header, id) == 8);
static_assert(offsetof(Header, stamp) == 16 && offsetof(Header, status) == 24 && offsetof(Header, slab) == 28);

using Token = std::array<unsigned char, 16>;  // names a session; random, so that nobody guesses another's

struct SessionRequest {
  Token token;
  Le<std::uint64_t> channel;  // names a connection of the session over its reconnects; a new one replaces the old
};
static_assert(sizeof(SessionRequest) == 24 && offsetof(SessionRequest, channel) == 16);

// The upper half of a channel's name is random and names the process, the lower one its connection. 0 there is the
// control connection: what leaves on it is the process, on another only that connection. A request after `leave` on
// the same connection takes it back. The server keeps a session for those that went without `leave`.
constexpr bool is_control(std::uint64_t channel) { return static_cast<std::uint32_t>(channel) == 0; }
constexpr bool same_process(std::uint64_t one, std::uint64_t other) { return one >> 32 == other >> 32; }

struct SessionReply {
  Le<std::uint32_t> slabs_max;   // slab numbers of this session are below this
  Le<std::uint32_t> slab_pages;  // kSlabPages of the server
  Le<std::uint32_t> page_bytes;  // kPageSize of the server
  Le<std::uint32_t> grace_ms;    // a session without connections is kept for so long
  Le<std::uint32_t> operations;  // bit n: the server computes hl_computation's operation n; an older server: 0
  Le<std::uint32_t> operators;   // how many there are to be found; an older server: 0
  Le<std::uint32_t> ranges;      // 1: the server knows read_ranges; an older server: 0
  Le<std::uint32_t> composes;    // kComposes, kPatches: what the server knows; one that computes nothing: 0
};
static_assert(sizeof(SessionReply) == 32 && offsetof(SessionReply, operations) == 16);
inline constexpr std::uint32_t kComposes = 1, kPatches = 2;

using PageNumber = Le<std::uint64_t>;  // FarPage::value within the session

struct Run {
  PageNumber first;
  Le<std::uint32_t> count;
  Le<std::uint32_t> reserved;
};
static_assert(sizeof(Run) == 16 && offsetof(Run, count) == 8);

// A part of a page, in 8 bytes, for these are many: page << 24 | offset << 12 | bytes - 1. The server does not say
// whether it is what was written: a client that asks for a part has a check in it.
using Range = Le<std::uint64_t>;
constexpr Range make_range(FarPage page, std::uint32_t offset, std::uint32_t bytes) {
  return page.value << 24 | std::uint64_t{offset} << 12 | (bytes - 1);
}
constexpr FarPage range_page(Range range) { return {range >> 24}; }
constexpr std::uint32_t range_offset(Range range) { return range >> 12 & 0xfff; }
constexpr std::uint32_t range_bytes(Range range) { return (range & 0xfff) + 1; }
static_assert(kPageSize == 1 << 12 && kPageNumbers == std::uint64_t{1} << 40 && sizeof(Range) == sizeof(PageNumber));

// What is to be computed, of each piece: hl_computation, whose operation is in the header.
struct ComputeRequest {
  Le<std::uint16_t> element, relation, shift, reserved;
  Le<std::uint64_t> operand;
};
static_assert(sizeof(ComputeRequest) == 16 && offsetof(ComputeRequest, operand) == 8);

// Bytes of one page, a whole number of elements. The server computes nothing on another page than the client wrote
// there: what it has must have this checksum (SharedPages::checksum_of).
struct Piece {
  PageNumber page;
  Le<std::uint64_t> checksum;
  Le<std::uint16_t> offset, bytes;
  Le<std::uint32_t> reserved;
};
static_assert(sizeof(Piece) == 24 && offsetof(Piece, offset) == 16);

// What a client means. An operator that differs in anything is another.
struct OperatorRequest {
  std::array<char, HL_OPERATOR_NAME_BYTES> name;
  Le<std::uint32_t> version, element_bytes, argument_bytes, result_bytes;
};
static_assert(sizeof(OperatorRequest) == 48 && offsetof(OperatorRequest, version) == 32);

struct ApplyRequest {
  std::array<std::byte, HL_OPERATOR_ARGUMENT_MAX> argument;  // zeros behind it
};
static_assert(sizeof(ApplyRequest) == 256);
using Word = Le<std::uint64_t>;

// The number of an operator at its server, and the bytes of a result, so that a reply's length follows from its
// header.
inline constexpr std::uint32_t kOperatorsMax = 64;
constexpr std::uint32_t operator_field(std::uint32_t number, std::uint32_t result_bytes) {
  return number << 16 | result_bytes;
}
constexpr std::uint32_t operator_number(std::uint32_t field) { return field >> 16; }
// 0: the field makes no sense.
constexpr std::uint32_t applied_result_bytes(std::uint32_t field) {
  const std::uint32_t bytes = field & 0xffff;
  return operator_number(field) < kOperatorsMax && bytes <= HL_OPERATOR_RESULT_MAX ? bytes : 0;
}

// Pages are composed of pieces of others, one after the other: what the pieces choose together fills the pages, from
// the first to the last. A piece of which not all is chosen has a mask: a bit for each element, the first in the
// lowest bit of the first byte, those behind the piece's last element 0. All pieces of a message have one or none
// has. A piece may go on from one page to the next. The server tells the new pages' checksums, or changes nothing.
// `element_bytes`: 4 or 8 where there are masks, else 0.
constexpr std::uint32_t compose_field(std::uint32_t pages, std::uint32_t element_bytes) {
  return pages << 16 | element_bytes;
}
constexpr std::uint32_t composed_pages(std::uint32_t field) { return field >> 16; }
constexpr std::uint32_t composed_element_bytes(std::uint32_t field) { return field & 0xffff; }
constexpr std::uint32_t mask_bytes(std::uint32_t element_bytes) {
  return static_cast<std::uint32_t>(hl::far::detail::mask_bytes(element_bytes));
}
// 0: the field makes no sense, or the request would be too long.
constexpr std::uint32_t compose_request_bytes(std::uint32_t field, std::uint16_t count);

// Pages are made of what others hold, or filled, and then single elements are put into them. The server tells the new
// pages' checksums, or changes nothing. The field in the header is compose_field(), and elements have 4 or 8 bytes.
struct Patched {
  PageNumber page;         // that is written
  PageNumber from;         // what it holds before the elements are put; kNoPage: `word` again and again
  Le<std::uint64_t> word;  // of the page that it comes from, the checksum
};
static_assert(sizeof(Patched) == 24 && offsetof(Patched, word) == 16);
inline constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
// Where an element is put: in the upper bits which of the message's pages it is, in the lower ones which element.
using Place = Le<std::uint16_t>;
inline constexpr std::uint32_t kPlaceBits = 10;
constexpr std::uint16_t make_place(std::size_t page, std::uint32_t element) {
  return static_cast<std::uint16_t>(page << kPlaceBits | element);
}
constexpr std::size_t place_page(Place place) { return place >> kPlaceBits; }
constexpr std::uint32_t place_element(Place place) { return place & ((1u << kPlaceBits) - 1); }
static_assert(kPagesMax <= 1 << (16 - kPlaceBits) && kPageSize / 4 == 1 << kPlaceBits);
// 0: the field makes no sense, or the request would be too long.
constexpr std::uint32_t patch_request_bytes(std::uint32_t field, std::uint16_t count);

// Bytes of a request that lie before page contents: header and list. What a server receives in one piece.
inline constexpr std::size_t kRequestPrefixMax = 4096;
static_assert(sizeof(Header) + sizeof(ApplyRequest) + (sizeof(Piece) + sizeof(Word)) * kPagesMax <=
              kRequestPrefixMax);
static_assert(sizeof(Header) + sizeof(Run) * kRunsMax <= kRequestPrefixMax);
static_assert(sizeof(Header) + sizeof(PageNumber) * kPagesMax <= kRequestPrefixMax);
static_assert(sizeof(Header) + sizeof(ComputeRequest) + sizeof(Piece) * kPagesMax <= kRequestPrefixMax);
static_assert(sizeof(Header) + (sizeof(PageNumber) + sizeof(Piece)) * kPagesMax <= kRequestPrefixMax);
constexpr std::uint32_t compose_request_bytes(std::uint32_t field, std::uint16_t count) {
  const std::uint32_t pages = composed_pages(field), element = composed_element_bytes(field);
  if (pages == 0 || pages > kPagesMax || (element != 0 && element != 4 && element != 8)) return 0;
  const std::size_t bytes = sizeof(PageNumber) * pages + (sizeof(Piece) + mask_bytes(element)) * count;
  return sizeof(Header) + bytes <= kRequestPrefixMax ? static_cast<std::uint32_t>(bytes) : 0;
}
constexpr std::uint32_t patch_request_bytes(std::uint32_t field, std::uint16_t count) {
  const std::uint32_t pages = composed_pages(field), element = composed_element_bytes(field);
  if (pages == 0 || pages > kPagesMax || (element != 4 && element != 8)) return 0;
  const std::size_t bytes = sizeof(Patched) * pages + (sizeof(Place) + element) * count;
  return sizeof(Header) + bytes <= kRequestPrefixMax ? static_cast<std::uint32_t>(bytes) : 0;
}
// More elements do not fit in a message with one page.
inline constexpr std::uint16_t kPatchesMax =
    (kRequestPrefixMax - sizeof(Header) - sizeof(Patched)) / (sizeof(Place) + 4);
// The body of a successful reply to compute.
constexpr std::uint32_t compute_reply_bytes(std::uint32_t operation, std::uint16_t count) {
  return static_cast<std::uint32_t>(hl::far::detail::result_bytes(operation, count));
}
inline constexpr std::uint32_t kComputeReplyMax = 512 * kPagesMax;  // checked in wire.cpp
static_assert(HL_OPERATOR_RESULT_MAX * kPagesMax <= kComputeReplyMax);

enum class Fault : std::uint8_t { none, type, count, length, status, reserved, page_number, operation };
const char* describe(Fault fault);

// The body that a well-formed request or successful reply of this type has; false when type or count is not valid.
// `slab`: the header's field.
bool request_length(Type type, std::uint16_t count, std::uint32_t slab, std::uint32_t* length);
bool reply_length(Type type, std::uint16_t count, std::uint32_t slab, std::uint32_t* length);

// Judge a header that came from the peer. `bytes` holds at least a header. On Fault::none, *header is filled, and its
// length, type, count and status are consistent with each other.
Fault parse_request(std::span<const std::byte> bytes, Header* header);
Fault parse_reply(std::span<const std::byte> bytes, Header* header);

// Bytes of a request's body before the page contents (all of it, except for write).
std::size_t list_bytes(const Header& request);

// Judge the list in the body of a read, write or discard: numbers in range, runs within one slab.
Fault check_pages(std::span<const PageNumber> pages);
Fault check_runs(std::span<const Run> runs);
// Bytes within their pages, and `bytes` of them together.
Fault check_ranges(std::span<const Range> ranges, std::uint32_t bytes);
// Page numbers in range, bytes within the page.
Fault check_pieces(std::span<const Piece> pieces);
// Page numbers in range.
Fault check_patched(std::span<const Patched> pages);

// Bytes that the piece's mask chooses; nothing: there are bits behind its last element, or not whole elements.
std::optional<std::uint32_t> chosen_bytes(const Piece& piece, std::uint32_t element_bytes,
                                          std::span<const std::byte> mask);

// A digest of a list of pages, or of ranges, that a server cannot get right without having read it: tells a reply for
// other pages.
std::uint64_t echo_of(std::span<const PageNumber> pages);
std::uint64_t echo_of(std::span<const Piece> pieces);
std::uint64_t echo_of(std::span<const PageNumber> pages, std::span<const Piece> pieces);  // of compose
std::uint64_t echo_of(std::span<const Patched> pages);

Header make_request(Type type, std::uint16_t count, std::uint64_t id);
// Of compute: the operation; of apply: operator_field().
Header make_compute_request(std::uint32_t operation, std::uint16_t count, std::uint64_t id);
Header make_apply_request(std::uint32_t field, std::uint16_t count, std::uint64_t id);
// Of all ranges together: the field says how long the reply is.
Header make_ranges_request(std::uint32_t bytes, std::uint16_t count, std::uint64_t id);
// Of compose_field(). Its length is 0 where compose_request_bytes() is.
Header make_compose_request(std::uint32_t field, std::uint16_t count, std::uint64_t id);
// The same, of patch_request_bytes().
Header make_patch_request(std::uint32_t field, std::uint16_t count, std::uint64_t id);
Header make_reply(const Header& request, Code code);

// The errno that a client reports for a reply's status.
int error_of(Code code);

// What is listed in a message, where it lies: the structs above have no alignment.
template <typename T>
std::span<const T> list_of(std::span<const std::byte> bytes) {
  static_assert(alignof(T) == 1);
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <typename T>
std::span<const std::byte> bytes_of(const T& object) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(&object, 1));
}

}  // namespace hinterland::far::wire
