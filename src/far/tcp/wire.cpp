#include "far/tcp/wire.hpp"

#include <cerrno>

namespace hinterland::far::wire {
namespace {

struct Shape {
  bool valid;
  std::uint16_t count_min, count_max;
};

Shape shape_of(Type type) {
  switch (type) {
    case Type::session_open:
    case Type::session_join:
    case Type::leave:
    case Type::ping:
    case Type::slab_allocate:
    case Type::slab_release:
    case Type::find_operator:
      return {true, 0, 0};
    case Type::discard:
      return {true, 1, kRunsMax};
    case Type::read:
    case Type::write:
    case Type::compute:
    case Type::apply:
    case Type::read_ranges:
    case Type::compose:
      return {true, 1, kPagesMax};
    case Type::patch:
      return {true, 0, kPatchesMax};
  }
  return {false, 0, 0};
}

bool count_fits(Type type, std::uint16_t count) {
  Shape shape = shape_of(type);
  return shape.valid && count >= shape.count_min && count <= shape.count_max;
}

static_assert(compute_reply_bytes(hl::far::detail::distinct, kPagesMax) <= kComputeReplyMax &&
              compute_reply_bytes(hl::far::detail::spread, kPagesMax) <= kComputeReplyMax);

// Whose field `slab` says how long the reply is.
bool sizes_reply(Type type) {
  return type == Type::compute || type == Type::apply || type == Type::read_ranges || type == Type::compose ||
         type == Type::patch;
}
bool request_has_slab(Type type) { return type == Type::slab_release || sizes_reply(type); }
bool reply_has_slab(Type type) {
  return type == Type::slab_allocate || type == Type::find_operator || sizes_reply(type);
}

}  // namespace

const char* describe(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "nothing";
    case Fault::type:
      return "unknown message type";
    case Fault::count:
      return "count out of bounds";
    case Fault::length:
      return "length does not fit the message";
    case Fault::status:
      return "unknown status";
    case Fault::reserved:
      return "a field that must be zero is not";
    case Fault::page_number:
      return "page number out of bounds";
    case Fault::operation:
      return "unknown operation";
  }
  return "unknown fault";
}

bool request_length(Type type, std::uint16_t count, std::uint32_t slab, std::uint32_t* length) {
  if (!count_fits(type, count)) return false;
  switch (type) {
    case Type::session_open:
    case Type::session_join:
      *length = sizeof(SessionRequest);
      return true;
    case Type::discard:
      *length = static_cast<std::uint32_t>(sizeof(Run)) * count;
      return true;
    case Type::read:
    case Type::read_ranges:
      *length = static_cast<std::uint32_t>(sizeof(PageNumber)) * count;
      return true;
    case Type::write:
      *length = static_cast<std::uint32_t>(sizeof(PageNumber) + kPageSize) * count;
      return true;
    case Type::compute:
      *length = static_cast<std::uint32_t>(sizeof(ComputeRequest) + sizeof(Piece) * count);
      return true;
    case Type::find_operator:
      *length = sizeof(OperatorRequest);
      return true;
    case Type::apply:
      *length = static_cast<std::uint32_t>(sizeof(ApplyRequest) + (sizeof(Piece) + sizeof(Word)) * count);
      return true;
    case Type::compose:
      *length = compose_request_bytes(slab, count);
      return *length != 0;
    case Type::patch:
      *length = patch_request_bytes(slab, count);
      return *length != 0;
    default:
      *length = 0;
      return true;
  }
}

bool reply_length(Type type, std::uint16_t count, std::uint32_t slab, std::uint32_t* length) {
  if (!count_fits(type, count)) return false;
  switch (type) {
    case Type::session_open:
    case Type::session_join:
      *length = sizeof(SessionReply);
      return true;
    case Type::read:
      *length = static_cast<std::uint32_t>(kPageSize) * count;
      return true;
    case Type::compute:
      *length = compute_reply_bytes(slab, count);
      return *length != 0;
    case Type::apply:
      *length = applied_result_bytes(slab) * count;
      return *length != 0;
    case Type::read_ranges:
      *length = slab;
      return slab >= count && slab <= count * kPageSize;
    case Type::compose:
    case Type::patch:
      *length = static_cast<std::uint32_t>(sizeof(Le<std::uint64_t>)) * composed_pages(slab);
      return (type == Type::patch ? patch_request_bytes(slab, count) : compose_request_bytes(slab, count)) != 0;
    default:
      *length = 0;
      return true;
  }
}

Fault parse_request(std::span<const std::byte> bytes, Header* header) {
  std::memcpy(header, bytes.data(), sizeof *header);
  Type type{static_cast<std::uint16_t>(header->type)};
  if (!shape_of(type).valid) return Fault::type;
  std::uint32_t length = 0;
  if (!request_length(type, header->count, header->slab, &length)) return Fault::count;
  if (header->length != length) return Fault::length;
  if (header->status != 0) return Fault::reserved;
  if (header->slab != 0 && !request_has_slab(type)) return Fault::reserved;
  if (sizes_reply(type) && !reply_length(type, header->count, header->slab, &length))
    return type == Type::read_ranges ? Fault::length : Fault::operation;
  return Fault::none;
}

Fault parse_reply(std::span<const std::byte> bytes, Header* header) {
  std::memcpy(header, bytes.data(), sizeof *header);
  if ((header->type & kReplyBit) == 0) return Fault::type;
  Type type{static_cast<std::uint16_t>(header->type & ~kReplyBit)};
  if (!shape_of(type).valid) return Fault::type;
  if (header->status >= kCodes) return Fault::status;
  std::uint32_t length = 0;
  if (!reply_length(type, header->count, header->slab, &length)) return Fault::count;
  if (header->status != static_cast<std::uint32_t>(Code::ok)) length = 0;
  if (header->length != length) return Fault::length;
  if (header->slab != 0 && !reply_has_slab(type)) return Fault::reserved;
  return Fault::none;
}

