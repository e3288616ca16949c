#include "far/tcp/outbox.hpp"

#include "base/check.hpp"

namespace hinterland::far {

Outbox::Outbox()
    : slots_(std::make_unique<PageSlot[]>(kPagesInFlightMax)),
      messages_(std::make_unique<Message[]>(kMessagesMax)),
      prefixes_(std::make_unique<Prefix[]>(kMessagesMax)) {
  for (std::uint16_t i = 0; i < kPagesInFlightMax; ++i)
    slots_[i].next = i + 1 < kPagesInFlightMax ? static_cast<std::uint16_t>(i + 1) : kNone;
  for (std::uint16_t i = 0; i < kMessagesMax; ++i)
    messages_[i].next = i + 1 < kMessagesMax ? static_cast<std::uint16_t>(i + 1) : kNone;
}

std::uint16_t Outbox::new_message(Operation operation, bool ranges) {
  std::uint16_t index = free_messages_;
  if (index == kNone) return kNone;
  Message& message = messages_[index];
  free_messages_ = message.next;
  message = {};
  message.id = (generation_++ << 16) | index;
  message.operation = operation;
  message.ranges = ranges;
  message.first_page = message.last_page = kNone;
  message.previous = last_;
  message.next = kNone;
  (last_ != kNone ? messages_[last_].next : first_) = index;
  last_ = index;
  if (next_to_send_ == kNone) {
    next_to_send_ = index;
    sent_of_next_ = 0;
  }
  return index;
}

void Outbox::append_slot(Message& message, std::uint16_t slot) {
  slots_[slot].next = kNone;
  (message.last_page != kNone ? slots_[message.last_page].next : message.first_page) = slot;
  message.last_page = slot;
  ++message.pages;
  message.bytes += slots_[slot].bytes;
}

std::uint16_t Outbox::add(std::uint16_t message, const Request& request, std::uint64_t checksum) {
  std::uint16_t slot = free_slots_;
  if (slot == kNone) return kNone;
  if (message == kNone) message = new_message(request.operation, !request.whole());
  if (message == kNone) return kNone;
  free_slots_ = slots_[slot].next;
  slots_[slot] = {request.buffer, request.page, request.tag, checksum, kNone, request.offset, request.bytes, false};
  append_slot(messages_[message], slot);
  return message;
}

void Outbox::seal(std::uint16_t index, std::uint64_t stamp) {
  Message& message = messages_[index];
  Prefix& prefix = prefixes_[index];
  bool write = message.operation == Operation::write;
  std::uint16_t count = 0;
  for (std::uint16_t slot = message.first_page; slot != kNone; slot = slots_[slot].next)
    prefix.pages[count++] = message.ranges
                                ? wire::make_range(slots_[slot].page, slots_[slot].offset, slots_[slot].bytes)
                                : wire::PageNumber{slots_[slot].page.value};
  HL_DCHECK_OP(count, ==, message.pages);
  message.pages_sent = count;
  message.bytes_sent = message.bytes;
  message.stamp = stamp;
  message.echo = wire::echo_of({prefix.pages.data(), count});
  prefix.header = message.ranges
                      ? wire::make_ranges_request(message.bytes_sent, count, message.id)
                      : wire::make_request(write ? wire::Type::write : wire::Type::read, count, message.id);
  prefix.header.stamp = stamp;
}

std::size_t Outbox::size_on_wire(const Message& message) const {
  std::size_t page_bytes = message.operation == Operation::write ? kPageSize : 0;
  return sizeof(wire::Header) + message.pages_sent * (sizeof(wire::PageNumber) + page_bytes);
}

std::size_t Outbox::gather(std::span<iovec> parts) const {
  std::size_t used = 0, skip = sent_of_next_;
  auto add_part = [&](const void* data, std::size_t bytes) {
    if (skip >= bytes) {
      skip -= bytes;
      return;
    }
    parts[used++] = {static_cast<char*>(const_cast<void*>(data)) + skip, bytes - skip};
    skip = 0;
  };
  for (std::uint16_t index = next_to_send_; index != kNone; index = messages_[index].next) {
    const Message& message = messages_[index];
    if (used == parts.size()) return used;
    add_part(&prefixes_[index], sizeof(wire::Header) + message.pages_sent * sizeof(wire::PageNumber));
    if (message.operation == Operation::read) continue;
    for (std::uint16_t slot = message.first_page; slot != kNone; slot = slots_[slot].next) {
      if (used == parts.size()) return used;
      add_part(slots_[slot].buffer, kPageSize);
    }
  }
  return used;
}

void Outbox::advance(std::size_t bytes) {
  sent_of_next_ += bytes;
  while (next_to_send_ != kNone) {
    std::size_t size = size_on_wire(messages_[next_to_send_]);
    if (sent_of_next_ < size) return;
    sent_of_next_ -= size;
    next_to_send_ = messages_[next_to_send_].next;
  }
}

std::uint16_t Outbox::find(std::uint64_t id) const {
  std::uint16_t index = static_cast<std::uint16_t>(id & 0xffff);
  if (index >= kMessagesMax || messages_[index].id != id) return kNone;
  // A reply to what was not asked yet is garbage. Unsent messages are few: a send takes all of them, mostly.
  for (std::uint16_t unsent = next_to_send_; unsent != kNone; unsent = messages_[unsent].next)
    if (unsent == index) return kNone;
  return index;
}

std::uint16_t Outbox::take_page(std::uint16_t index) {
  Message& message = messages_[index];
  std::uint16_t slot = message.first_page;
  message.first_page = slots_[slot].next;
  if (message.first_page == kNone) message.last_page = kNone;
  --message.pages;
  message.bytes -= slots_[slot].bytes;
  return slot;
}

void Outbox::free_slot(std::uint16_t slot) {
  slots_[slot].next = free_slots_;
  free_slots_ = slot;
}

bool Outbox::add_again(std::uint16_t slot) {
  std::uint16_t index = new_message(Operation::read, false);
  if (index == kNone) return false;
  append_slot(messages_[index], slot);
  seal(index, 0);
  return true;
}

void Outbox::remove(std::uint16_t index) {
  Message& message = messages_[index];
  HL_CHECK_OP(message.pages, ==, 0);
  if (index == next_to_send_) {
    next_to_send_ = message.next;
    sent_of_next_ = 0;
  }
  if (message.retried) --retried_;
  (message.previous != kNone ? messages_[message.previous].next : first_) = message.next;
  (message.next != kNone ? messages_[message.next].previous : last_) = message.previous;
  message.id = 0;
  message.next = free_messages_;
  free_messages_ = index;
}

void Outbox::retry_all() {
  retried_ = 0;
  for (std::uint16_t index = first_; index != kNone; index = messages_[index].next) {
    messages_[index].retried = true;
    ++retried_;
    seal(index, messages_[index].stamp);
  }
  next_to_send_ = first_;
  sent_of_next_ = 0;
}

}  // namespace hinterland::far
