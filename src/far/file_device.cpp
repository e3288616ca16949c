#include "far/file_device.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file_limit.hpp"
#include "base/page_hash.hpp"
#include "base/size.hpp"
#include "far/aio_check.hpp"
#include "far/file_store.hpp"
#include "far/synchronous_channel.hpp"
#include "far/url_text.hpp"

namespace hinterland::far {

Result<FileStore> FileStore::create(FileTarget target) {
  FileStore store;
  auto slabs = static_cast<std::uint32_t>(target.bytes() / kSlabBytes);
  auto table = SlabTable::create(slabs);
  if (!table) return std::unexpected(table.error());
  auto sums = SharedMemory::reserve(std::size_t{slabs} * kSlabPages * sizeof(Sum), "checksums");
  if (!sums) return std::unexpected(sums.error());
  store.target_ = std::move(target);
  store.slabs_ = std::move(*table);
  store.sums_ = std::move(*sums);
  return store;
}

// Relaxed: whoever hands a page's address to a reader orders its checksum with it.
void FileStore::before_write(FarPage page, const void* bytes) {
  sums_.at<Sum>(0)[page.value].store(page_hash(bytes), std::memory_order_relaxed);
}

int FileStore::after_transfer(Operation operation, FarPage page, const void* bytes) {
  if (operation == Operation::write) {
    slabs_.mark_written(page);
    return 0;
  }
  std::uint64_t sum = sums_.at<Sum>(0)[page.value].load(std::memory_order_relaxed);
  return page_hash(bytes) == sum ? 0 : EBADMSG;
}

namespace {

class BlockingChannel final : public SynchronousChannel<kFileInFlightMax> {
 public:
  BlockingChannel(FileStore& store, BouncePages bounce) : store_(store), bounce_(std::move(bounce)) {}

 private:
  int serve(const Request& request) override {
    if (int error = store_.check(request); error != 0) return error;
    bool aligned = reinterpret_cast<std::uintptr_t>(request.buffer) % kPageSize == 0;
    void* bytes = aligned ? request.buffer : bounce_.page(0);
    if (request.operation == Operation::write) {
      if (!aligned) std::memcpy(bytes, request.buffer, kPageSize);
      store_.before_write(request.page, bytes);
    }
    if (int error = transfer(request, bytes); error != 0) return error;
    int error = store_.after_transfer(request.operation, request.page, bytes);
    if (error == 0 && !aligned && request.operation == Operation::read) std::memcpy(request.buffer, bytes, kPageSize);
    return error;
  }

  int transfer(const Request& request, void* bytes) const {
    auto offset = static_cast<off_t>(FileStore::offset_of(request.page));
    for (int taken_back = -1;;) {
      const int file = store_.fd();
      ssize_t done = request.operation == Operation::read ? pread(file, bytes, kPageSize, offset)
                                                          : pwrite(file, bytes, kPageSize, offset);
      if (done == static_cast<ssize_t>(kPageSize)) return 0;
      if (done < 0 && errno == EINTR) continue;
      if (done < 0 && errno == EBADF && file != taken_back && store_.take_back(file)) {
        taken_back = store_.fd();
        continue;
      }
      const int error = done < 0 ? errno : EIO;
      if (error == EFBIG) take_file_limit_signal();
      return error;
    }
  }

  FileStore& store_;
  BouncePages bounce_;
};

class FileDevice final : public Device {
 public:
  FileDevice(FileStore store, const FileSettings& settings)
      : store_(std::move(store)), asynchronous_(settings.asynchronous && store_.direct() && aio_error() == 0) {
    info_.capacity_bytes = info_.beyond_memory_bytes = std::uint64_t{store_.slabs().slabs()} * kSlabBytes;
    info_.url = "file:" + settings.path + "?size=" + exact_size_text(info_.capacity_bytes);
    info_.best_batch_pages = 32;
    info_.in_flight_max = kFileInFlightMax;
    info_.synchronous = !asynchronous_;
  }

  const DeviceInfo& info() const override { return info_; }
  DeviceUsage usage() const override {
    std::uint64_t bytes = bytes_of_pages(store_.slabs().written_pages());
    return {bytes, bytes, 0};
  }
  Result<std::uint32_t> allocate_slab() override {
    if (auto slab = store_.slabs().take()) return *slab;
    Error error = Error::make(ENOSPC, "%s: all of it is in use", info_.url.c_str());
    error.remedy("give it a larger ?size=");
    return std::unexpected(error);
  }
  // The space stays reserved: only the tables change.
  void release_slab(std::uint32_t slab) override { store_.slabs().give_back(slab); }
  void discard(std::span<const FarPage> pages) override {
    for (FarPage page : pages)
      if (store_.slabs().valid(page)) store_.slabs().forget(page);
  }
  Result<std::unique_ptr<Channel>> open_channel() override {
    return asynchronous_ ? open_aio_channel(store_) : open_blocking_channel(store_);
  }
  // The file and the tables are shared, each channel has a context of its own, nothing is locked.
  Status after_fork_in_child() override {
    store_.descriptors().close_all_after_fork();  // events of the parent
    return {};
  }
  std::size_t descriptors(int* out, std::size_t max) const override {
    if (max == 0) return 0;
    out[0] = store_.fd();
    return 1 + store_.descriptors().list(out + 1, max - 1);
  }

 private:
  FileStore store_;
  bool asynchronous_;
  DeviceInfo info_;
};

}  // namespace

Result<std::unique_ptr<Channel>> open_blocking_channel(FileStore& store) {
  auto bounce = BouncePages::create();
  if (!bounce) return std::unexpected(bounce.error());
  return std::make_unique<BlockingChannel>(store, std::move(*bounce));
}

Result<FileSettings> parse_file(std::string_view rest) {
  auto size = take_size(rest, "file");
  if (!size) return std::unexpected(size.error());
  if (rest.empty()) return refuse_url("file: names no path", "write for example file:/var/tmp/far?size=8G");
  if (rest.find('\0') != std::string_view::npos) return refuse_url("file: path holds a NUL byte", "take it out");
  return FileSettings{.path = std::string(rest), .size_bytes = *size};
}

std::string file_from(const std::string& folder, std::string_view rest) {
  if (rest.empty() || rest.starts_with('/')) return std::string(rest);
  return folder + "/" + std::string(rest);
}

Result<std::unique_ptr<Device>> open_file_device(const FileSettings& settings) {
  auto target = FileTarget::open(settings);
  if (!target) return std::unexpected(target.error());
  auto store = FileStore::create(std::move(*target));
  if (!store) return std::unexpected(store.error());
  return std::make_unique<FileDevice>(std::move(*store), settings);
}

}  // namespace hinterland::far
