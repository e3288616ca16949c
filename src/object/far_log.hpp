// Far objects, packed into pages of any far device.
//
// A block is 4 KiB of far addresses for objects of at most kPackedMax bytes. A pointer's word names a block and a
// place in it, for good: what moves is where the block's bytes lie. At first a block has a page of its own. When
// enough of what is on a page is dead, the cleaner packs what lives in several blocks onto one page: `kept` says
// which of a block's units it took along, so a unit is found by counting those before it. No pointer is touched for
// that, and none has to be found.
//
// An object larger than kPackedMax has pages of its own, which a descriptor names.
//
// A page's record counts who needs it: the blocks on it, and reads under way. At 0 the page is given back.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "far/device.hpp"
#include "far/space.hpp"
#include "object/port.hpp"
#include "object/words.hpp"

namespace hinterland::object {

inline constexpr std::uint32_t kBlockUnits = kPageSize / kUnit;
inline constexpr std::size_t kPackedMax = kPageSize / 2;
using UnitMap = std::array<std::uint64_t, kBlockUnits / 64>;

struct PageRecord {
  far::FarPage page;
  std::atomic<std::uint32_t> holders;
  std::atomic<std::uint32_t> live_units;  // of all blocks on it
};

// All zeros: unused. Guarded by `held`.
struct Block {
  std::atomic<std::uint32_t> held;  // a spin lock: for some instructions
  std::uint16_t live_units;
  std::uint16_t base_unit;  // on the page, of the first kept unit
  bool open;                // its page is not written yet
  PageRecord* record;
  UnitMap* kept;  // nullptr: all of it, in place
  UnitMap live;
};

struct LargeObject {
  std::uint64_t bytes = 0;
  std::uint32_t alignment = 0;  // class
  bool typed = false;           // the last unit is the type
  std::vector<far::FarPage> pages;
};

class FarLog {
 public:
  static Result<std::unique_ptr<FarLog>> create(std::unique_ptr<far::Device> device, std::uint64_t far_bytes_max);
  ~FarLog();
  FarLog(const FarLog&) = delete;
  FarLog& operator=(const FarLog&) = delete;

  far::Device& device() { return *device_; }

  // Blocks while it is read. 0 or errno. `units` as they were placed.
  int read(Location location, std::uint32_t units, std::byte* to);
  struct Wanted {
    Location location;
    std::uint32_t units;
    std::byte* to;
    int error;  // the answer
  };
  // Many, with as few waits as the device allows; each page is read once.
  void read_many(std::span<Wanted> wanted);
  int read_large(const LargeObject& object, std::byte* to);

  // Dead.
  void free(Location location, std::uint32_t units);
  void free_large(LargeObject* object);

  // Packs what lives on pages that are mostly dead onto others, where dead bytes are more than a fifth of what is
  // live. At most one page is written a call. True when it is worth calling again. One thread at a time.
  bool clean(Port& port);

  std::uint64_t pages_held() const { return pages_held_.load(std::memory_order_relaxed); }
  std::uint64_t live_bytes() const { return live_units_.load(std::memory_order_relaxed) * kUnit; }
  std::uint64_t large_pages() const { return large_pages_.load(std::memory_order_relaxed); }

  // This is a forked child's: nothing is given back to the device any more, for it is the parent's.
  void is_copy() { copy_ = true; }

  Result<std::unique_ptr<Port>> open_port() { return Port::open(*device_); }

 private:
  friend class FarWriter;
  struct Pin {
    PageRecord* record;
    std::uint32_t unit;  // on the page
  };
  struct Moved {
    std::uint64_t block;
    PageRecord* from;
    UnitMap kept;
    std::uint32_t base_unit;
  };
  explicit FarLog(std::unique_ptr<far::Device> device) : device_(std::move(device)) {}
  Block& block(std::uint64_t number) { return blocks_[number]; }
  std::uint64_t new_block(far::FarPage page);
  void seal(std::uint64_t number);
  void retire_locked(std::uint64_t number, Block& block);
  Pin pin(Location location);
  void unpin(PageRecord* record, std::uint32_t count = 1);
  int read_page(const Pin& pin, std::uint32_t units, std::byte* to);
  // A port for reads, and the page that its first page holds, so that neighbours are read once.
  struct Reader {
    std::unique_ptr<Port> port;
    PageRecord* holds = nullptr;
  };
  Reader borrow_reader(int* error);
  void return_reader(Reader reader);
  void forget(Reader& reader);
  bool worth_cleaning() const;
  std::uint32_t gather(std::uint64_t number, Port& port, std::byte* to, std::uint32_t used,
                       std::vector<Moved>* moved);
  void publish(PageRecord* record, const std::vector<Moved>& moved);

  std::unique_ptr<far::Device> device_;
  std::unique_ptr<far::Space> space_;
  Block* blocks_ = nullptr;
  std::uint64_t blocks_max_ = 0;
  bool copy_ = false;  // set while there is one thread
  std::atomic<std::uint64_t> pages_held_{0}, live_units_{0}, large_pages_{0};

  Mutex numbers_mutex_;  // of these two
  std::vector<std::uint64_t> free_numbers_;
  std::uint64_t next_number_ = 1;  // relaxed reads by the cleaner, through numbers()
  std::uint64_t hand_ = 1;         // the cleaner's, as is the next
  std::uint64_t fullest_ = 0;      // a page with more live units is not cleaned

  Mutex readers_mutex_;
  std::vector<Reader> readers_;  // those that nobody uses now
};

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
  log_.large_pages_.fetch_add(object->pages.size(), std::memory_order_relaxed);
  if (wanted && error_ == 0) return object.release();
  log_.free_large(object.release());
  return nullptr;
}

}  // namespace hinterland::object
