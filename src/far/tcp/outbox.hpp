// The requests of one channel: pages grouped into messages, in the order in which they are sent, until answered.
// Pure bookkeeping in fixed memory; no sockets, so that it can be tested alone.
//
//   first -> ... -> [sent, awaiting replies] ... -> next_to_send -> ... -> last
//
// A message keeps those of its pages that are not done, so that after a reconnect exactly these are sent again.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "far/device.hpp"
#include "far/tcp/wire.hpp"

namespace hinterland::far {

inline constexpr std::uint16_t kPagesInFlightMax = 256;
inline constexpr std::uint16_t kMessagesMax = 256;  // a message holds at least one page
inline constexpr std::uint16_t kNone = 0xffff;

struct PageSlot {
  void* buffer;
  FarPage page;
  std::uint64_t tag;
  std::uint64_t checksum;  // what a read must give; 0: of a part of the page, which is not checked
  std::uint16_t next;      // in its message, or in the free list
  std::uint16_t offset, bytes;
  bool rechecked;  // a wrong checksum was seen once
};

struct Message {
  std::uint64_t id;
  std::uint64_t echo;  // what the reply must carry
  std::uint64_t stamp;
  Operation operation;
  bool ranges;                          // parts of pages are read
  bool retried;                         // was sent over an earlier connection
  std::uint16_t first_page, last_page;  // slots
  std::uint16_t pages;                  // not done
  std::uint16_t pages_sent;             // as the header on the wire says; the reply says the same
  std::uint32_t bytes;                  // of those that are not done
  std::uint32_t bytes_sent;             // of all that were asked for
  std::uint16_t previous, next;         // in the order of sending, or in the free list
};

class Outbox {
 public:
  Outbox();

  // Adds a page to the message `message`, or to a new one when that is kNone. kNone when there is no room; else the
  // message it went to.
  std::uint16_t add(std::uint16_t message, const Request& request, std::uint64_t checksum);
  bool fits(std::uint16_t message, const Request& request) const {
    return message != kNone && messages_[message].operation == request.operation &&
           messages_[message].ranges == !request.whole() && messages_[message].pages < wire::kPagesMax;
  }
  // Fixes the message's header and list for sending; `stamp` 0 for reads.
  void seal(std::uint16_t message, std::uint64_t stamp);

  // Pieces of the unsent messages from `sent` bytes into the first of them; at most parts.size().
  std::size_t gather(std::span<iovec> parts) const;
  void advance(std::size_t bytes);  // that many of these bytes went out
  bool all_sent() const { return next_to_send_ == kNone; }
  bool empty() const { return first_ == kNone; }

  Message& message(std::uint16_t index) { return messages_[index]; }
  PageSlot& slot(std::uint16_t index) { return slots_[index]; }
  // The oldest message that is wholly sent, whose reply will likely come next; kNone if there is none.
  std::uint16_t oldest_sent() const { return first_ != next_to_send_ ? first_ : kNone; }
  std::uint16_t oldest() const { return first_; }
  // The wholly sent message with this id, or kNone.
  std::uint16_t find(std::uint64_t id) const;

  // Takes the first page off a message and gives its slot index; free_slot() or add_again() it then.
  std::uint16_t take_page(std::uint16_t message);
  void free_slot(std::uint16_t slot);
  // A new message for one page that was taken off another, at the end of the order. False when there is no room.
  bool add_again(std::uint16_t slot);
  void remove(std::uint16_t message);  // one without pages

  // After a reconnect: everything unanswered is to be sent again. may_retry(): nothing was sent again before.
  bool may_retry() const { return retried_ == 0; }
  void retry_all();

 private:
  std::size_t size_on_wire(const Message& message) const;
  std::uint16_t new_message(Operation operation, bool ranges);
  void append_slot(Message& message, std::uint16_t slot);

  struct Prefix {  // lies on the wire before page contents
    wire::Header header;
    std::array<wire::PageNumber, wire::kPagesMax> pages;  // or wire::Range
  };
  std::unique_ptr<PageSlot[]> slots_;
  std::unique_ptr<Message[]> messages_;
  std::unique_ptr<Prefix[]> prefixes_;
  std::uint16_t free_slots_ = 0, free_messages_ = 0;
  std::uint16_t first_ = kNone, last_ = kNone, next_to_send_ = kNone;
  std::uint16_t retried_ = 0;     // messages with `retried`
  std::size_t sent_of_next_ = 0;  // bytes of next_to_send_ that went out
  std::uint64_t generation_ = 1;  // makes ids unique: index in the low 16 bits, generation above
};

}  // namespace hinterland::far
