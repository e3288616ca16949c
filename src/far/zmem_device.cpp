#include "far/zmem_device.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include "base/size.hpp"
#include "base/suggest.hpp"
#include "far/arena.hpp"
#include "far/compressor.hpp"
#include "far/slab_table.hpp"
#include "far/synchronous_channel.hpp"
#include "far/url_text.hpp"

namespace hinterland::far {
namespace {

constexpr std::uint32_t kZmemInFlightMax = 64;
// Data compresses better than this only when it is mostly zeros, and then the machine's memory is not what ends
// first.
constexpr std::uint64_t kRatioMax = 8;
// What data can be expected to be compressed to a part of: as Documentation/admin-guide/blockdev/zram.rst of Linux
// says of the size of zram.
constexpr std::uint64_t kTypicalRatio = 2;

// Where a page is: 0 nowhere; else the kind in the upper two bits and
//     filled   the 32-bit word that fills the page, in the lower half
//     stored   length in bytes << 48 (13 bits; kPageSize: not compressed), offset in the arena below
using Entry = std::uint64_t;
constexpr Entry kFilled = Entry{1} << 62, kStored = Entry{2} << 62, kKind = Entry{3} << 62;
constexpr std::uint32_t length_of(Entry entry) { return static_cast<std::uint32_t>(entry >> 48) & 0x1fff; }
constexpr std::uint64_t offset_of(Entry entry) { return entry & ((Entry{1} << 48) - 1); }
constexpr Entry make_stored(std::uint64_t offset, std::uint32_t length) {
  return kStored | Entry{length} << 48 | offset;
}
static_assert(length_of(make_stored(kSizeMax - 64, kPageSize)) == kPageSize);
static_assert(offset_of(make_stored(kSizeMax - 64, kPageSize)) == kSizeMax - 64);

// Whether one 32-bit word fills the page.
bool is_filled(const void* page, std::uint32_t* word) {
  std::memcpy(word, page, sizeof *word);
  const auto* bytes = static_cast<const unsigned char*>(page);
  // A page equal to itself shifted by four bytes repeats its first four.
  if (std::memcmp(bytes, bytes + kPageSize - 64, 64) != 0) return false;  // most pages end here
  return std::memcmp(bytes, bytes + sizeof *word, kPageSize - sizeof *word) == 0;
}

void fill(void* page, std::uint32_t word) {
  auto* bytes = static_cast<unsigned char*>(page);
  for (std::size_t at = 0; at < kPageSize; at += sizeof word) std::memcpy(bytes + at, &word, sizeof word);
}

class ZmemDevice final : public Device {
 public:
  ZmemDevice(Codec codec, SlabTable slabs, SharedMemory entries, Arena arena, std::uint64_t size_bytes)
      : codec_(codec), slabs_(std::move(slabs)), entries_(std::move(entries)), arena_(std::move(arena)) {
    info_.url = codec == Codec::lz4 ? "zmem:lz4" : "zmem:zstd";
    if (size_bytes != 0) info_.url += "?size=" + exact_size_text(size_bytes);
    const std::uint64_t holds_bytes = std::uint64_t{slabs_.slabs()} * kSlabBytes;
    info_.capacity_bytes = size_bytes != 0 ? holds_bytes : 0;
    info_.beyond_memory_bytes = std::min(holds_bytes, kTypicalRatio * machine_memory_bytes());
    info_.best_batch_pages = 16;
    info_.in_flight_max = kZmemInFlightMax;
    info_.synchronous = true;
  }

  const DeviceInfo& info() const override { return info_; }
  DeviceUsage usage() const override {
    return {bytes_of_pages(slabs_.written_pages()), arena_.stored_bytes(), arena_.stored_bytes()};
  }

  Result<std::uint32_t> allocate_slab() override {
    auto slab = slabs_.take();
    if (slab) return *slab;
    Error error = Error::make(ENOSPC, "%s: all %s are in use", info_.url.c_str(),
                              rounded_size_text(std::uint64_t{slabs_.slabs()} * kSlabBytes).c_str());
    error.remedy("give it a larger size (zmem:?size=...), or use file: or tcp:");
    return std::unexpected(error);
  }

  void release_slab(std::uint32_t slab) override {
    FarPage first{std::uint64_t{slab} * kSlabPages};
    if (!slabs_.valid(first)) return;
    for (std::uint64_t i = 0; i < kSlabPages; ++i) replace({first.value + i}, 0);
    slabs_.give_back(slab);
  }

  void discard(std::span<const FarPage> pages) override {
    for (FarPage page : pages)
      if (slabs_.valid(page)) replace(page, 0);
  }

  Result<std::unique_ptr<Channel>> open_channel() override;
  // Everything is in shared memory and nothing is locked.
  Status after_fork_in_child() override { return {}; }

  Arena& arena() { return arena_; }

