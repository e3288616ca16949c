// Which runs of pages are there, for kernels that only say it of each page.
#include <algorithm>
#include <array>

#include "kernel/kernel.hpp"

namespace hinterland {
namespace {

// The runs of a range, in the room that there is for them.
class Runs {
 public:
  explicit Runs(std::span<iovec> room) : room_(room) {}

  // False: there is no room for it. Pages come in order.
  bool add(std::uintptr_t page) {
    if (count_ > 0 && end_ == page) {
      room_[count_ - 1].iov_len += kPageSize;
    } else {
      if (count_ == room_.size()) return false;
      room_[count_++] = {reinterpret_cast<void*>(page), kPageSize};
    }
    end_ = page + kPageSize;
    return true;
  }
  std::size_t count() const { return count_; }

 private:
  std::span<iovec> room_;
  std::size_t count_ = 0;
  std::uintptr_t end_ = 0;
};

}  // namespace

PresentRuns Kernel::present_runs(std::uintptr_t start, std::uintptr_t end, std::span<iovec> runs) {
  constexpr std::size_t kStep = 16384;  // pages: 64 MiB of the program's memory a look
  std::array<std::uint64_t, kStep / 64> bits;
  Runs found(runs);
  for (std::uintptr_t at = start; at < end;) {
    const std::size_t pages = std::min(kStep, (end - at) >> kPageShift);
    if (const int error = present(at, pages, bits); error != 0) return {error, 0, start};
    for (std::size_t i = 0; i < pages; ++i, at += kPageSize)
      if ((bits[i / 64] >> (i % 64) & 1) != 0 && !found.add(at)) return {0, found.count(), at};
  }
  return {0, found.count(), end};
}

}  // namespace hinterland
