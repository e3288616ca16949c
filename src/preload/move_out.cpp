#include "preload/move_out.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/inside.hpp"
#include "base/units.hpp"
#include "preload/left_local.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"

namespace hinterland {
namespace {

// Reads /proc/self/maps line by line without allocating. Lines longer than the buffer do not exist before the path.
class MapsReader {
 public:
  MapsReader()
      : descriptor_(static_cast<int>(
            raw::call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC))) {}
  ~MapsReader() {
    if (descriptor_ >= 0) raw::call(SYS_close, descriptor_);
  }
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  bool next_line(char* line, std::size_t size) {
    std::size_t used = 0;
    for (char c; next_character(&c); used += used + 1 < size ? 1 : 0) {
      if (c == '\n') {
        line[used] = '\0';
        return true;
      }
      line[used] = c;
    }
    return false;
  }

 private:
  bool next_character(char* out) {
    if (at_ == filled_) {
      filled_ = raw::call(SYS_read, descriptor_, reinterpret_cast<long>(buffer_), sizeof buffer_);
      at_ = 0;
      if (filled_ <= 0) {
        filled_ = 0;
        return false;
      }
    }
    *out = buffer_[at_++];
    return true;
  }
  int descriptor_;
  long at_ = 0, filled_ = 0;
  char buffer_[4096];
};

}  // namespace

int protection_at(std::uintptr_t address) {
  MapsReader maps;
  char line[256];
  while (maps.next_line(line, sizeof line)) {
    unsigned long start, end;
    char read, write, execute;
    if (std::sscanf(line, "%lx-%lx %c%c%c", &start, &end, &read, &write, &execute) != 5) continue;
    if (address < start || address >= end) continue;
    return (read == 'r' ? PROT_READ : 0) | (write == 'w' ? PROT_WRITE : 0) | (execute == 'x' ? PROT_EXEC : 0);
  }
  return -EFAULT;
}

std::intptr_t move_out_of_window(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                                 std::uintptr_t new_address) {
  old_length = page_ceil(old_length);
  new_length = page_ceil(new_length);
  bool valid = page_floor(address) == address && page_floor(new_address) == new_address && new_length != 0 &&
               old_length != 0 && (flags & MREMAP_MAYMOVE) != 0;
  if (!valid) return -EINVAL;
  InsideRuntime inside;
  int protection = protection_at(address);
  if (protection < 0) return protection;
  std::intptr_t target = raw::mmap(new_address, new_length, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED);
  if (raw::failed(target)) return target;
  if ((protection & PROT_READ) == 0) pager().protect(address, old_length, PROT_READ);
  std::memcpy(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(address),
              std::min(old_length, new_length));
  if ((flags & MREMAP_DONTUNMAP) != 0) {
    pager().advise(address, old_length, MADV_DONTNEED);
    pager().protect(address, old_length, protection);
  } else {
    pager().unmap(address, old_length);
  }
  raw::mprotect(new_address, new_length, protection);
  left_local::add(new_address, new_length);
  return target;
}

}  // namespace hinterland
