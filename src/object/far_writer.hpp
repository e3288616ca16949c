// Packs objects into pages of the far log and writes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.hpp"
#include "object/far_log.hpp"

namespace hinterland::object {

// Places objects in new pages and writes these many at a time. One an evacuator.
class FarWriter {
 public:
  static constexpr std::uint32_t kPages = Port::kPages / 2;
  FarWriter(FarLog& log, std::unique_ptr<Port> port) : log_(log), port_(std::move(port)) {}
  ~FarWriter();

  // Copies an object into an open page. 0: no room; full(), then flush() makes some, or the device has none, and
  // error() says why.
  Location place(const std::byte* bytes, std::uint32_t units);
  // The page of the last place(): an index for failed().
  std::uint32_t page_index() const { return open_ - 1; }
  bool full() const { return open_ == kPages; }
  std::uint32_t open_pages() const { return open_; }
  int error() const { return error_; }

  // Writes all open pages; from then on what was placed can be read, unless failed(). Blocks. How many pages failed:
  // who placed objects there frees them.
  std::uint32_t flush();
  bool failed(std::uint32_t page_index) const { return errors_[page_index] != 0; }

  // An object with pages of its own. fill(offset, to, bytes) copies a piece, or says that it is wanted no more.
  // nullptr: error() says why, 0 that it was not wanted.
  LargeObject* write_large(std::uint64_t bytes, auto&& fill);

  Port& port() { return *port_; }

  // In a forked child, with no page open: pages that were taken and not used are its parent's, and so is the port.
  void after_fork_in_child(std::unique_ptr<Port> port) {
    port_->abandon();
    port_ = std::move(port);
    stashed_ = stash_at_ = 0;
  }

 private:
  bool take_page(far::FarPage* page);

  FarLog& log_;
  std::unique_ptr<Port> port_;
  std::array<far::FarPage, kPages> stash_{};  // pages of the device that were taken and not used yet
  std::uint32_t stashed_ = 0, stash_at_ = 0;
  std::uint32_t open_ = 0;  // pages
  std::uint32_t used_ = 0;  // units of the last
  std::array<std::uint64_t, kPages> blocks_{};
  std::array<far::FarPage, kPages> pages_{};
  std::array<int, kPages> errors_{};
  int error_ = 0;
};

LargeObject* FarWriter::write_large(std::uint64_t bytes, auto&& fill) {
  HL_CHECK(open_ == 0);
  error_ = 0;
  auto object = std::make_unique<LargeObject>();
  object->bytes = bytes;
  bool wanted = true;
  for (std::uint64_t at = 0; at < bytes && wanted && error_ == 0;) {
    std::uint32_t count = 0;
    for (; count < kPages && at < bytes; ++count) {
      if (!take_page(&pages_[count])) break;
      object->pages.push_back(pages_[count]);
      const std::uint64_t piece = std::min<std::uint64_t>(kPageSize, bytes - at);
      if (!(wanted = fill(at, port_->page(count), piece))) break;
      at += piece;
    }
    if (wanted && count != 0 && port_->transfer(far::Operation::write, std::span(pages_).first(count), errors_) != 0)
      for (std::uint32_t i = 0; i < count; ++i) error_ = errors_[i] != 0 ? errors_[i] : error_;
    if (count == 0) break;
  }
  if (!wanted || error_ != 0) {
    log_.give_back(object->pages);
    return nullptr;
  }
  log_.add_large(object.get());
  return object.release();
}

}  // namespace hinterland::object
