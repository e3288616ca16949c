// The far devices of a process: the one that it was started with, and those that its regions name. Each has its
// space; a page's number says which of them holds it (FarPage::device()), so that everybody else goes by the page.
//
// Device 0 is the program's. Others are added, at most kDevicesMax in all, and stay as long as the process: pages may
// have been moved from one mapping to another (mremap), and forked children hold pages too. Each keeps its number in
// forked children; what they add themselves is their own.
//
// A process with one device pays one comparison a call for there being several.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "far/device.hpp"
#include "far/ready_list.hpp"
#include "far/space.hpp"

namespace hinterland::far {

class Channels;

class Devices {
 public:
  // `url` as the user wrote it: the device is found by it, and by the one that it says itself.
  explicit Devices(std::unique_ptr<Device> first, std::string url = {});
  // Tables for so many bytes, for the first device now and for each that is added. (Space::create)
  Status create_space(std::uint64_t bytes_max);

  // --- at any time, from any thread
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }  // pairs with add()
  const DeviceInfo& info(std::uint32_t device) const { return entries_[device].device->info(); }
  bool synchronous(std::uint32_t device) const { return entries_[device].synchronous; }
  bool direct(std::uint32_t device) const { return entries_[device].direct; }
  // Changes once at most, from true to false, in add(). relaxed: who relies on it belongs to those that add() keeps
  // still, by locks.
  bool all_synchronous() const { return all_synchronous_.load(std::memory_order_relaxed); }
  // As Device::lost().
  int lost(std::uint32_t device) const { return entries_[device].device->lost(); }
  bool some_lost() const;
  bool all_lost() const;
  std::uint64_t capacity_bytes() const;       // of all together; 0: not limited
  std::uint64_t beyond_memory_bytes() const;  // of all together
  DeviceUsage usage() const;                  // of all together
  // As Device::leave() and stay(); callable in signal handlers.
  void leave();
  void stay();
  bool settle();  // as Device::settle()
  // As Device::operations() and compute(); the pages are all of this device.
  std::uint32_t operations(std::uint32_t device) const { return entries_[device].device->operations(); }
  int compute(std::uint32_t device, const hl_computation& what, std::span<const Piece> pieces, std::byte* results,
              bool* done) {
    return entries_[device].device->compute(what, pieces, results, done);
  }

  // As Device::has_operators() and apply().
  bool have_operators() const;  // some device
  bool has_operators(std::uint32_t device) const { return entries_[device].device->has_operators(); }
  int apply(std::uint32_t device, const OperatorName& which, const std::byte* argument, std::span<const Piece> pieces,
            std::byte* results, bool* done) {
    return entries_[device].device->apply(which, argument, pieces, results, done);
  }

  // As Device::composes() and compose().
  bool compose_pages() const;  // some device
  bool composes(std::uint32_t device) const { return entries_[device].device->composes(); }
  int compose(std::uint32_t device, std::uint32_t element_bytes, std::span<const ComposedPage> pages,
              std::span<const ComposedPart> parts, bool* done) {
    return entries_[device].device->compose(element_bytes, pages, parts, done);
  }
  // As Device::patches() and patch().
  bool patch_pages() const;  // some device
  bool patches(std::uint32_t device) const { return entries_[device].device->patches(); }
  int patch(std::uint32_t device, std::uint32_t element_bytes, std::span<const PatchedPage> pages,
            std::span<const hl_patch> patches, bool* done) {
    return entries_[device].device->patch(element_bytes, pages, patches, done);
  }

  // Pages, whichever devices they lie on. As Space's calls of the same names.
  std::size_t allocate(std::uint32_t device, std::span<FarPage> out, int* error);
  void retain(std::span<const FarPage> pages);
  void release(std::span<const FarPage> pages);
  void borrow(std::span<const FarPage> pages);
  void give_back(std::span<const FarPage> pages);
  const void* direct_page(FarPage page) const {
    return entries_[page.device()].device->direct_page(page.on_device());
  }
  std::uint64_t pages_in_use() const;
  bool is_shared() const;

  // --- fork, as Space and Device say
  void begin_child();
  void cancel_child();
  Status after_fork_in_child();
  // By the thread that lives as long as the process: again after each add().
  void enter_process();
  void wait_until_entered();
  bool reap();

  // --- one thread at a time; not during a fork
  std::optional<std::uint32_t> find(const std::string& url) const;
  // One more device, of which every one of the channels that are open gets its channel too: nobody may use any of
  // them meanwhile. Its number; or why not, and then nothing has changed. Blocks as opening channels does.
  Result<std::uint32_t> add(std::unique_ptr<Device> device, std::string url);

  // For a thread; must not outlive this. Blocks as opening channels does.
  Result<std::unique_ptr<Channels>> open_channels();

 private:
  friend class Channels;
  struct Entry {
    std::unique_ptr<Device> device;
    std::unique_ptr<Space> space;
    std::string url;
    bool synchronous = false, direct = false;
  };
  std::span<const Entry> entries() const { return std::span(entries_).first(count()); }
  void set(std::uint32_t index, std::unique_ptr<Device> device, std::string url);
  void closed(Channels* channels);

  std::array<Entry, kDevicesMax> entries_;  // the first count_ of them never change
  std::atomic<std::uint32_t> count_{0};
  std::atomic<bool> all_synchronous_{true};
  std::uint64_t space_bytes_ = 0;
  std::uint32_t entered_ = 0;    // of the thread that calls enter_process()
  Mutex mutex_;                  // taken by those who open and close channels; nothing on the fault path
  std::vector<Channels*> open_;  // guarded by mutex_
};

// A thread's channels, one to each device, used as one: what is said of far::Channel holds for it. Requests on a
// device that is lost complete with its error, so that the others' go on, unless it is the only one there is.
class Channels {
 public:
  ~Channels();
  int submit(std::span<const Request> requests) {
    return count_ == 1 ? channels_[0]->submit(requests) : submit_apart(requests);
  }
  int poll(std::span<Completion> completions) {
    return count_ == 1 ? channels_[0]->poll(completions) : poll_all(completions);
  }
  void wait(std::uint64_t timeout_ns);
  std::uint32_t in_flight() const;
  // What poll(2) can wait for instead of wait(), as Channel::event_descriptor() says. Returns how many are written.
  std::size_t events(std::span<pollfd, kDevicesMax> out) const;

 private:
  friend class Devices;
  explicit Channels(Devices& devices) : devices_(devices) {}
  Status open(std::uint32_t device);
  int submit_apart(std::span<const Request> requests);
  int submit_stretch(std::span<const Request> requests);
  int poll_all(std::span<Completion> completions);

  static constexpr std::uint32_t kFailedMax = 64;

  Devices& devices_;
  std::uint32_t count_ = 0;  // of the devices, as far as their owner has been told
  std::uint32_t next_ = 0;   // the device that poll() begins with: none is passed over for good
  std::array<std::unique_ptr<Channel>, kDevicesMax> channels_;
  ReadyList<kFailedMax> failed_;  // of lost devices
};

}  // namespace hinterland::far
