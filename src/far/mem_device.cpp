#include "far/mem_device.hpp"

#include <cerrno>
#include <cstring>

#include "base/size.hpp"
#include "far/slab_table.hpp"
#include "far/stream_page.hpp"
#include "far/synchronous_channel.hpp"
#include "far/url_text.hpp"

namespace hinterland::far {
namespace {

constexpr std::uint32_t kMemInFlightMax = 256;
// Punching a hole costs about as much as copying this many pages; shorter runs keep their memory until their slab is
// released, or until they are written again, which is soon in a slab that is in use.
constexpr std::uint32_t kPunchPagesMin = 64;

class MemDevice final : public Device {
 public:
  MemDevice(SharedMemory memory, SlabTable slabs, std::uint64_t size_bytes)
      : memory_(std::move(memory)), slabs_(std::move(slabs)) {
    info_.url = size_bytes != 0 ? "mem:?size=" + exact_size_text(size_bytes) : "mem:";
    info_.capacity_bytes = size_bytes != 0 ? std::uint64_t{slabs_.slabs()} * kSlabBytes : 0;
    info_.best_batch_pages = 32;
    info_.in_flight_max = kMemInFlightMax;
    info_.synchronous = true;
    info_.direct = info_.ranges = true;
  }

  const DeviceInfo& info() const override { return info_; }
  DeviceUsage usage() const override {
    std::uint64_t bytes = bytes_of_pages(slabs_.written_pages());
    return {bytes, bytes, bytes};
  }

  Result<std::uint32_t> allocate_slab() override {
    auto slab = slabs_.take();
    if (slab) return *slab;
    Error error = Error::make(ENOSPC, "mem: all %s are in use", rounded_size_text(memory_.bytes()).c_str());
    error.remedy("give it a larger size (mem:?size=...) or use zmem: or file:");
    return std::unexpected(error);
  }

  void release_slab(std::uint32_t slab) override {
    if (!slabs_.valid({std::uint64_t{slab} * kSlabPages})) return;
    memory_.punch(std::size_t{slab} * kSlabBytes, kSlabBytes);
    slabs_.give_back(slab);
  }

  void discard(std::span<const FarPage> pages) override {
    for (std::size_t at = 0; at < pages.size();) {
      std::size_t run = 1;
      while (at + run < pages.size() && pages[at + run].value == pages[at].value + run) ++run;
      for (std::size_t i = at; i < at + run; ++i)
        if (slabs_.valid(pages[i])) slabs_.forget(pages[i]);
      if (run >= kPunchPagesMin && slabs_.valid(pages[at]) && slabs_.valid(pages[at + run - 1]))
        memory_.punch(bytes_of_pages(pages[at].value), bytes_of_pages(run));
      at += run;
    }
  }

  Result<std::unique_ptr<Channel>> open_channel() override;
  const void* direct_page(FarPage page) const override { return address(page); }
  // Everything is in shared memory and nothing is locked.
  Status after_fork_in_child() override { return {}; }

  // Does one request; errno or 0.
  int serve(const Request& request) {
    if (!slabs_.valid(request.page) || !request.valid()) return EINVAL;
    if (request.operation == Operation::read) {
      if (!slabs_.written(request.page)) return ENODATA;  // nothing to give, zeros least of all
      std::memcpy(request.buffer, address(request.page) + request.offset, request.bytes);
    } else {
      stream_page(address(request.page), request.buffer);
      slabs_.mark_written(request.page);
    }
    return 0;
  }

 private:
  std::byte* address(FarPage page) const { return memory_.data() + bytes_of_pages(page.value); }

  SharedMemory memory_;
  SlabTable slabs_;
  DeviceInfo info_;
};

class MemChannel final : public SynchronousChannel<kMemInFlightMax> {
 public:
  explicit MemChannel(MemDevice& device) : device_(device) {}

 private:
  int serve(const Request& request) override { return device_.serve(request); }

  MemDevice& device_;
};

Result<std::unique_ptr<Channel>> MemDevice::open_channel() { return std::make_unique<MemChannel>(*this); }

}  // namespace

Result<std::uint64_t> parse_mem(std::string_view rest) {
  auto size = take_size(rest, "mem");
  if (size && !rest.empty())
    return refuse_url("mem: takes nothing but a size, not " + quoted(rest), "write mem: or mem:?size=1G");
  return size;
}

Result<std::unique_ptr<Device>> open_mem_device(std::uint64_t size_bytes) {
  std::uint32_t slabs = slabs_for_memory(size_bytes);
  auto memory = SharedMemory::reserve(std::size_t{slabs} * kSlabBytes, "mem:");
  // Unlimited means as much as can be had, as when an address space limit is set.
  while (!memory && size_bytes == 0 && slabs > 1) {
    slabs /= 2;
    memory = SharedMemory::reserve(std::size_t{slabs} * kSlabBytes, "mem:");
  }
  if (!memory) return std::unexpected(memory.error());
  auto table = SlabTable::create(slabs);
  if (!table) return std::unexpected(table.error());
  return std::make_unique<MemDevice>(std::move(*memory), std::move(*table), size_bytes);
}

}  // namespace hinterland::far
