// What offload.hpp computes of the elements on one page: the same code where the page is local, in the program, and
// where it is far, at the memory server. Programs include offload.hpp; this is for it and for the runtime. C++20.
//
// A piece is a whole number of elements that lie on one page. Each gives a result of its own, and the program puts
// the results together in the order of the pieces: so what comes out does not depend on where a page was.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

extern "C" {
// What to compute. Values are those of the enumerations below; fields that an operation does not need are 0.
struct hl_computation {
  std::uint16_t operation;
  std::uint16_t element;
  std::uint16_t relation;  // count, filter
  std::uint16_t shift;     // spread: where the digit begins, a multiple of 8
  std::uint64_t operand;   // count, filter: an element to compare with; spread: the digits above
};

// Elements for a page that is composed: bytes that lie on one page, and which of the elements there. `mask`: a bit
// for each element, the first in the lowest bit of the first byte, 0 behind the last; in all 4096 / element_bytes
// bits. Of element_bytes 0 there is none (nullptr), and the bytes are wanted whole.
struct hl_composed_part {
  const void* address;
  const unsigned char* mask;
  std::uint32_t bytes;
  std::uint32_t reserved;
};
// hl_runtime.compose: 0, ENOTSUP where no device composes, EINVAL where the arguments make no sense.
// A page, whole, that is to hold what parts[first] to parts[first + count - 1] choose, one after the other: 4096
// bytes.
struct hl_composed_page {
  void* page;
  std::uint32_t first, count;
};

// One element of a page that is patched: which one it is, and its bits, in the lower ones of `value`.
struct hl_patch {
  std::uint64_t value;
  std::uint32_t element;
  std::uint32_t reserved;  // 0
};
// A page, whole, into which patches[first] to patches[first + count - 1] are put, one after the other. `fills` 0: the
// rest of it stays as it is. 1: it holds `fill` again and again before that, whatever it held.
struct hl_patched_page {
  void* page;
  std::uint64_t fill;
  std::uint32_t first, count;
  std::uint32_t fills;
  std::uint32_t reserved;  // 0
};
}
#define HL_PATCHES_MAX 16384u

namespace hl::far::detail {

static_assert(std::endian::native == std::endian::little, "results are what x86-64 has in memory");

inline constexpr std::size_t page_bytes = 4096;

enum operation : std::uint16_t {
  sum = 1,       // partial: of integers all 128 bits; of others a double in `low`
  min = 2,       // partial: `low` the element, `high` how many are numbers
  max = 3,       // the same
  count = 4,     // partial: `low` how many compare as asked
  filter = 5,    // a bit for each element that does
  pick = 6,      // 8 bytes: the piece's one element
  spread = 7,    // of all pieces together: 256 counts of the next digit of those that have the digits above
  distinct = 8,  // few: the distinct elements
};
inline constexpr std::uint32_t operations_known = (1u << (distinct + 1)) - 2;

enum element : std::uint16_t { i32 = 1, i64, u32, u64, f32, f64 };
enum relation : std::uint16_t { equal = 1, not_equal, less, less_equal, greater, greater_equal };

struct partial {
  std::uint64_t low, high;
};
inline constexpr std::size_t filter_bytes = page_bytes / 4 / 8;  // of a page of the smallest elements
inline constexpr std::size_t spread_digits = 256;
struct few {
  static constexpr std::uint64_t most = 63;
  std::uint64_t count;       // more than `most`: they are not listed
  std::uint64_t keys[most];  // key_of(), ascending; 0 behind the last
};

// Of `pieces` pieces: result after result, but for spread. 0: there is no such operation.
constexpr std::size_t result_bytes(std::uint32_t operation, std::size_t pieces) {
  switch (operation) {
    case sum:
    case min:
    case max:
    case count:
      return sizeof(partial) * pieces;
    case filter:
      return filter_bytes * pieces;
    case pick:
      return sizeof(std::uint64_t) * pieces;
    case distinct:
      return sizeof(few) * pieces;
    case spread:
      return sizeof(std::uint32_t) * spread_digits;
    default:
      return 0;
  }
}

constexpr std::size_t element_bytes(std::uint32_t element) {
  switch (element) {
    case i32:
    case u32:
    case f32:
      return 4;
    case i64:
    case u64:
    case f64:
      return 8;
    default:
      return 0;
  }
}

// Of pages that are composed: bytes of a mask, and how many bytes it chooses of a part that is `offset` into its
// page. Nothing where there are bits behind its last element, or not whole elements.
constexpr std::size_t mask_bytes(std::size_t element_bytes) {
  return element_bytes == 0 ? 0 : page_bytes / element_bytes / 8;
}
inline std::optional<std::size_t> chosen_bytes(std::size_t element_bytes, std::size_t offset, std::size_t bytes,
                                               const unsigned char* mask) {
  if (element_bytes == 0) return bytes;
  if (offset % element_bytes != 0 || bytes % element_bytes != 0) return std::nullopt;
  const std::size_t elements = bytes / element_bytes;
  std::size_t chosen = 0;
  for (std::size_t at = 0; at < mask_bytes(element_bytes); ++at) {
    const std::size_t there = elements > at * 8 ? elements - at * 8 : 0;
    if (there < 8 && mask[at] >> there != 0) return std::nullopt;
    chosen += static_cast<std::size_t>(std::popcount(mask[at]));
  }
  return chosen * element_bytes;
}

template <typename T>
constexpr element element_of() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8) &&
                    !std::is_same_v<T, long double>,
                "elements are integers or floating-point numbers of 4 or 8 bytes");
  if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? f32 : f64;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 4 ? i32 : i64;
  else
    return sizeof(T) == 4 ? u32 : u64;
}

