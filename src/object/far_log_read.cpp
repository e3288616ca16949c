// Reading from the far log: one page for an object, or many pages together.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

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

int FarLog::read_page(const Pin& pin, std::uint32_t units, std::byte* to) {
  const std::size_t at = pin.unit * kUnit;
  if (device_->info().direct) {
    std::memcpy(to, static_cast<const std::byte*>(device_->direct_page(pin.record->page)) + at, units * kUnit);
    return 0;
  }
  int error = 0;
  Reader reader = borrow_reader(&error);
  if (reader.port == nullptr) return error;
  // A page does not change while its record is held.
  const auto* known = std::find(reader.holds.begin(), reader.holds.end(), pin.record);
  auto slot = static_cast<std::uint32_t>(known - reader.holds.begin());
  if (slot == kReaderPages) {
    slot = reader.next++ % kReaderPages;
    PageRecord*& held = reader.holds[slot];
    if (held != nullptr) unpin(std::exchange(held, nullptr));
    reader.port->transfer(far::Operation::read, {&pin.record->page, 1}, {&error, 1}, slot);
    pages_read_.fetch_add(1, std::memory_order_relaxed);
    if (error == 0) {
      pin.record->holders.fetch_add(1, std::memory_order_relaxed);  // the pin keeps it
      held = pin.record;
    }
  }
  if (error == 0) std::memcpy(to, reader.port->page(slot) + at, units * kUnit);
  return_reader(std::move(reader));
  return error;
}

int FarLog::read(Location location, std::uint32_t units, std::byte* to) {
  const Pin found = pin(location);
  const int error = read_page(found, units, to);
  unpin(found.record);
  return error;
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
  while (!wanted.empty()) {
    std::array<Pin, Port::kPages> pins;
    std::array<std::uint32_t, Port::kPages> slot;  // of wanted[i], the page that it is on
    std::array<far::FarPage, Port::kPages> pages;
    std::array<int, Port::kPages> errors;
    errors.fill(failure);
    const std::size_t count = std::min<std::size_t>(wanted.size(), Port::kPages);
    std::uint32_t used = 0;
    for (std::size_t i = 0; i < count; ++i) {
      pins[i] = pin(wanted[i].location);
      const auto* known = std::find(pages.begin(), pages.begin() + used, pins[i].record->page);
      slot[i] = static_cast<std::uint32_t>(known - pages.begin());
      if (slot[i] == used) pages[used++] = pins[i].record->page;
    }
    if (port != nullptr) port->transfer(far::Operation::read, std::span(pages).first(used), errors);
    for (std::size_t i = 0; i < count; ++i) {
      wanted[i].error = errors[slot[i]];
      if (wanted[i].error == 0)
        std::memcpy(wanted[i].to, port->page(slot[i]) + pins[i].unit * kUnit, wanted[i].units * kUnit);
      unpin(pins[i].record);
    }
    wanted = wanted.subspan(count);
  }
  if (port != nullptr) return_reader(std::move(reader));
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
