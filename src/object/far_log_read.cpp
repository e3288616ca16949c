// Reading from the far log: one page for an object, or many pages together.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/stats.hpp"
#include "object/far_log.hpp"

namespace hinterland::object {

FarLog::Reader FarLog::borrow_reader(int* error) {
  {
    LockGuard guard(readers_mutex_);
    if (!readers_.empty()) {
      Reader reader = std::move(readers_.back());
      readers_.pop_back();
      return reader;
    }
  }
  auto port = Port::open(*device_);
  if (port) return {std::move(*port)};
  *error = port.error().code() != 0 ? port.error().code() : EIO;
  return {};
}

void FarLog::return_reader(Reader reader) {
  LockGuard guard(readers_mutex_);
  readers_.push_back(std::move(reader));
}

void FarLog::forget(Reader& reader) {
  for (PageRecord*& held : reader.holds)
    if (held != nullptr) unpin(std::exchange(held, nullptr));
}

int FarLog::take(const Pin& pin, std::uint32_t units, const std::byte* record, std::byte* to) const {
  const std::byte* const object = record + check_units_ * kUnit;
  if (check_units_ != 0) {
    std::uint64_t check;
    std::memcpy(&check, record, sizeof check);
    if (check != check_of(pin.seed, units, object)) return EBADMSG;
  }
  std::memcpy(to, object, units * kUnit);
  return 0;
}

void FarLog::count_read(std::uint64_t pages, std::uint64_t parts, std::uint64_t bytes) {
  if (pages != 0) pages_read_.fetch_add(pages, std::memory_order_relaxed);
  if (parts != 0) parts_read_.fetch_add(parts, std::memory_order_relaxed);
  count(Counter::object_bytes_in, bytes);
}

// Into a page of the port.
int FarLog::read_part(Port& port, std::uint32_t slot, const Pin& pin, std::uint32_t units, std::byte* to) {
  const Part part = part_of(pin, units);
  far::Request request{far::Operation::read,
                       pin.record->page,
                       port.page(slot),
                       0,
                       static_cast<std::uint16_t>(part.offset),
                       static_cast<std::uint16_t>(part.bytes)};
  int error = 0;
  port.transfer({&request, 1}, {&error, 1});
  count_read(0, 1, part.bytes);
  return error != 0 ? error : take(pin, units, port.page(slot), to);
}

int FarLog::read_page(Reader& reader, const Pin& pin, std::uint32_t units, std::byte* to) {
  const std::uint32_t slot = reader.next++ % kReaderPages;
  PageRecord*& held = reader.holds[slot];
  if (held != nullptr) unpin(std::exchange(held, nullptr));
  int error = 0;
  reader.port->transfer(far::Operation::read, {&pin.record->page, 1}, {&error, 1}, slot);
  count_read(1, 0, kPageSize);
  if (error != 0) return error;
  pin.record->holders.fetch_add(1, std::memory_order_relaxed);  // the pin keeps it
  held = pin.record;
  return take(pin, units, reader.port->page(slot) + pin.unit * kUnit, to);
}

int FarLog::read_with(Reader& reader, const Pin& pin, std::uint32_t units, std::byte* to) {
  const Part part = part_of(pin, units);
  const bool wants_page = check_units_ == 0 || part.bytes >= kPartBytesMax ||
                          reader.choice.wants_page(pin.record->page, part.offset, part.bytes);
  // A page does not change while its record is held.
  const auto* known = std::find(reader.holds.begin(), reader.holds.end(), pin.record);
  if (known != reader.holds.end()) {
    const auto slot = static_cast<std::uint32_t>(known - reader.holds.begin());
    return take(pin, units, reader.port->page(slot) + part.offset, to);
  }
  if (!wants_page) {
    const int error = read_part(*reader.port, kReaderPages, pin, units, to);
    if (error != EBADMSG) return error;
  }
  return read_page(reader, pin, units, to);
}

int FarLog::read(Location location, std::uint32_t units, std::byte* to) {
  const Pin found = pin(location);
  int error = 0;
  if (device_->info().direct) {
    const auto* page = static_cast<const std::byte*>(device_->direct_page(found.record->page));
    error = take(found, units, page + found.unit * kUnit, to);
    count(Counter::object_bytes_in, units * kUnit);
  } else if (Reader reader = borrow_reader(&error); reader.port != nullptr) {
    error = read_with(reader, found, units, to);
    return_reader(std::move(reader));
  }
  unpin(found.record);
  return error;
}

// At most Port::kPages: whole pages for those that want much of one, else parts, in one submission.
void FarLog::read_together(Port* port, int failure, std::span<Wanted> wanted) {
  std::array<Pin, Port::kPages> pins;
  std::array<std::uint32_t, Port::kPages> page_of, request_of;  // of wanted[i]
  std::array<PageRecord*, Port::kPages> pages;
  std::array<std::uint32_t, Port::kPages> bytes{}, request_of_page;  // of pages[i]
  std::array<far::Request, Port::kPages> requests;
  std::array<int, Port::kPages> errors;
  errors.fill(0);
  std::uint32_t page_count = 0, request_count = 0, parts = 0;
  std::uint64_t read_bytes = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    pins[i] = pin(wanted[i].location);
    const auto* known = std::find(pages.begin(), pages.begin() + page_count, pins[i].record);
    page_of[i] = static_cast<std::uint32_t>(known - pages.begin());
    if (page_of[i] == page_count) {
      request_of_page[page_count] = Port::kPages;
      pages[page_count++] = pins[i].record;
    }
    bytes[page_of[i]] += part_of(pins[i], wanted[i].units).bytes;
  }
  for (std::size_t i = 0; i < wanted.size() && port != nullptr; ++i) {
    const Part part = part_of(pins[i], wanted[i].units);
    const bool whole = check_units_ == 0 || bytes[page_of[i]] >= kPartBytesMax;
    std::uint32_t& of_page = request_of_page[page_of[i]];
    if (!whole || of_page == Port::kPages) {
      far::Request& request = requests[request_count];
      request = {far::Operation::read, pins[i].record->page, port->page(request_count), 0};
      if (!whole) {
        request.offset = static_cast<std::uint16_t>(part.offset);
        request.bytes = static_cast<std::uint16_t>(part.bytes);
        ++parts;
      }
      read_bytes += request.bytes;
      of_page = request_count++;
    }
    request_of[i] = of_page;
  }
  if (port != nullptr) port->transfer(std::span(requests).first(request_count), errors);
  count_read(request_count - parts, parts, read_bytes);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    int& error = wanted[i].error = port != nullptr ? errors[request_of[i]] : failure;
    if (error == 0) {
      const far::Request& request = requests[request_of[i]];
      const std::size_t at = request.whole() ? pins[i].unit * kUnit : 0;
      error = take(pins[i], wanted[i].units, static_cast<std::byte*>(request.buffer) + at, wanted[i].to);
    }
    unpin(pins[i].record);
  }
}

