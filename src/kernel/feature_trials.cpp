// Trying the features of userfaultfd out instead of believing a version or a bit.
#include <sys/mman.h>

#include "kernel/probe.hpp"

namespace hinterland {
namespace {

// Private anonymous pages for one trial.
class TrialPages {
 public:
  explicit TrialPages(std::size_t count)
      : bytes_(bytes_of_pages(count)),
        address_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    // Small pages: a trial on a huge one tries something else.
    if (good()) madvise(address_, bytes_, MADV_NOHUGEPAGE);
  }
  ~TrialPages() {
    if (good()) munmap(address_, bytes_);
  }
  TrialPages(const TrialPages&) = delete;
  TrialPages& operator=(const TrialPages&) = delete;
  bool good() const { return address_ != MAP_FAILED; }
  std::uintptr_t at(std::size_t page) const {
    return reinterpret_cast<std::uintptr_t>(address_) + bytes_of_pages(page);
  }
  volatile char& first_byte_of(std::size_t page) const { return *reinterpret_cast<volatile char*>(at(page)); }

 private:
  std::size_t bytes_;
  void* address_;
};

bool write_protect_works(Kernel& kernel) {
  TrialPages pages(1);
  if (!pages.good()) return false;
  pages.first_byte_of(0) = 1;
  return kernel.register_range(pages.at(0), kPageSize) == 0 &&
         kernel.write_protect(pages.at(0), kPageSize, true) == 0;
}

bool move_works(Kernel& kernel) {
  TrialPages pages(2);
  if (!pages.good() || kernel.register_range(pages.at(0), kPageSize) != 0) return false;
  pages.first_byte_of(1) = 42;
  // Looked at only when it is there: otherwise that would be a fault that nobody serves.
  return kernel.move(pages.at(0), pages.at(1), kPageSize) == static_cast<std::int64_t>(kPageSize) &&
         pages.first_byte_of(0) == 42;
}

bool poison_works(Kernel& kernel) {
  TrialPages pages(1);
  return pages.good() && kernel.register_range(pages.at(0), kPageSize) == 0 &&
         kernel.poison(pages.at(0), kPageSize) == 0;
}

}  // namespace

KernelFeatures try_features(Kernel& kernel) {
  KernelFeatures works = kernel.features();  // vectored_discard was tried when it was opened
  works.write_protect = works.write_protect && write_protect_works(kernel);
  works.move = works.move && move_works(kernel);
  works.poison = works.poison && poison_works(kernel);
  return works;
}

}  // namespace hinterland
