// Far objects, packed into pages of any far device.
//
// A block is 4 KiB of far addresses for objects of at most kPackedMax bytes. A pointer's word names a block and a
// place in it, for good: what moves is where the block's bytes lie. At first a block has a page of its own. When
// enough of what is on a page is dead, the cleaner packs what lives in several blocks onto one page: `kept` says
// which of a block's units it took along, so a unit is found by counting those before it. No pointer is touched for
// that, and none has to be found. The two halves of a block go their own ways, unless an object lies across the
// middle: small ones never do.
//
// Where the device reads parts of pages (DeviceInfo::ranges) an object is read alone, without the page around it,
// whose checksum then says nothing. So there each object has a check of its own, in 8 bytes in front of it: a hash of
// its bytes, seeded with its block, its place in it and its size. The block's part of the seed is a number that was
// never used before: also what lay on that page, or at that place, at another time has another check. Object and
// check are the object's record, which is placed, moved and freed as one; a location is the place of the record, and
// a number of units, here as elsewhere, is that of the object. A record that came alone and is wrong is looked for
// once more on its page, by the page's checksum. Whether it is worth reading one alone: page_or_part.hpp.
//
// An object larger than kPackedMax has pages of its own, which a descriptor names.
//
// A page's record counts who needs it: the halves on it, and reads under way. At 0 the page is given back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "far/device.hpp"
#include "far/space.hpp"
#include "object/far_block.hpp"
#include "object/page_or_part.hpp"
#include "object/port.hpp"
#include "object/words.hpp"
#include "paging/page/copy_mark.hpp"

namespace hinterland::object {

struct LargeObject {
  std::uint64_t bytes = 0;
  std::uint32_t alignment = 0;  // class
  bool typed = false;           // the last unit is the type
  std::vector<far::FarPage> pages;
  LargeObject *before = nullptr, *next = nullptr;  // of all that there are: guarded by FarLog::large_mutex_
};

class FarLog {
 public:
  static Result<std::unique_ptr<FarLog>> create(std::unique_ptr<far::Device> device, std::uint64_t far_bytes_max);
  ~FarLog();
  FarLog(const FarLog&) = delete;
  FarLog& operator=(const FarLog&) = delete;

  // Far pages that who reads objects one by one keeps, of each device that is not memory.
  static constexpr std::uint32_t kReaderPages = 4;

  far::Device& device() { return *device_; }

  // Blocks while it is read. 0 or errno. `units` as they were placed.
  int read(Location location, std::uint32_t units, std::byte* to);
  struct Wanted {
    Location location;
    std::uint32_t units;
    std::byte* to;
    int error;  // the answer
  };
  // Many, with as few waits as the device allows; each page is read once, or several parts of it.
  void read_many(std::span<Wanted> wanted);
  int read_large(const LargeObject& object, std::byte* to);

  // Dead.
  void free(Location location, std::uint32_t units);
  void free_large(LargeObject* object);

  // Packs what lives on pages that are mostly dead onto others, where dead bytes are more than a fifth of what is
  // live. At most one page is written a call. True when it is worth calling again. One thread at a time.
  bool clean(Port& port);

