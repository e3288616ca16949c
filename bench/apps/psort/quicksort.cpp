#include "psort/quicksort.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "common/blocks.hpp"
#include "hinterland/hint.hpp"

namespace psort {
namespace {

// What is asked for at once, and what is sorted without further ado.
constexpr std::ptrdiff_t kBlock = apps::kBlockBytes / sizeof(Value);

std::size_t bytes(const Value* begin, const Value* end) {
  return static_cast<std::size_t>(end - begin) * sizeof(Value);
}

Value median(Value a, Value b, Value c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

// About the middle of the values: of three at each end and in the middle, so that only three pages are looked at.
Value pivot_of(const Value* begin, const Value* end) {
  std::array<Value, 3> medians{};
  const std::array<const Value*, 3> probes = {begin, begin + (end - begin) / 2, end - 3};
  for (std::size_t i = 0; i < probes.size(); ++i) {
    hl::read(probes[i]);
    medians[i] = median(probes[i][0], probes[i][1], probes[i][2]);
  }
  return median(medians[0], medians[1], medians[2]);
}

// One end of a range that is being partitioned: which of the next few values are on the wrong side.
class Side {
 public:
  static constexpr std::ptrdiff_t kFew = 128;

  bool empty() const { return next_ == count_; }
  unsigned left() const { return count_ - next_; }
  unsigned take() { return offsets_[next_++]; }

  // wrong(offset) for each of them.
  template <typename Wrong>
  void look(Wrong wrong) {
    next_ = count_ = 0;
    for (unsigned offset = 0; offset < kFew; ++offset) {  // without a branch that depends on the values
      offsets_[count_] = static_cast<std::uint8_t>(offset);
      count_ += wrong(offset);
    }
  }

 private:
  std::array<std::uint8_t, kFew> offsets_;
  unsigned next_ = 0, count_ = 0;
};

// Values up to the pivot to the front, and from the pivot on to the back, those equal to it to either. The place
// between them. (Edelkamp and Weiss: "BlockQuicksort: How Branch Mispredictions don't affect Quicksort", 2016)
Value* partition(Value* begin, Value* end, Value pivot) {
  Side front, back;
  const Value *front_asked = begin, *back_asked = end;  // what was hinted ends there
  while (end - begin > 2 * Side::kFew) {
    if (front.empty()) {
      if (front_asked - begin < Side::kFew) {
        front_asked = begin + std::min(kBlock, end - begin);
        hl::hint(begin, {.mut = true, .size = bytes(begin, front_asked)});
      }
      front.look([&](unsigned i) { return begin[i] >= pivot; });
    }
    if (back.empty()) {
      if (end - back_asked < Side::kFew) {
        back_asked = end - std::min(kBlock, end - begin);
        hl::hint(back_asked, {.mut = true, .size = bytes(back_asked, end)});
      }
      back.look([&](unsigned i) { return end[-1 - std::ptrdiff_t{i}] <= pivot; });
    }
    for (unsigned n = std::min(front.left(), back.left()); n > 0; --n)
      std::swap(begin[front.take()], end[-1 - std::ptrdiff_t{back.take()}]);
    if (front.empty()) begin += Side::kFew;
    if (back.empty()) end -= Side::kFew;
  }
  return std::partition(begin, end, [&](Value value) { return value < pivot; });
}

}  // namespace

void quicksort(Value* begin, Value* end) {
  while (end - begin > kBlock) {
    Value* middle = partition(begin, end, pivot_of(begin, end));
    if (middle == begin || middle == end) break;  // the pivot was the least or the largest
    if (middle - begin < end - middle) {          // the smaller part first: so the stack stays flat
      quicksort(begin, middle);
      begin = middle;
    } else {
      quicksort(middle, end);
      end = middle;
    }
  }
  hl::hint(begin, {.mut = true, .size = bytes(begin, end)});
  std::sort(begin, end);
}

}  // namespace psort