// Whether the fields make sense together.
constexpr bool is_valid(const hl_computation& what) {
  const bool compares = what.operation == count || what.operation == filter;
  if (result_bytes(what.operation, 1) == 0 || element_bytes(what.element) == 0) return false;
  if (compares != (what.relation != 0) || what.relation > greater_equal) return false;
  if (what.operation != spread) return what.shift == 0 && (compares || what.operand == 0);
  const std::size_t bits = 8 * element_bytes(what.element);
  return what.shift % 8 == 0 && what.shift < bits && (what.shift + 8u == bits ? what.operand == 0 : true);
}

// Elements as unsigned integers that have the same order. What is not a number comes last.
template <typename T>
constexpr auto key_of(T value) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr bits sign = bits{1} << (8 * sizeof(T) - 1);
  const bits raw = std::bit_cast<bits>(value);
  if constexpr (std::is_floating_point_v<T>)
    return value != value ? static_cast<bits>(~bits{0}) : (raw & sign) != 0 ? static_cast<bits>(~raw) : raw | sign;
  else if constexpr (std::is_signed_v<T>)
    return raw ^ sign;
  else
    return raw;
}
template <typename T, typename Key>
constexpr T value_of(Key key) {
  constexpr Key sign = Key{1} << (8 * sizeof(T) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (key == static_cast<Key>(~Key{0})) return std::numeric_limits<T>::quiet_NaN();
    return std::bit_cast<T>((key & sign) != 0 ? key ^ sign : static_cast<Key>(~key));
  } else if constexpr (std::is_signed_v<T>) {
    return std::bit_cast<T>(key ^ sign);
  } else {
    return key;
  }
}

__extension__ using wide = __int128;
__extension__ using wide_unsigned = unsigned __int128;

// Floating-point numbers in eight sums, element by element in turn, which are added at the end: always in the same
// order, and as fast as the processor adds eight.
template <typename T>
partial sum_of(const T* elements, std::size_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    double lanes[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += static_cast<double>(elements[i + lane]);
    for (std::size_t lane = 0; i < n; ++i, ++lane) lanes[lane] += static_cast<double>(elements[i]);
    const double all =
        ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    return {std::bit_cast<std::uint64_t>(all), 0};
  } else {
    wide all = 0;
    for (std::size_t i = 0; i < n; ++i) all += elements[i];
    return {static_cast<std::uint64_t>(all), static_cast<std::uint64_t>(all >> 64)};
  }
}

template <typename T>
std::uint64_t widened(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(value);
  else
    return static_cast<std::uint64_t>(value);
}
template <typename T>
T narrowed(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}

// The first of the least (or greatest), without what is not a number.
template <typename T, bool Least>
partial extreme_of(const T* elements, std::size_t n) {
  std::uint64_t numbers = 0;
  T best{};
  for (std::size_t i = 0; i < n; ++i) {
    const T value = elements[i];
    if (value != value) continue;
    if (numbers++ == 0 || (Least ? value < best : best < value)) best = value;
  }
  return {numbers != 0 ? widened(best) : 0, numbers};
}