std::size_t list_bytes(const Header& request) {
  if (Type{static_cast<std::uint16_t>(request.type)} == Type::write) return sizeof(PageNumber) * request.count;
  return request.length;
}

Fault check_pages(std::span<const PageNumber> pages) {
  for (const PageNumber& page : pages)
    if (page >= kPageNumbers) return Fault::page_number;
  return Fault::none;
}

Fault check_runs(std::span<const Run> runs) {
  for (const Run& run : runs) {
    if (run.reserved != 0) return Fault::reserved;
    if (run.first >= kPageNumbers || run.count == 0) return Fault::page_number;
    if (run.count > kSlabPages - FarPage{run.first}.page_in_slab()) return Fault::page_number;
  }
  return Fault::none;
}

Fault check_ranges(std::span<const Range> ranges, std::uint32_t bytes) {
  std::uint64_t together = 0;
  for (const Range& range : ranges) {
    if (range_offset(range) + range_bytes(range) > kPageSize) return Fault::page_number;
    together += range_bytes(range);
  }
  return together == bytes ? Fault::none : Fault::length;
}

Fault check_pieces(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    if (piece.reserved != 0) return Fault::reserved;
    if (piece.page >= kPageNumbers || piece.bytes == 0 || std::size_t{piece.offset} + piece.bytes > kPageSize)
      return Fault::page_number;
  }
  return Fault::none;
}

Fault check_patched(std::span<const Patched> pages) {
  for (const Patched& each : pages)
    if (each.page >= kPageNumbers || (each.from >= kPageNumbers && each.from != kNoPage)) return Fault::page_number;
  return Fault::none;
}

std::optional<std::uint32_t> chosen_bytes(const Piece& piece, std::uint32_t element_bytes,
                                          std::span<const std::byte> mask) {
  const auto chosen = hl::far::detail::chosen_bytes(element_bytes, piece.offset, piece.bytes,
                                                    reinterpret_cast<const unsigned char*>(mask.data()));
  return chosen ? std::optional(static_cast<std::uint32_t>(*chosen)) : std::nullopt;
}

// Multiply-and-add with an odd constant (2^64 / golden ratio): depends on every number and on their order.
static std::uint64_t echo_with(std::uint64_t echo, std::uint64_t number) {
  return (echo + number + 1) * 0x9e3779b97f4a7c15u;
}

std::uint64_t echo_of(std::span<const PageNumber> pages) {
  std::uint64_t echo = pages.size();
  for (const PageNumber& page : pages) echo = echo_with(echo, page);
  return echo;
}

std::uint64_t echo_of(std::span<const Piece> pieces) {
  std::uint64_t echo = pieces.size();
  for (const Piece& piece : pieces)
    echo = echo_with(echo_with(echo, piece.page), std::uint64_t{piece.offset} << 16 | piece.bytes);
  return echo;
}

std::uint64_t echo_of(std::span<const PageNumber> pages, std::span<const Piece> pieces) {
  return echo_with(echo_of(pages), echo_of(pieces));
}

std::uint64_t echo_of(std::span<const Patched> pages) {
  std::uint64_t echo = pages.size();
  for (const Patched& each : pages) echo = echo_with(echo_with(echo, each.page), each.from);
  return echo;
}

Header make_request(Type type, std::uint16_t count, std::uint64_t id) {
  Header header;
  std::uint32_t length = 0;
  request_length(type, count, 0, &length);
  header.length = length;
  header.type = static_cast<std::uint16_t>(type);
  header.count = count;
  header.id = id;
  return header;
}

Header make_compute_request(std::uint32_t operation, std::uint16_t count, std::uint64_t id) {
  Header header = make_request(Type::compute, count, id);
  header.slab = operation;
  return header;
}

Header make_apply_request(std::uint32_t field, std::uint16_t count, std::uint64_t id) {
  Header header = make_request(Type::apply, count, id);
  header.slab = field;
  return header;
}

Header make_ranges_request(std::uint32_t bytes, std::uint16_t count, std::uint64_t id) {
  Header header = make_request(Type::read_ranges, count, id);
  header.slab = bytes;
  return header;
}

Header make_compose_request(std::uint32_t field, std::uint16_t count, std::uint64_t id) {
  Header header = make_request(Type::compose, count, id);
  header.length = compose_request_bytes(field, count);
  header.slab = field;
  return header;
}

Header make_patch_request(std::uint32_t field, std::uint16_t count, std::uint64_t id) {
  Header header = make_request(Type::patch, count, id);
  header.length = patch_request_bytes(field, count);
  header.slab = field;
  return header;
}

Header make_reply(const Header& request, Code code) {
  Header header;
  std::uint32_t length = 0;
  Type type{static_cast<std::uint16_t>(request.type)};
  if (code == Code::ok) reply_length(type, request.count, request.slab, &length);
  if (sizes_reply(type)) header.slab = request.slab;
  header.length = length;
  header.type = static_cast<std::uint16_t>(request.type | kReplyBit);
  header.count = request.count;
  header.id = request.id;
  header.status = static_cast<std::uint32_t>(code);
  return header;
}

int error_of(Code code) {
  switch (code) {
    case Code::ok:
      return 0;
    case Code::no_space:
      return ENOSPC;
    case Code::session_unknown:
      return ESTALE;
    case Code::too_many:
      return EMFILE;
    case Code::not_yours:
      return ENXIO;
    case Code::bad_request:
      return EPROTO;
    case Code::damaged:
      return EBADMSG;
    case Code::no_operator:
      return ENOTSUP;
  }
  return EPROTO;
}

}  // namespace hinterland::far::wire