  int write(FarPage page, const void* buffer, Compressor& compressor, Arena::Cursor& cursor, std::byte* scratch) {
    if (!slabs_.valid(page)) return EINVAL;
    std::uint32_t word;
    if (is_filled(buffer, &word)) {
      replace(page, kFilled | word);
      return 0;
    }
    // A step less than a page, or it is better kept as it is
    std::uint32_t length = compressor.compress(buffer, scratch, kPageSize - Arena::kStep);
    const void* bytes = scratch;
    if (length == 0) {
      bytes = buffer;
      length = kPageSize;
    }
    auto offset = arena_.allocate(length, cursor);
    if (!offset) return ENOSPC;
    std::memcpy(arena_.data(*offset), bytes, length);
    replace(page, make_stored(*offset, length));
    return 0;
  }

  int read(FarPage page, void* buffer, Compressor& compressor) {
    if (!slabs_.valid(page)) return EINVAL;
    // acquire: pairs with the release in replace()
    Entry seen = entry(page).load(std::memory_order_acquire);
    if (seen == 0) return ENODATA;  // never written: there is nothing to give, zeros least of all
    if ((seen & kKind) == kFilled) {
      fill(buffer, static_cast<std::uint32_t>(seen));
      return 0;
    }
    const std::byte* bytes = arena_.data(offset_of(seen));
    if (length_of(seen) == kPageSize) {
      std::memcpy(buffer, bytes, kPageSize);
      return 0;
    }
    return compressor.decompress(bytes, length_of(seen), buffer) ? 0 : EBADMSG;
  }

 private:
  std::atomic<Entry>& entry(FarPage page) const { return entries_.at<std::atomic<Entry>>(0)[page.value]; }

  // Puts a page somewhere else (0: nowhere) and frees where it was.
  void replace(FarPage page, Entry next) {
    if (next == 0 && entry(page).load(std::memory_order_relaxed) == 0) return;
    // release: the bytes are there before a reader follows the entry; acquire: the reverse for those to be freed
    Entry before = entry(page).exchange(next, std::memory_order_acq_rel);
    if ((before & kKind) == kStored) arena_.free(offset_of(before), length_of(before));
    if (next != 0)
      slabs_.mark_written(page);
    else
      slabs_.forget(page);
  }

  Codec codec_;
  SlabTable slabs_;
  SharedMemory entries_;
  Arena arena_;
  DeviceInfo info_;
};

class ZmemChannel final : public SynchronousChannel<kZmemInFlightMax> {
 public:
  ZmemChannel(ZmemDevice& device, std::unique_ptr<Compressor> compressor)
      : device_(device), compressor_(std::move(compressor)) {}
  ~ZmemChannel() override { device_.arena().give_up(cursor_); }

 private:
  int serve(const Request& request) override {
    if (!request.whole()) return EINVAL;
    if (request.operation == Operation::read) return device_.read(request.page, request.buffer, *compressor_);
    return device_.write(request.page, request.buffer, *compressor_, cursor_, scratch_.data());
  }

  ZmemDevice& device_;
  std::unique_ptr<Compressor> compressor_;
  Arena::Cursor cursor_;
  std::array<std::byte, kPageSize> scratch_;
};

Result<std::unique_ptr<Channel>> ZmemDevice::open_channel() {
  auto compressor = Compressor::create(codec_);
  if (!compressor) return std::unexpected(compressor.error());
  return std::make_unique<ZmemChannel>(*this, std::move(*compressor));
}

Result<std::unique_ptr<Device>> open_with(Codec codec, std::uint64_t size_bytes, std::uint32_t slabs) {
  auto table = SlabTable::create(slabs);
  if (!table) return std::unexpected(table.error());
  auto entries = SharedMemory::reserve(std::size_t{slabs} * kSlabPages * sizeof(Entry), "zmem:");
  if (!entries) return std::unexpected(entries.error());
  // Twice what the pages could take: room for blocks that are partly empty.
  auto arena = Arena::create(2 * std::min(std::uint64_t{slabs} * kSlabBytes, machine_memory_bytes()) + kSlabBytes);
  if (!arena) return std::unexpected(arena.error());
  return std::make_unique<ZmemDevice>(codec, std::move(*table), std::move(*entries), std::move(*arena), size_bytes);
}

}  // namespace

Result<ZmemSettings> parse_zmem(std::string_view rest) {
  auto size = take_size(rest, "zmem");
  if (!size) return std::unexpected(size.error());
  ZmemSettings settings{.size_bytes = *size};
  if (rest == "zstd")
    settings.codec = Codec::zstd;
  else if (!rest.empty() && rest != "lz4")
    return refuse_url("zmem: has no compression " + quoted(rest), suggestion(rest, {"lz4", "zstd"}));
  return settings;
}

Result<std::unique_ptr<Device>> open_zmem_device(const ZmemSettings& settings) {
  auto [codec, size_bytes] = settings;
  std::uint32_t slabs = slabs_for_memory(size_bytes != 0 ? size_bytes : kRatioMax * machine_memory_bytes());
  auto device = open_with(codec, size_bytes, slabs);
  // Unlimited means as much as can be had, as when an address space limit is set.
  while (!device && size_bytes == 0 && slabs > 1) device = open_with(codec, size_bytes, slabs /= 2);
  return device;
}

}  // namespace hinterland::far