  // For objects of at most kPackedMax bytes. The second: those that were read without their page.
  std::uint64_t pages_read() const { return pages_read_.load(std::memory_order_relaxed); }
  std::uint64_t parts_read() const { return parts_read_.load(std::memory_order_relaxed); }
  std::uint64_t pages_held() const { return pages_held_.load(std::memory_order_relaxed); }
  // Units of a record beyond the object's.
  std::uint32_t check_units() const { return check_units_; }
  // By this process and those that it shares them with.
  std::uint64_t pages_in_use() const { return space_->pages_in_use(); }
  std::uint64_t live_bytes() const { return live_units_.load(std::memory_order_relaxed) * kUnit; }
  // As live_bytes(), with large objects.
  std::uint64_t all_live_bytes() const { return live_bytes() + large_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t large_pages() const { return large_pages_.load(std::memory_order_relaxed); }

  // --- fork: nobody calls anything else between the first and one of the others
  // Counts every far page once more, for the child.
  void before_fork();
  void fork_failed() { space_->cancel_child(); }
  // Connects anew. What fails then is what the device says of every request; errors are those of the device itself.
  Status after_fork_in_child();
  // A copy of the process that no fork of ours has made. Everything on the device is its parent's: it reads nothing,
  // and gives nothing back.
  bool is_copy() const { return copy_mark_.is_copy(); }
  // Of the device and its space, by a thread that lives as long as the process: the first for once. How long until
  // the next is due, in ns. Not during a fork.
  void enter_process() { space_->enter_process(); }
  void wait_until_entered() { space_->wait_until_entered(); }
  std::uint64_t keep_house();

  Result<std::unique_ptr<Port>> open_port() { return Port::open(*device_); }

 private:
  friend class Arrivals;
  friend class FarWriter;
  struct Pin {
    PageRecord* record = nullptr;
    std::uint32_t unit = 0;  // on the page
    std::uint64_t seed = 0;  // of the record's check, but for its size
  };
  // Where a record lies on its page.
  struct Part {
    std::uint32_t offset, bytes;
  };
  struct Moved {
    std::uint64_t block;
    PageRecord* from;
    UnitMap kept;
    std::uint32_t base_unit;
    std::uint32_t first, halves;  // which half, or from the first on both
  };
  explicit FarLog(std::unique_ptr<far::Device> device);
  Block& block(std::uint64_t number) { return blocks_[number]; }
  void add_large(LargeObject* object);
  void give_back(std::span<const far::FarPage> pages);
  std::uint64_t new_block(far::FarPage page);
  void seal(std::uint64_t number);
  void retire_locked(std::uint64_t number, Block& block, Block::Half& half);
  Pin pin(Location location);
  void unpin(PageRecord* record, std::uint32_t count = 1);
  // Unit of the block, and the block's own part.
  static std::uint64_t seed_of(const Block& block, std::uint32_t unit) {
    return block.seed | std::uint64_t{unit} << kUnitBits;
  }
  static std::uint64_t check_of(std::uint64_t seed, std::uint32_t units, const std::byte* object);
  Part part_of(const Pin& pin, std::uint32_t units) const {
    return {static_cast<std::uint32_t>(pin.unit * kUnit), static_cast<std::uint32_t>((check_units_ + units) * kUnit)};
  }
  // Copies the object out of a record that was read. 0, or EBADMSG: it is not this record.
  int take(const Pin& pin, std::uint32_t units, const std::byte* record, std::byte* to) const;
  void count_read(std::uint64_t pages, std::uint64_t parts, std::uint64_t bytes);
  // A port for reads, and the pages that its first pages hold, so that neighbours are read once: also where objects
  // that were made together lie on several pages by now, for some of them have changed since.
  struct Reader {
    std::unique_ptr<Port> port;
    std::array<PageRecord*, kReaderPages> holds{};
    std::uint32_t next = 0;  // to be read over
    PageOrPart<8> choice{};
  };
  int read_with(Reader& reader, const Pin& pin, std::uint32_t units, std::byte* to);
  int read_part(Port& port, std::uint32_t slot, const Pin& pin, std::uint32_t units, std::byte* to);
  int read_page(Reader& reader, const Pin& pin, std::uint32_t units, std::byte* to);
  void read_together(Port* port, int failure, std::span<Wanted> wanted);
  Reader borrow_reader(int* error);
  void return_reader(Reader reader);
  void forget(Reader& reader);
  bool worth_cleaning() const;
  std::uint32_t gather_block(std::uint64_t number, Port& port, std::byte* to, std::uint32_t used,
                             std::vector<Moved>* moved);
  bool choose(Moved* move, Block* as_it_is);
  std::uint32_t gather(std::uint64_t number, std::uint32_t first, std::uint32_t halves, Port& port, std::byte* to,
                       std::uint32_t used, std::vector<Moved>* moved);
  void publish(PageRecord* record, const std::vector<Moved>& moved);

  // A record's check is seeded with: number of the block << 2 * kUnitBits, unit << kUnitBits, units.
  static constexpr unsigned kUnitBits = 9;
  static_assert(kBlockUnits <= 1 << kUnitBits && kPackedMax / kUnit + 1 < 1 << kUnitBits);
  void begin_seeds();

  std::unique_ptr<far::Device> device_;
  std::uint32_t check_units_ = 0;
  std::unique_ptr<far::Space> space_;
  Block* blocks_ = nullptr;
  std::uint64_t blocks_max_ = 0;
  CopyMark copy_mark_;
  std::uint64_t forks_ = 0;
  std::atomic<std::uint64_t> pages_held_{0}, pages_read_{0}, parts_read_{0}, live_units_{0}, large_pages_{0},
      large_bytes_{0};

  Mutex numbers_mutex_;  // of these three
  std::vector<std::uint64_t> free_numbers_;
  std::uint64_t next_seed_ = 0;    // of blocks
  std::uint64_t next_number_ = 1;  // relaxed reads by the cleaner, through numbers()
  std::uint64_t hand_ = 1;         // the cleaner's, as is the next
  std::uint64_t fullest_ = 0;      // a page with more live units is not cleaned

  Mutex large_mutex_;  // of the next, and of its links
  LargeObject* large_ = nullptr;

  Mutex readers_mutex_;
  std::vector<Reader> readers_;  // those that nobody uses now
};

}  // namespace hinterland::object
