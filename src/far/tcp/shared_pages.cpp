#include "far/tcp/shared_pages.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/page_hash.hpp"

namespace hinterland::far {

Result<SharedPages> SharedPages::create(std::uint32_t slabs_max) {
  SharedPages pages;
  pages.slabs_max_ = slabs_max;
  pages.bytes_ = kPageSize + page_ceil(slabs_max) + std::size_t{slabs_max} * kSlabPages * sizeof(std::uint64_t);
  // Anonymous memory is zero: no stamps, no slabs, no checksums.
  void* memory =
      ::mmap(nullptr, pages.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return std::unexpected(
        Error::make(errno, "cannot reserve %zu MiB of address space for page checksums", pages.bytes_ / kMiB));
  pages.shared_ = static_cast<Shared*>(memory);
  return pages;
}

SharedPages::~SharedPages() {
  if (shared_ != nullptr) ::munmap(shared_, bytes_);
}

void SharedPages::set(FarPage page, std::uint64_t checksum) {
  if (checksums()[page.value].exchange(checksum) == 0) shared_->used_pages.fetch_add(1, std::memory_order_relaxed);
}

void SharedPages::clear(FarPage page) {
  if (checksums()[page.value].exchange(0) != 0) shared_->used_pages.fetch_sub(1, std::memory_order_relaxed);
}

void SharedPages::let_go(std::uint32_t slab) {
  std::uint64_t first = std::uint64_t{slab} * kSlabPages;
  for (std::uint64_t page = first; page < first + kSlabPages; ++page)
    if (checksum(FarPage{page}) != 0) clear(FarPage{page});
  // The table's own memory goes back as well; failure only keeps it.
  static_assert(kSlabPages * sizeof(std::uint64_t) % kPageSize == 0);
  ::madvise(checksums() + first, kSlabPages * sizeof(std::uint64_t), MADV_REMOVE);
  slabs()[slab].store(0);
}

std::uint64_t SharedPages::checksum_of(const void* page) {
  std::uint64_t hash = page_hash(page);
  return hash != 0 ? hash : 1;
}

}  // namespace hinterland::far
