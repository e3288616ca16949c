#include "far/shared_memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_limit.hpp"
#include "base/raw_call.hpp"
#include "base/size.hpp"
#include "base/units.hpp"

namespace hinterland::far {
namespace {

// Under strict overcommit (vm.overcommit_memory=2) an anonymous shared mapping is charged whole at once; a memfd is
// charged as its pages are touched. It is not the first choice because RLIMIT_FSIZE bounds it.
void* map_through_memfd(std::size_t bytes) {
  int fd = memfd_create("hinterland", MFD_CLOEXEC);
  if (fd < 0) return MAP_FAILED;
  void* data = MAP_FAILED;
  if (!fits_file_limit(bytes))
    errno = EFBIG;
  else if (ftruncate(fd, static_cast<off_t>(bytes)) == 0)
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  int saved = errno;
  close(fd);
  errno = saved;
  return data;
}

}  // namespace

Result<SharedMemory> SharedMemory::reserve(std::size_t bytes, const char* purpose) {
  bytes = page_ceil(bytes);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) data = map_through_memfd(bytes);
  if (data == MAP_FAILED) {
    Error error =
        Error::make(errno, "cannot reserve %s of address space for %s", rounded_size_text(bytes).c_str(), purpose);
    error.remedy("raise the address space limit (ulimit -v unlimited) or give the device a smaller size");
    return std::unexpected(error);
  }
  // A dump of the program holds its memory, not our copies of it.
  madvise(data, bytes, MADV_DONTDUMP);
  return SharedMemory(static_cast<std::byte*>(data), bytes);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void SharedMemory::punch(std::size_t offset, std::size_t length) const {
  madvise(data_ + offset, length, MADV_REMOVE);
}

std::uint64_t machine_memory_bytes() {
  struct sysinfo info{};
  if (raw::checked(SYS_sysinfo, &info) != 0) return 16 * kGiB;
  return (static_cast<std::uint64_t>(info.totalram) + info.totalswap) * info.mem_unit;
}

}  // namespace hinterland::far