void FarLog::read_many(std::span<Wanted> wanted) {
  if (device_->info().direct) {
    for (Wanted& each : wanted) each.error = read(each.location, each.units, each.to);
    return;
  }
  int failure = 0;
  Reader reader = borrow_reader(&failure);
  Port* const port = reader.port.get();
  forget(reader);
  for (std::span<Wanted> left = wanted; !left.empty();) {
    const std::size_t count = std::min<std::size_t>(left.size(), Port::kPages);
    read_together(port, failure, left.first(count));
    left = left.subspan(count);
  }
  if (port == nullptr) return;
  return_reader(std::move(reader));
  // Once more, with the page that tells.
  for (Wanted& each : wanted)
    if (each.error == EBADMSG && check_units_ != 0) each.error = read(each.location, each.units, each.to);
}

int FarLog::read_large(const LargeObject& object, std::byte* to) {
  int error = 0;
  Reader reader = borrow_reader(&error);
  Port* const port = reader.port.get();
  if (port == nullptr) return error;
  forget(reader);
  std::array<int, Port::kPages> errors;
  for (std::size_t first = 0; first < object.pages.size() && error == 0; first += Port::kPages) {
    const auto pages =
        std::span(object.pages).subspan(first, std::min<std::size_t>(Port::kPages, object.pages.size() - first));
    port->transfer(far::Operation::read, pages, errors);
    for (std::size_t i = 0; i < pages.size() && error == 0; ++i) {
      error = errors[i];
      const std::uint64_t at = (first + i) * kPageSize;
      if (error == 0)
        std::memcpy(to + at, port->page(static_cast<std::uint32_t>(i)),
                    std::min<std::uint64_t>(kPageSize, object.bytes - at));
    }
  }
  return_reader(std::move(reader));
  return error;
}

}  // namespace hinterland::object
