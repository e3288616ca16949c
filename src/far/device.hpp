// Far devices behind one contract: where far memory is (docs/devices.md). Every device passes the shared conformance
// suite in conformance_test.hpp.
//
// Space is taken in slabs of kSlabPages pages. A page in a slab is written once after it was allocated or
// discarded, and then read any number of times: the paging room never overwrites a live page, so devices need no
// ordering between requests on the same page.
//
// Requests go through channels. A channel belongs to one thread at a time and needs no locks; a device may have many.
// Failure is a value: an errno in the completion, or from the call. Nothing here throws.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "far/operator_name.hpp"
#include "hinterland/offload_pages.hpp"

namespace hinterland::far {

inline constexpr std::uint32_t kSlabPages = 4096;  // 16 MiB: one round trip a slab is then negligible
inline constexpr std::size_t kSlabBytes = bytes_of_pages(kSlabPages);

// A page on a device: slab number (device-wide, dense from 0) * kSlabPages + page in the slab. 40 bits, of which a
// process that uses several devices keeps the upper three for the device (devices.hpp). A device, its space and its
// channels know their pages by the rest: there, device() is 0.
struct FarPage {
  static constexpr unsigned kBits = 40, kDeviceBits = 3, kDeviceShift = kBits - kDeviceBits;
  std::uint64_t value = 0;
  constexpr std::uint32_t slab() const { return static_cast<std::uint32_t>(value / kSlabPages); }
  constexpr std::uint32_t page_in_slab() const { return static_cast<std::uint32_t>(value % kSlabPages); }
  constexpr std::uint32_t device() const { return static_cast<std::uint32_t>(value >> kDeviceShift); }
  constexpr FarPage on_device() const { return {value & ((std::uint64_t{1} << kDeviceShift) - 1)}; }
  constexpr FarPage of_device(std::uint32_t device) const { return {value | std::uint64_t{device} << kDeviceShift}; }
  friend constexpr auto operator<=>(FarPage, FarPage) = default;
};
inline constexpr std::uint32_t kDevicesMax = 1u << FarPage::kDeviceBits;
inline constexpr std::uint32_t kDeviceSlabsMax =
    (std::uint64_t{1} << FarPage::kDeviceShift) / kSlabPages;  // of a device
static_assert(FarPage{kSlabPages + 5}.of_device(kDevicesMax - 1).device() == kDevicesMax - 1);
static_assert(FarPage{kSlabPages + 5}.of_device(kDevicesMax - 1).on_device() == FarPage{kSlabPages + 5});
static_assert(FarPage{UINT64_MAX >> (64 - FarPage::kDeviceShift)}.of_device(kDevicesMax - 1).value >>
                  FarPage::kBits ==
              0);

struct DeviceInfo {
  std::string url;                   // as a user would write it, without secrets
  std::uint64_t capacity_bytes = 0;  // 0: not limited
  // Of what it may hold, what does not have to fit into this machine's memory (ADR 0082).
  std::uint64_t beyond_memory_bytes = 0;
  std::uint32_t best_batch_pages = 1;  // requests that are worth submitting together
  std::uint32_t in_flight_max = 64;    // requests one channel takes before it must be polled
  bool synchronous = false;            // submit() completes everything before it returns; event_descriptor() is -1
  bool direct = false;                 // direct_page() gives memory that can be copied from
  bool ranges = false;                 // a read may name a part of a page
};

struct DeviceUsage {
  std::uint64_t used_bytes = 0;    // pages written and not discarded
  std::uint64_t stored_bytes = 0;  // what they really take (compression)
  std::uint64_t here_bytes = 0;    // of that, memory of this machine
};

enum class Operation : std::uint8_t { read, write };

struct Request {
  Operation operation;
  FarPage page;
  void* buffer;       // kPageSize bytes of local memory; must stay valid until the completion
  std::uint64_t tag;  // given back in the completion
  // Of a read, where info().ranges: these bytes of the page alone, and as many at `buffer`. They come without any
  // check that they are what was written there, which is made of whole pages only: who asks for a part has to be able
  // to tell. Anything else than a part of the page is refused with EINVAL.
  std::uint16_t offset = 0, bytes = kPageSize;