// Calls visit(compares), where compares(element) says whether it is `how` to `with`.
template <typename T, typename Visit>
void with_comparison(std::uint16_t how, T with, Visit&& visit) {
  switch (how) {
    case equal:
      return visit([with](T value) { return value == with; });
    case not_equal:
      return visit([with](T value) { return value != with; });
    case less:
      return visit([with](T value) { return value < with; });
    case less_equal:
      return visit([with](T value) { return value <= with; });
    case greater:
      return visit([with](T value) { return value > with; });
    default:
      return visit([with](T value) { return value >= with; });
  }
}

template <typename T>
std::uint64_t count_of(const T* elements, std::size_t n, std::uint16_t how, T with) {
  std::uint64_t found = 0;
  with_comparison(how, with, [&](auto compares) {
    for (std::size_t i = 0; i < n; ++i) found += compares(elements[i]) ? 1 : 0;
  });
  return found;
}

template <typename T>
void filter_of(const T* elements, std::size_t n, std::uint16_t how, T with, unsigned char* bits) {
  std::memset(bits, 0, filter_bytes);
  with_comparison(how, with, [&](auto compares) {
    for (std::size_t first = 0; first < n; first += 8) {
      const std::size_t end = n - first < 8 ? n - first : 8;
      unsigned eight = 0;
      for (std::size_t i = 0; i < end; ++i) eight |= (compares(elements[first + i]) ? 1u : 0u) << i;
      bits[first / 8] = static_cast<unsigned char>(eight);
    }
  });
}

// Both zeros are one.
template <typename T>
void distinct_of(const T* elements, std::size_t n, few* found) {
  *found = {};
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t key = key_of(elements[i] == T{} ? T{} : elements[i]);
    std::size_t low = 0;
    for (std::size_t high = found->count; low < high;) {
      const std::size_t middle = (low + high) / 2;
      if (found->keys[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
    if (low < found->count && found->keys[low] == key) continue;
    if (found->count == few::most) {
      *found = {};
      found->count = few::most + 1;
      return;
    }
    std::memmove(&found->keys[low + 1], &found->keys[low], (found->count - low) * sizeof key);
    found->keys[low] = key;
    ++found->count;
  }
}

template <typename T>
void spread_of(const hl_computation& what, const T* elements, std::size_t n, std::uint32_t* digits) {
  const bool first = what.shift + 8u == 8 * sizeof(T);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t key = key_of(elements[i]);
    if (first || key >> (what.shift + 8u) == what.operand) ++digits[key >> what.shift & (spread_digits - 1)];
  }
}

template <typename T>
void compute_typed(const hl_computation& what, const T* elements, std::size_t n, void* result) {
  partial made{};
  switch (what.operation) {
    case sum:
      made = sum_of(elements, n);
      break;
    case min:
      made = extreme_of<T, true>(elements, n);
      break;
    case max:
      made = extreme_of<T, false>(elements, n);
      break;
    case count:
      made.low = count_of(elements, n, what.relation, narrowed<T>(what.operand));
      break;
    case filter:
      return filter_of(elements, n, what.relation, narrowed<T>(what.operand), static_cast<unsigned char*>(result));
    case pick: {
      const std::uint64_t picked = widened(elements[0]);
      std::memcpy(result, &picked, sizeof picked);
      return;
    }
    case distinct: {
      few found;
      distinct_of(elements, n, &found);
      std::memcpy(result, &found, sizeof found);
      return;
    }
    default:
      return spread_of(what, elements, n, static_cast<std::uint32_t*>(result));
  }
  std::memcpy(result, &made, sizeof made);
}

// One piece. `what` is valid; `bytes` is aligned to its elements; `result` is where the piece's begins, of spread the
// counts of all pieces, which begin as zeros.
inline void compute_piece(const hl_computation& what, const void* bytes, std::size_t size, void* result) {
  const std::size_t n = size / element_bytes(what.element);
  switch (what.element) {
    case i32:
      return compute_typed(what, static_cast<const std::int32_t*>(bytes), n, result);
    case i64:
      return compute_typed(what, static_cast<const std::int64_t*>(bytes), n, result);
    case u32:
      return compute_typed(what, static_cast<const std::uint32_t*>(bytes), n, result);
    case u64:
      return compute_typed(what, static_cast<const std::uint64_t*>(bytes), n, result);
    case f32:
      return compute_typed(what, static_cast<const float*>(bytes), n, result);
    default:
      return compute_typed(what, static_cast<const double*>(bytes), n, result);
  }
}

}  // namespace hl::far::detail
