// The device's side of what is brought while nobody blocks: pages of a port, what is to be read, what has come.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "object/arrival_loops.hpp"
#include "object/arrivals.hpp"

namespace hinterland::object {

// Which pages it lies on, each to be read.
void Arrivals::ask_for(Bringing& bringing) {
  if (is_kind(bringing.value, kFar)) {
    bringing.pin = heap_.far_->pin(location_of(bringing.value));
    const far::FarPage page = bringing.pin.record->page;
    const FarLog::Part part = heap_.far_->part_of(bringing.pin, far_units_of(bringing.value));
    const bool may_be_alone = heap_.far_->check_units() != 0 && part.bytes < kPartBytesMax;
    bringing.left = 1;
    bringing.first = {.of = &bringing,
                      .page = page,
                      .from = part.offset,
                      .bytes = part.bytes,
                      .to = 0,
                      .alone = may_be_alone && !choice_.wants_page(page, part.offset, part.bytes),
                      .next = nullptr};
    return ask_for_piece(bringing.first);
  }
  const auto& object = *reinterpret_cast<const LargeObject*>(bringing.value & kAddress);
  const auto count = static_cast<std::uint32_t>(object.pages.size());
  bringing.left = count;
  Piece* const pieces = bringing.pieces.get();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t to = i * kPageSize;
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPageSize, object.bytes - to));
    pieces[i] = {.of = &bringing,
                 .page = object.pages[i],
                 .from = 0,
                 .bytes = bytes,
                 .to = to,
                 .alone = false,
                 .next = nullptr};
  }
  // None of them is on a page that is here: pages of large objects are not kept.
  for (std::uint32_t i = 0; i < count; ++i) ask_for_piece(pieces[i]);
}

// Has it from a page that is here or on its way. False: neither is.
bool Arrivals::find_page(Piece& piece) {
  auto slot = std::ranges::find_if(
      slots_, [&](const Slot& each) { return each.state != State::free && !each.part && each.page == piece.page; });
  if (slot == slots_.end()) return false;
  if (slot->state != State::held) {
    piece.next = std::exchange(slot->pieces, &piece);
    return true;
  }
  const std::byte* const page = port_->page(static_cast<std::uint32_t>(slot - slots_.begin()));
  piece_done(piece, take(piece, page + piece.from));
  return true;
}

void Arrivals::ask_for_piece(Piece& piece) {
  if (find_page(piece)) return;
  piece.next = nullptr;
  (queue_last_ != nullptr ? queue_last_->next : queue_first_) = &piece;
  queue_last_ = &piece;
  ++queued_;
  asked_ = true;
}

int Arrivals::take(const Piece& piece, const std::byte* from) {
  const Bringing& of = *piece.of;
  std::byte* const to = of.header->object() + piece.to;
  if (of.pin.record != nullptr) return heap_.far_->take(of.pin, far_units_of(of.value), from, to);
  std::memcpy(to, from, piece.bytes);
  return 0;
}

bool Arrivals::drive() {
  if (!any_begun() || !mutex().try_lock()) return false;
  const bool came = drive_locked(false);
  mutex().unlock();
  return came;
}

// Whoever drives between two fibers, or two coroutines, goes on with others, which may ask for more: then all goes
// out together, at the latest when nobody has asked since the last look, or sleeps. A message has 64 bytes in both
// directions beside what is asked for.
bool Arrivals::gathers_more(bool all) {
  constexpr std::uint32_t kTogether = 32;
  const bool asked = std::exchange(asked_, false);
  return !all && asked && queued_ < kTogether && heap_.far_->check_units() != 0;
}

// all: nothing of what is asked for waits for more.
bool Arrivals::drive_locked(bool all) {
  if (bringing_ == nullptr) return false;
  finished_any_ = false;
  if (heap_.far_->is_copy()) return abandon(ENOTSUP), true;  // what is on its way is its parent's
  if (without_room_ != 0) retry_for_room();
  const bool later = gathers_more(all);
  if (queue_first_ != nullptr && port_ == nullptr) {
    if (const int error = open_port(); error != 0) return fail_queue(error), true;
  }
  if (port_ != nullptr) {
    if (!later) send();
    receive();
    if (!later) send();  // where pages have become free
  }
  return finished_any_;
}

int Arrivals::descriptor() {
  LockGuard guard(mutex());
  drive_locked(true);
  return port_ != nullptr && without_room_ == 0 ? port_->channel().event_descriptor() : -1;
}

int Arrivals::open_port() {
  auto port = heap_.far_->open_port();
  if (!port) return port.error().code() != 0 ? port.error().code() : EIO;
  port_ = std::move(*port);
  return 0;
}