  constexpr bool whole() const { return offset == 0 && bytes == kPageSize; }
  constexpr bool valid() const {
    return whole() || (operation == Operation::read && bytes != 0 && std::size_t{offset} + bytes <= kPageSize);
  }
};

struct Completion {
  std::uint64_t tag;
  int error;  // 0, or errno: EIO, EBADMSG (checksum), ENOSPC, ETIMEDOUT, ECONNRESET, ...
};

// Elements on a page, for Device::compute() and apply(). Within the page, and a whole number of them.
struct Piece {
  FarPage page;
  std::uint16_t offset, bytes;
  std::uint64_t word = 0;  // of apply(): what the operator is told of this piece
};

// Elements for a page that is composed, for Device::compose(). Within the source page, and a whole number of them.
struct ComposedPart {
  FarPage page;
  std::uint16_t offset, bytes;
  // Which elements: a bit each, the first in the lowest bit of the first byte, and 0 behind the last; kPageSize /
  // element_bytes bits of local memory. nullptr: all of them, which then may be any bytes.
  const std::byte* mask = nullptr;
};
// A page that holds what parts[first] to parts[first + count - 1] choose, one after the other: kPageSize bytes in
// all.
struct ComposedPage {
  FarPage page;
  std::uint32_t first, count;
};

// A page that holds what `from` holds, or, where that is none, `fill` again and again; and then what patches[first]
// to patches[first + count - 1] put into it, one after the other, within the page.
struct PatchedPage {
  FarPage page;
  std::optional<FarPage> from;
  std::uint64_t fill;
  std::uint32_t first, count;
};

class Channel {
 public:
  virtual ~Channel() = default;
  // Takes requests in order; returns how many it took (0 when full: poll first) or -errno when the device is lost.
  // Never blocks. A request taken always completes, also when the device is lost (with its error).
  virtual int submit(std::span<const Request> requests) = 0;
  // Gathers completions, in any order; drives transfers that need driving. Never blocks. Returns how many.
  virtual int poll(std::span<Completion> completions) = 0;
  // Sleeps until poll() may find something, at most timeout_ns. Spins first where that pays.
  virtual void wait(std::uint64_t timeout_ns) = 0;
  // A descriptor that becomes readable when poll() may find something; -1 for synchronous devices. May change
  // after a reconnect, and may be readable in vain until it is asked for: ask again before each sleep.
  virtual int event_descriptor() const = 0;
  virtual std::uint32_t in_flight() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual DeviceUsage usage() const = 0;

  // Thread-safe; may block for one round trip. ENOSPC when full. Slab numbers of released slabs are used again.
  virtual Result<std::uint32_t> allocate_slab() = 0;
  // These two wait for nobody: where the device cannot be told now it is told later, before the next allocate_slab()
  // at the latest.
  virtual void release_slab(std::uint32_t slab) = 0;
  // The contents of these pages are no longer needed: space goes back at once. May be lazy only within a slab that
  // stays allocated and only where telling the device costs a system call or a message a page.
  virtual void discard(std::span<const FarPage> pages) = 0;
  // Goes on with what the two left for later. Never blocks. True while it is to be called again, some milliseconds
  // later.
  virtual bool settle() { return false; }

  virtual Result<std::unique_ptr<Channel>> open_channel() = 0;

  // Memory of a written page, readable until it is discarded; nullptr unless info().direct.
  virtual const void* direct_page(FarPage) const { return nullptr; }

