// What the channels of a file: device share: the file, the slabs and the checksum of each page.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "far/descriptor_set.hpp"
#include "far/device.hpp"
#include "far/file_target.hpp"
#include "far/slab_table.hpp"

namespace hinterland::far {

class FileStore {
 public:
  static Result<FileStore> create(FileTarget target);

  int fd() const { return target_.fd(); }
  bool file_is_here() const { return target_.is_here(); }
  bool take_back(int lost) const { return target_.take_back(lost); }
  bool direct() const { return target_.direct(); }
  SlabTable& slabs() { return slabs_; }
  const SlabTable& slabs() const { return slabs_; }
  DescriptorSet& descriptors() const { return *descriptors_; }  // of the channels
  static std::uint64_t offset_of(FarPage page) { return FileTarget::kHeaderBytes + bytes_of_pages(page.value); }

  // 0 when the request may go to the file, else the errno it fails with at once.
  int check(const Request& request) const {
    if (!slabs_.valid(request.page) || !request.whole()) return EINVAL;
    return request.operation == Operation::read && !slabs_.written(request.page) ? ENODATA : 0;
  }
  // Before a page is written: keeps its checksum.
  void before_write(FarPage page, const void* bytes);
  // After the transfer of one page: 0, or EBADMSG when the bytes are not those that were written.
  int after_transfer(Operation operation, FarPage page, const void* bytes);

 private:
  using Sum = std::atomic<std::uint64_t>;
  FileTarget target_;
  SlabTable slabs_;
  SharedMemory sums_;
  std::unique_ptr<DescriptorSet> descriptors_ = std::make_unique<DescriptorSet>();
};

// The two kinds of channel. `store` outlives them.
Result<std::unique_ptr<Channel>> open_aio_channel(FileStore& store);       // Linux AIO; needs O_DIRECT
Result<std::unique_ptr<Channel>> open_blocking_channel(FileStore& store);  // pread and pwrite
inline constexpr std::uint32_t kFileInFlightMax = 128;

// Buffers that O_DIRECT cannot take travel through one of these; memory is taken when one is first used.
class BouncePages {
 public:
  static Result<BouncePages> create() {
    auto memory = SharedMemory::reserve(kFileInFlightMax * kPageSize, "file buffers");
    if (!memory) return std::unexpected(memory.error());
    return BouncePages(std::move(*memory));
  }
  void* page(std::uint32_t index) const { return memory_.data() + bytes_of_pages(index); }

 private:
  explicit BouncePages(SharedMemory memory) : memory_(std::move(memory)) {}
  SharedMemory memory_;
};

}  // namespace hinterland::far
