// TcpComputer: pages that the server composes of parts of others, and keeps.
//
// A page that is to be composed holds nothing, and no page word names it. It is given a checksum before it is sent,
// as one that is written: so a discard of what it held before, which may be told late, cannot hit what is composed
// (SharedPages::take_stamp). Its own checksum comes with the answer. A page without an answer keeps the first one,
// and is discarded by the caller like any other.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "far/tcp/blocking_io.hpp"
#include "far/tcp/computer_link.hpp"

namespace hinterland::far {

// The body of a message as it grows.
class TcpComputer::ComposedList {
 public:
  explicit ComposedList(std::uint32_t element_bytes) : element_bytes_(element_bytes) {}

  std::uint32_t field() const { return wire::compose_field(pages_used_, element_bytes_); }
  std::uint16_t listed() const { return pieces_used_; }
  std::uint64_t echo() const { return wire::echo_of(pages(), pieces()); }
  wire::Header header(std::uint64_t id) const { return wire::make_compose_request(field(), listed(), id); }
  std::span<const wire::PageNumber> pages() const { return std::span(pages_).first(pages_used_); }
  std::span<const wire::Piece> pieces() const { return std::span(pieces_).first(pieces_used_); }

  // Whether a page with so many parts more is still one message.
  bool has_room(std::size_t parts) const { return fits(pages_used_ + 1u, pieces_used_ + parts, element_bytes_); }
  // Whether so many are one message.
  static bool fits(std::uint32_t pages, std::size_t parts, std::uint32_t element_bytes) {
    return parts != 0 && parts <= wire::kPagesMax &&
           wire::compose_request_bytes(wire::compose_field(pages, element_bytes),
                                       static_cast<std::uint16_t>(parts)) != 0;
  }
  void add(FarPage page) { pages_[pages_used_++] = page.value; }
  void add(const ComposedPart& part, std::uint64_t checksum) {
    masks_[pieces_used_] = part.mask;
    pieces_[pieces_used_++] = {part.page.value, checksum, part.offset, part.bytes, 0u};
  }
  // Header and body.
  std::size_t write(const wire::Header& header, std::span<std::byte> out) const {
    std::size_t end = 0;
    auto put = [&](std::span<const std::byte> bytes) {
      std::memcpy(out.data() + end, bytes.data(), bytes.size());
      end += bytes.size();
    };
    put(wire::bytes_of(header));
    put(std::as_bytes(pages()));
    put(std::as_bytes(pieces()));
    for (std::size_t i = 0; element_bytes_ != 0 && i < pieces_used_; ++i)
      put({masks_[i], wire::mask_bytes(element_bytes_)});
    return end;
  }

 private:
  const std::uint32_t element_bytes_;
  std::uint16_t pages_used_ = 0, pieces_used_ = 0;
  std::array<wire::PageNumber, wire::kPagesMax> pages_;
  std::array<wire::Piece, wire::kPagesMax> pieces_;
  std::array<const std::byte*, wire::kPagesMax> masks_;
};

int TcpComputer::compose(std::uint32_t element_bytes, std::span<const ComposedPage> pages,
                         std::span<const ComposedPart> parts, bool* done) {
  Composed asked{element_bytes, pages, parts, done};
  LockGuard lock(mutex_);
  return -with_link_locked([&] {
    return go_through<MadeMessage>(
        asked, asked.pages.size(), [&](MadeMessage* message) { return send_composed_locked(asked, message); },
        [&](const MadeMessage& message) { return receive_composed_locked(asked, message); });
  });
}

// The next pages whose sources the server has; none may be left.
int TcpComputer::send_composed_locked(Composed& asked, MadeMessage* message) {
  ComposedList list(asked.element_bytes);
  SharedPages& known = device_.pages();
  auto checksum_of = [&](FarPage page) { return known.contains(page) ? known.checksum(page) : 0; };
  message->begin = asked.next;
  message->count = 0;
  for (; asked.next < asked.pages.size(); ++asked.next) {
    const ComposedPage& page = asked.pages[asked.next];
    const auto parts = asked.parts.subspan(page.first, page.count);
    const bool can_be =
        known.contains(page.page) && ComposedList::fits(1, parts.size(), asked.element_bytes) &&
        std::ranges::all_of(parts, [&](const ComposedPart& part) { return checksum_of(part.page) != 0; });
    if (!can_be) continue;
    if (!list.has_room(parts.size())) break;
    for (const ComposedPart& part : parts) list.add(part, checksum_of(part.page));
    list.add(page.page);
    known.set(page.page, kOnItsWay);
    message->which[message->count++] = static_cast<std::uint32_t>(asked.next);
  }
  if (message->count == 0) return 0;
  return send_list_locked(list, message);
}

// The reply to a message by which pages are made: none where it is refused, and these pages are left to the caller.
int TcpComputer::receive_checksums_locked(wire::Type type, const MadeMessage& message, Checksums* told,
                                          std::size_t* count) {
  const std::uint64_t deadline = now_ns() + device_.timeout_ns();
  wire::Header bytes, reply;
  int result = receive_all(link_.descriptor(), std::as_writable_bytes(std::span(&bytes, 1)), deadline);
  if (result != 0) return result;
  if (wire::parse_reply(wire::bytes_of(bytes), &reply) != wire::Fault::none || reply.id != message.id ||
      reply.type != (static_cast<std::uint16_t>(type) | wire::kReplyBit) || reply.count != message.listed ||
      reply.slab != message.field || reply.stamp != message.echo)
    return -EPROTO;
  *count = reply.length / sizeof(std::uint64_t);
  return receive_all(link_.descriptor(), std::as_writable_bytes(std::span(*told)).first(reply.length), deadline);
}

int TcpComputer::receive_composed_locked(Composed& asked, const MadeMessage& message) {
  Checksums told;
  std::size_t count = 0;
  const int result = receive_checksums_locked(wire::Type::compose, message, &told, &count);
  for (std::size_t i = 0; result == 0 && i < count; ++i) {
    const std::uint32_t page = message.which[i];
    if (!tells_right(asked, page, told[i])) continue;
    device_.pages().set(asked.pages[page].page, told[i]);
    asked.done[page] = true;
  }
  return result;
}

// Of a whole page's copy the checksum is known. Of others it is believed, as a result is.
bool TcpComputer::tells_right(const Composed& asked, std::size_t page, std::uint64_t checksum) const {
  const ComposedPart& first = asked.parts[asked.pages[page].first];
  const bool is_copy = asked.pages[page].count == 1 && first.mask == nullptr;
  return checksum != 0 && (!is_copy || checksum == device_.pages().checksum(first.page));
}

}  // namespace hinterland::far
