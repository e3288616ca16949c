// TcpChannel: received bytes into headers and pages. Nothing here trusts the server: every header must be the reply
// to a request that is waiting, of the right length, and every page must have the checksum it was written with. Parts
// of pages are checked by whoever asked for them.
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "far/tcp/tcp_channel.hpp"

namespace hinterland::far {

// Where the next bytes go: the rest of the header, or of the pages that are coming; when the header is still to come,
// the pages of the reply that is due; then the tail. *due: the message whose pages were offered on suspicion.
std::size_t TcpChannel::offer(std::span<iovec> parts, std::uint16_t* due) {
  std::size_t used = 0;
  std::uint16_t message = reading_;
  if (message == kNone) {
    parts[used++] = {header_.data() + header_have_, header_.size() - header_have_};
    std::uint16_t oldest = outbox_.oldest_sent();
    if (oldest != kNone && outbox_.message(oldest).operation == Operation::read) *due = message = oldest;
  }
  if (message != kNone) {
    std::size_t skip = reading_ != kNone ? page_have_ : 0;
    for (std::uint16_t slot = outbox_.message(message).first_page; slot != kNone; slot = outbox_.slot(slot).next) {
      parts[used++] = {static_cast<char*>(outbox_.slot(slot).buffer) + skip, outbox_.slot(slot).bytes - skip};
      skip = 0;
    }
  }
  parts[used++] = {spill_.get(), kTailBytes};
  return used;
}

// `bytes` lie where offer() said. False when they cannot be right.
bool TcpChannel::take_in(std::size_t bytes, std::uint16_t due) {
  std::size_t scattered = 0;  // bytes that may lie in page buffers
  if (reading_ == kNone) {
    std::size_t part = std::min(bytes, header_.size() - header_have_);
    header_have_ += part;
    bytes -= part;
    if (header_have_ < header_.size()) return true;
    scattered = due != kNone ? std::min<std::size_t>(bytes, outbox_.message(due).bytes) : 0;
    std::uint16_t first_page = due != kNone ? outbox_.message(due).first_page : kNone;
    if (!is_pages_of(due)) {
      // Another reply than the one that was due, or its failure: what landed in the wrong buffers goes in front of
      // the tail, before that reply ends what they belong to.
      std::memmove(spill_.get() + scattered, spill_.get(), bytes - scattered);
      std::size_t copied = 0;
      for (std::uint16_t slot = first_page; copied < scattered; slot = outbox_.slot(slot).next) {
        std::size_t size = std::min<std::size_t>(outbox_.slot(slot).bytes, scattered - copied);
        std::memcpy(spill_.get() + copied, outbox_.slot(slot).buffer, size);
        copied += size;
      }
      spill_first_ = 0;
      spill_end_ = bytes;
      return on_header() && drain_spill();
    }
    if (!on_header()) return false;
  } else {
    scattered = std::min<std::size_t>(bytes, outbox_.message(reading_).bytes - page_have_);
  }
  on_page_bytes(scattered);
  spill_first_ = 0;
  spill_end_ = bytes - scattered;
  return drain_spill();
}

// The header that is there says that the pages of this read follow.
bool TcpChannel::is_pages_of(std::uint16_t read) const {
  wire::Header header;
  return read != kNone && wire::parse_reply(header_, &header) == wire::Fault::none &&
         outbox_.find(header.id) == read && wire::Code{static_cast<std::uint32_t>(header.status)} == wire::Code::ok;
}

bool TcpChannel::drain_spill() {
  while (spill_first_ < spill_end_) {
    std::size_t have = spill_end_ - spill_first_;
    const std::byte* from = spill_.get() + spill_first_;
    if (reading_ == kNone) {
      std::size_t part = std::min(have, header_.size() - header_have_);
      std::memcpy(header_.data() + header_have_, from, part);
      header_have_ += part;
      spill_first_ += part;
      if (header_have_ == header_.size() && !on_header()) return false;
    } else {
      PageSlot& slot = outbox_.slot(outbox_.message(reading_).first_page);
      std::size_t part = std::min<std::size_t>(have, slot.bytes - page_have_);
      std::memcpy(static_cast<char*>(slot.buffer) + page_have_, from, part);
      spill_first_ += part;
      on_page_bytes(part);
    }
  }
  return true;
}

bool TcpChannel::on_header() {
  wire::Header header;
  header_have_ = 0;
  if (wire::parse_reply(header_, &header) != wire::Fault::none) return false;
  std::uint16_t index = outbox_.find(header.id);
  if (index == kNone) return false;
  Message& message = outbox_.message(index);
  bool read = message.operation == Operation::read;
  wire::Type type = message.ranges ? wire::Type::read_ranges : read ? wire::Type::read : wire::Type::write;
  if (header.type != (static_cast<std::uint16_t>(type) | wire::kReplyBit)) return false;
  if (header.count != message.pages_sent || header.stamp != message.echo) return false;
  if (message.ranges && header.slab != message.bytes_sent) return false;
  progress_ns_ = now_ns();
  wire::Code code{static_cast<std::uint32_t>(header.status)};
  if (read && code == wire::Code::ok) {
    reading_ = index;
    page_have_ = 0;
    return true;
  }
  replied();
  while (message.pages > 0) complete_slot(outbox_.take_page(index), wire::error_of(code));
  outbox_.remove(index);
  return true;
}

// `bytes` more of the message being read are in its page buffers.
void TcpChannel::on_page_bytes(std::size_t bytes) {
  page_have_ += bytes;
  while (reading_ != kNone) {
    const std::size_t size = outbox_.slot(outbox_.message(reading_).first_page).bytes;
    if (page_have_ < size) return;
    page_have_ -= size;
    on_page();
  }
}

void TcpChannel::on_page() {
  std::uint16_t index = outbox_.take_page(reading_);
  PageSlot& slot = outbox_.slot(index);
  replied();
  if (slot.checksum == 0 || SharedPages::checksum_of(slot.buffer) == slot.checksum) {
    complete_slot(index, 0);
  } else if (slot.rechecked) {
    log::warning("page %llu came back from the memory server with wrong contents, twice",
                 static_cast<unsigned long long>(slot.page.value));
    complete_slot(index, EBADMSG);
  } else {
    slot.rechecked = true;
    slot.next = recheck_first_;
    recheck_first_ = index;
  }
  if (outbox_.message(reading_).pages > 0) return;
  outbox_.remove(reading_);
  reading_ = kNone;
}

void TcpChannel::recheck_pages() {
  while (recheck_first_ != kNone) {
    std::uint16_t slot = recheck_first_;
    std::uint16_t rest = outbox_.slot(slot).next;
    if (!outbox_.add_again(slot)) return;
    recheck_first_ = rest;
  }
}

void TcpChannel::reset_reader() {
  header_have_ = page_have_ = 0;
  reading_ = kNone;
  spill_first_ = spill_end_ = 0;
}

}  // namespace hinterland::far