  // Bit n: compute() does hl_computation's operation n (hinterland/offload_pages.hpp). Never changes.
  virtual std::uint32_t operations() const { return 0; }
  // Computes on pages where they are; nothing is changed. The result of piece i goes to the i-th place of `results`,
  // or, of hl::far::detail::spread, is added to the 256 counts there, and done[i] is set. Pieces that are not done
  // are the caller's to read and compute: a page was never written, or differs from what was written. 0, or the
  // errno that ended it, with some pieces done. Of operations() only, with a valid `what`; the pages must stay
  // written meanwhile. Thread-safe. Blocks for as long as the device takes, within its time limit for each answer.
  virtual int compute(const hl_computation& what, std::span<const Piece> pieces, std::byte* results, bool* done) {
    static_cast<void>(what), static_cast<void>(pieces), static_cast<void>(results), static_cast<void>(done);
    return ENOTSUP;
  }

  // Whether there are operators of the device's owner; which, is found out by asking. Never changes.
  virtual bool has_operators() const { return false; }
  // As compute(), by an operator: result_bytes for each piece. Nothing is done where the device has no such operator.
  // `argument`: argument_bytes bytes of local memory.
  virtual int apply(const OperatorName& which, const std::byte* argument, std::span<const Piece> pieces,
                    std::byte* results, bool* done) {
    static_cast<void>(which), static_cast<void>(argument), static_cast<void>(pieces), static_cast<void>(results);
    static_cast<void>(done);
    return ENOTSUP;
  }

  // Whether compose() does anything. Never changes.
  virtual bool composes() const { return false; }
  // Writes pages that were allocated and hold nothing, each out of parts of written ones, and sets done[i] for those
  // that are written. What is not done holds nothing, and is the caller's to discard: a source was never written, or
  // differs from what was written, or there are more parts than fit in one request. 0, or the errno that ended it,
  // with some pages done. `element_bytes`: 4 or 8, and then all parts have masks; or 0, and none has. Sources must
  // stay written meanwhile. Thread-safe. Blocks as compute().
  virtual int compose(std::uint32_t element_bytes, std::span<const ComposedPage> pages,
                      std::span<const ComposedPart> parts, bool* done) {
    static_cast<void>(element_bytes), static_cast<void>(pages), static_cast<void>(parts), static_cast<void>(done);
    return ENOTSUP;
  }

  // Whether patch() does anything. Never changes.
  virtual bool patches() const { return false; }
  // Writes pages that were allocated and hold nothing: what others hold, or what fills them, with elements put into
  // it. As compose() in all else, done[] included. `element_bytes`: 4 or 8.
  virtual int patch(std::uint32_t element_bytes, std::span<const PatchedPage> pages,
                    std::span<const hl_patch> patches, bool* done) {
    static_cast<void>(element_bytes), static_cast<void>(pages), static_cast<void>(patches), static_cast<void>(done);
    return ENOTSUP;
  }

  // In a forked child, before anything else: parent and child share the slabs (slots are counted by Space); the
  // device makes its connections and locks its own. Channels of the parent are dropped without being used.
  virtual Status after_fork_in_child() = 0;

  // The process is about to end, or to become another program: a device that somebody keeps may be told, so that it
  // frees what is this process's at once. Everything works on as before. stay(): it goes on after all. Best effort;
  // callable in a signal handler; takes some milliseconds at most.
  virtual void leave() {}
  virtual void stay() {}

  // 0 while the device works; else the errno for which it was given up. Then every request fails at once.
  virtual int lost() const { return 0; }

  // Descriptors that the program must not close: writes at most `max` of them, returns how many. Thread-safe. Numbers
  // stay the same over reconnects; they change when channels come and go, and in after_fork_in_child().
  virtual std::size_t descriptors(int* out, std::size_t max) const {
    static_cast<void>(out), static_cast<void>(max);
    return 0;
  }
};

struct DeviceSettings {
  std::string key_file;                      // pre-shared key for tcp:, "" for none
  std::uint64_t timeout_ns = 5'000'000'000;  // a server silent for longer is gone
};

// Opens the device that `url` names: mem:, zmem:[lz4|zstd], file:PATH[?size=], tcp://HOST:PORT,
// sim:latency=5us,bandwidth=100Gbps,inner=URL. Errors name the scheme and the nearest valid one.
Result<std::unique_ptr<Device>> open_device(const std::string& url, const DeviceSettings& settings);

}  // namespace hinterland::far