void Arrivals::fail_queue(int error) {
  for (Piece *piece = std::exchange(queue_first_, nullptr), *next; piece != nullptr; piece = next) {
    next = piece->next;
    piece_done(*piece, error);
  }
  queue_last_ = nullptr;
  queued_ = 0;
}

// Not where so much of its page is asked for that the page costs less.
bool Arrivals::reads_alone(const Piece& piece) const {
  std::uint32_t bytes = piece.bytes, looked = 0;
  for (const Piece* each = piece.next; each != nullptr && looked < kSlots; each = each->next, ++looked)
    if (each->page == piece.page) bytes += each->bytes;
  return piece.alone && bytes < kPartBytesMax;
}

// Of the queue, as much as there are pages and the device takes, together.
void Arrivals::send() {
  while (queue_first_ != nullptr) {
    Piece& piece = *queue_first_;
    Piece* const next = piece.next;
    if (!find_page(piece)) {
      const std::uint32_t slot = free_slot();
      if (slot == kSlots) break;
      slots_[slot] = {.state = State::assigned,
                      .part = reads_alone(piece),
                      .page = piece.page,
                      .record = nullptr,
                      .pieces = &piece};
      piece.next = nullptr;
    }
    queue_first_ = next;
    if (next == nullptr) queue_last_ = nullptr;
    --queued_;
  }
  std::array<far::Request, kSlots> requests;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    const Slot& slot = slots_[i];
    if (slot.state != State::assigned) continue;
    requests[count] = {far::Operation::read, slot.page, port_->page(i), i};
    if (slot.part) {
      requests[count].offset = static_cast<std::uint16_t>(slot.pieces->from);
      requests[count].bytes = static_cast<std::uint16_t>(slot.pieces->bytes);
    }
    ++count;
  }
  if (count == 0) return;
  const int took = port_->channel().submit(std::span(requests).first(count));
  const std::uint32_t taken = took > 0 ? static_cast<std::uint32_t>(took) : 0;
  for (std::uint32_t i = 0; i < taken; ++i) {
    Slot& slot = slots_[requests[i].tag];
    slot.state = State::sent;
    heap_.far_->count_read(slot.part ? 0 : 1, slot.part ? 1 : 0, requests[i].bytes);
  }
  if (took >= 0) return;
  for (std::uint32_t i = 0; i < count; ++i) fill_from(static_cast<std::uint32_t>(requests[i].tag), -took);
}

// kSlots: all are on their way. What is read alone needs no page that is held, unless there is no other.
std::uint32_t Arrivals::free_slot() {
  for (std::uint32_t slot = 0; slot < kSlots; ++slot)
    if (slots_[slot].state == State::free) return slot;
  for (std::uint32_t looked = 0; looked < kSlots; ++looked) {
    const std::uint32_t slot = next_slot_++ % kSlots;
    if (slots_[slot].state != State::held) continue;
    give_up_page(slots_[slot]);
    return slot;
  }
  return kSlots;
}

void Arrivals::give_up_page(Slot& slot) {
  if (slot.state != State::held) return;
  slot.state = State::free;
  heap_.far_->unpin(std::exchange(slot.record, nullptr));
}

void Arrivals::receive() {
  std::array<far::Completion, kSlots> done;
  for (int count; (count = port_->channel().poll(done)) > 0;)
    for (const far::Completion& each : std::span(done).first(static_cast<std::size_t>(count)))
      fill_from(static_cast<std::uint32_t>(each.tag), each.error);
}

void Arrivals::fill_from(std::uint32_t index, int error) {
  Slot& slot = slots_[index];
  Piece* pieces = std::exchange(slot.pieces, nullptr);
  slot.state = State::free;
  if (std::exchange(slot.part, false) && pieces != nullptr) return fill_alone(*pieces, index, error);
  // A page does not change while its record is held. Of a large object it has none.
  if (pieces != nullptr && error == 0 && pieces->of->pin.record != nullptr) {
    slot.record = pieces->of->pin.record;
    slot.record->holders.fetch_add(1, std::memory_order_relaxed);  // who waits for it keeps it
    slot.state = State::held;
  }
  for (Piece* next; pieces != nullptr; pieces = next) {
    next = pieces->next;
    piece_done(*pieces, error != 0 ? error : take(*pieces, port_->page(index) + pieces->from));
  }
}

// What is wrong alone is read once more with its page, by whose checksum the device can tell.
void Arrivals::fill_alone(Piece& piece, std::uint32_t index, int error) {
  if (error == 0) error = take(piece, port_->page(index));
  if (error != EBADMSG) return piece_done(piece, error);
  piece.alone = false;
  ask_for_piece(piece);
}

}  // namespace hinterland::object
