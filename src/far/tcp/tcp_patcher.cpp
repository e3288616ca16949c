// TcpComputer: pages that the server fills, or makes of others by changing some of their elements, and keeps.
//
// Stamps and checksums are those of pages that are composed (tcp_composer.cpp).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "far/tcp/blocking_io.hpp"
#include "far/tcp/computer_link.hpp"

namespace hinterland::far {
namespace {

std::uint64_t checksum_of_filled(std::uint64_t fill) {
  std::array<std::uint64_t, kPageSize / sizeof fill> page;
  page.fill(fill);
  return SharedPages::checksum_of(page.data());
}

}  // namespace

// The body of a message as it grows.
class TcpComputer::PatchedList {
 public:
  explicit PatchedList(std::uint32_t element_bytes) : element_bytes_(element_bytes) {}

  std::uint32_t field() const { return wire::compose_field(pages_used_, element_bytes_); }
  std::uint16_t listed() const { return places_used_; }
  std::uint64_t echo() const { return wire::echo_of(pages()); }
  wire::Header header(std::uint64_t id) const { return wire::make_patch_request(field(), listed(), id); }
  std::span<const wire::Patched> pages() const { return std::span(pages_).first(pages_used_); }

  // Whether a page with so many elements more is still one message.
  bool has_room(std::size_t elements) const {
    return fits(pages_used_ + 1u, places_used_ + elements, element_bytes_);
  }
  // Whether so many are one message.
  static bool fits(std::uint32_t pages, std::size_t elements, std::uint32_t element_bytes) {
    return elements <= wire::kPatchesMax && wire::patch_request_bytes(wire::compose_field(pages, element_bytes),
                                                                      static_cast<std::uint16_t>(elements)) != 0;
  }
  // `word`: the checksum of the page that it comes from, or what fills it.
  void add(const PatchedPage& page, std::uint64_t word, std::span<const hl_patch> patches) {
    for (const hl_patch& patch : patches) {
      places_[places_used_] = wire::make_place(pages_used_, patch.element);
      std::memcpy(elements_.data() + std::size_t{places_used_} * element_bytes_, &patch.value, element_bytes_);
      ++places_used_;
    }
    pages_[pages_used_++] = {page.page.value, page.from ? page.from->value : wire::kNoPage, word};
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
    put(std::as_bytes(std::span(places_).first(places_used_)));
    put(std::span(elements_).first(std::size_t{places_used_} * element_bytes_));
    return end;
  }

 private:
  const std::uint32_t element_bytes_;
  std::uint16_t pages_used_ = 0, places_used_ = 0;
  std::array<wire::Patched, wire::kPagesMax> pages_;
  std::array<wire::Place, wire::kPatchesMax> places_;
  std::array<std::byte, wire::kRequestPrefixMax> elements_;
};

int TcpComputer::patch(std::uint32_t element_bytes, std::span<const PatchedPage> pages,
                       std::span<const hl_patch> patches, bool* done) {
  Patching asked{element_bytes, pages, patches, done};
  LockGuard lock(mutex_);
  return -with_link_locked([&] {
    return go_through<MadeMessage>(
        asked, asked.pages.size(), [&](MadeMessage* message) { return send_patched_locked(asked, message); },
        [&](const MadeMessage& message) { return receive_patched_locked(asked, message); });
  });
}

// The next pages whose sources the server has; none may be left.
int TcpComputer::send_patched_locked(Patching& asked, MadeMessage* message) {
  PatchedList list(asked.element_bytes);
  SharedPages& known = device_.pages();
  message->begin = asked.next;
  message->count = 0;
  for (; asked.next < asked.pages.size(); ++asked.next) {
    const PatchedPage& page = asked.pages[asked.next];
    const bool has_source = page.from && known.contains(*page.from);
    const std::uint64_t word = has_source ? known.checksum(*page.from) : page.fill;
    const bool can_be = known.contains(page.page) && (!page.from || (has_source && word != 0)) &&
                        PatchedList::fits(1, page.count, asked.element_bytes);
    if (!can_be) continue;
    if (!list.has_room(page.count)) break;
    list.add(page, word, asked.patches.subspan(page.first, page.count));
    known.set(page.page, kOnItsWay);
    message->which[message->count++] = static_cast<std::uint32_t>(asked.next);
  }
  if (message->count == 0) return 0;
  return send_list_locked(list, message);
}

// Of a page that is only filled the checksum is known. Of others it is believed, as a result is.
int TcpComputer::receive_patched_locked(Patching& asked, const MadeMessage& message) {
  Checksums told;
  std::size_t count = 0;
  const int result = receive_checksums_locked(wire::Type::patch, message, &told, &count);
  std::optional<std::pair<std::uint64_t, std::uint64_t>> filled;  // what the last page is filled with, its checksum
  for (std::size_t i = 0; result == 0 && i < count; ++i) {
    const PatchedPage& page = asked.pages[message.which[i]];
    if (!page.from && page.count == 0) {
      if (!filled || filled->first != page.fill) filled = {page.fill, checksum_of_filled(page.fill)};
      if (told[i] != filled->second) continue;
    }
    if (told[i] == 0u) continue;
    device_.pages().set(page.page, told[i]);
    asked.done[message.which[i]] = true;
  }
  return result;
}

}  // namespace hinterland::far
