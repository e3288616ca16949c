// Columns: contiguous elements in far memory (region.hpp), with the names of std::vector. Data frames are made of
// them (dataframe.hpp).
//
//     hl::far::column<double> hours{0.5, 1.5}, miles{10, 60};
//     hl::far::column<double> speed = hl::far::transform(std::divides<>(), miles, hours);
//     double fastest = *hl::far::max(speed);             // all of offload.hpp; where the server can, computed there
//     std::span<double> them = speed;                    // and everything else that takes contiguous elements
//
// The memory is far under `hinterland run` and in programs that link libhinterland.so; otherwise it is ordinary
// memory. Elements are trivially copyable. column<text> has strings, each distinct one of which is stored once.
//
// Columns move; copy() copies, since it takes as much memory again; what is far is copied at a server that composes
// pages (offload_writes.hpp). Threads: as std::vector. Blocks while pages are
// brought. A page that cannot be had raises SIGBUS after a message, as all far memory does (docs/reliability.md).
// Errors: std::system_error where there is no far memory to be had, std::length_error, std::out_of_range from at().
//
// C++20, for GCC and Clang on x86-64.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hinterland/hint.h"
#include "hinterland/offload.hpp"
#include "hinterland/offload_writes.hpp"
#include "hinterland/region.hpp"

namespace hl::far {

template <typename T>
class column {
  static_assert(
      std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
      "elements of a column move as bytes: make the type trivially copyable, or use column<text> for strings");
  static_assert(alignof(T) <= 4096, "an alignment of more than a page");

 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  column() noexcept = default;
  // Elements whose bytes are all zero. They take no memory until they are written.
  explicit column(std::size_t count) { resize(count); }
  column(std::size_t count, const T& value) { resize(count, value); }
  explicit column(std::span<const T> values) {
    reserve(values.size());
    detail::copy_bytes(data_, values.data(), values.size_bytes());
    size_ = used_ = values.size();
  }
  column(std::initializer_list<T> values) : column(std::span<const T>(values.begin(), values.size())) {}
  column(column&& other) noexcept { swap(other); }
  column& operator=(column&& other) noexcept {
    column ending(std::move(*this));
    swap(other);
    return *this;
  }
  ~column() = default;
  column copy() const { return column(std::span<const T>(*this)); }
  void swap(column& other) noexcept {
    std::swap(region_, other.region_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(used_, other.used_);
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t capacity() const noexcept { return region_ ? region_->size() / sizeof(T) : 0; }
  static constexpr std::size_t max_size() noexcept {
    return static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(T);
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  iterator begin() noexcept { return data(); }
  iterator end() noexcept { return data_ + size_; }
  const_iterator begin() const noexcept { return data(); }
  const_iterator end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t at) noexcept { return data_[at]; }
  const T& operator[](std::size_t at) const noexcept { return data_[at]; }
  T& at(std::size_t at) { return data_[checked(at)]; }
  const T& at(std::size_t at) const { return data_[checked(at)]; }
  T& front() noexcept { return data_[0]; }
  const T& front() const noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  // Memory for so many in one piece; elements that are there are copied into it.
  void reserve(std::size_t count) {
    if (count <= capacity()) return;
    if (count > max_size()) throw std::length_error("hl::far::column: more elements than there are addresses for");
    region larger(count * sizeof(T));
    detail::copy_bytes(larger.data(), data_, size_ * sizeof(T));
    region_ = std::move(larger);
    data_ = reinterpret_cast<T*>(region_->data());
    used_ = size_;
  }
  // What is new is zero.
  void resize(std::size_t count) {
    reserve(count);
    // What was never used in this memory is zero, and writing that would cost memory.
    if (const std::size_t end = std::min(count, used_); end > size_)
      std::memset(static_cast<void*>(data_ + size_), 0, (end - size_) * sizeof(T));
    size_ = count;
    used_ = std::max(used_, size_);
  }
  void resize(std::size_t count, const T& value) {
    const T copy = value;  // it may lie in this column
    const std::size_t before = size_;
    resize(count);
    if (count > before) std::fill(begin() + before, end(), copy);
  }
  void push_back(const T& value) {
    const T copy = value;
    if (size_ == capacity()) reserve(std::max(2 * capacity(), std::size_t{65536} / sizeof(T) + 1));
    data_[size_++] = copy;
    used_ = std::max(used_, size_);
  }
  void pop_back() noexcept { --size_; }
  // The memory stays; that of a column that is destroyed, or assigned to, is given back.
  void clear() noexcept { size_ = 0; }

 private:
  std::size_t checked(std::size_t at) const {
    if (at >= size_) throw std::out_of_range("hl::far::column::at: there are fewer elements");
    return at;
  }

  std::optional<region> region_;
  T* data_ = nullptr;  // the region's
  std::size_t size_ = 0;
  std::size_t used_ = 0;  // so many elements of this memory may be other than zero
};

// Strings: each row has the number of one, 4 bytes that are far; the distinct strings are ordinary memory of the
// program, which columns that were made of each other share.
struct text {};

template <>
class column<text> {
 public:
  using value_type = std::string_view;
  using size_type = std::size_t;

  column() = default;
  // The other one has no rows then, and may get some.
  column(column&& other) noexcept : words_(other.words_), codes_(std::move(other.codes_)) {}
  column& operator=(column&& other) noexcept {
    words_ = other.words_;
    codes_ = std::move(other.codes_);
    return *this;
  }
  column(std::initializer_list<std::string_view> values) {
    for (const std::string_view value : values) push_back(value);
  }
  column copy() const { return with_codes(codes_.copy()); }

  std::size_t size() const noexcept { return codes_.size(); }
  bool empty() const noexcept { return codes_.empty(); }
  // Valid while there is a column that was made of this one, or this one.
  std::string_view operator[](std::size_t at) const noexcept { return words_->list[codes_[at]]; }
  std::string_view at(std::size_t at) const { return words_->list[codes_.at(at)]; }
  void reserve(std::size_t count) { codes_.reserve(count); }
  // std::length_error beyond 2^32 - 1 distinct strings.
  void push_back(std::string_view value) { codes_.push_back(add(value)); }
  void clear() noexcept { codes_.clear(); }

  // Which string each row has. Numbers are in the order in which strings came.
  const column<std::uint32_t>& codes() const noexcept { return codes_; }
  std::size_t distinct_max() const noexcept { return words_->list.size(); }
  std::string_view word(std::uint32_t code) const noexcept { return words_->list[code]; }
  std::optional<std::uint32_t> code_of(std::string_view value) const {
    const auto found = words_->codes.find(value);
    return found == words_->codes.end() ? std::nullopt : std::optional(found->second);
  }
  // Rows of the same strings.
  column with_codes(column<std::uint32_t> codes) const {
    column made;
    made.words_ = words_;
    made.codes_ = std::move(codes);
    return made;
  }
  // Leaves no rows.
  column<std::uint32_t> take_codes() noexcept { return std::move(codes_); }

 private:
  struct words {
    std::deque<std::string> list;  // whose strings stay where they are
    std::unordered_map<std::string_view, std::uint32_t> codes;
  };

  std::uint32_t add(std::string_view value) {
    if (const auto known = code_of(value)) return *known;
    if (words_->list.size() == std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("hl::far::column<text>: more than 4294967295 distinct strings");
    if (words_.use_count() > 1) own();
    const auto code = static_cast<std::uint32_t>(words_->list.size());
    words_->list.emplace_back(value);
    try {
      words_->codes.emplace(words_->list.back(), code);
    } catch (...) {
      words_->list.pop_back();
      throw;
    }
    return code;
  }
  void own() {
    auto copy = std::make_shared<words>();
    copy->list = words_->list;
    for (std::uint32_t code = 0; code < copy->list.size(); ++code) copy->codes.emplace(copy->list[code], code);
    words_ = std::move(copy);
  }

  std::shared_ptr<words> words_ = std::make_shared<words>();
  column<std::uint32_t> codes_;
};

// Inside: columns are gone through in order, in blocks, of which the next is on its way meanwhile.
namespace inside {

inline constexpr std::size_t block_rows = 8192;  // 64 KiB of 8-byte elements

template <typename T>
void ahead(const column<T>& read, std::size_t first) {
  if constexpr (std::is_same_v<T, text>) {
    ahead(read.codes(), first);
  } else {
    if (first < read.size()) hl_prefetch(read.data() + first, std::min(block_rows, read.size() - first) * sizeof(T));
  }
}

// Calls visit(first row, how many) for all rows.
template <typename Visit, typename... Ts>
void each_block(std::size_t rows, Visit&& visit, const column<Ts>&... read) {
  (ahead(read, 0), ...);
  for (std::size_t first = 0; first < rows; first += block_rows) {
    (ahead(read, first + block_rows), ...);
    visit(first, std::min(block_rows, rows - first));
  }
}
// Calls visit(row) for all rows.
template <typename Visit, typename... Ts>
void each_row(std::size_t rows, Visit&& visit, const column<Ts>&... read) {
  each_block(
      rows,
      [&visit](std::size_t first, std::size_t count) {
        for (std::size_t row = first; row < first + count; ++row) visit(row);
      },
      read...);
}

template <typename Result>
using column_for = column<std::conditional_t<std::is_convertible_v<Result, std::string_view>, text, Result>>;

}  // namespace inside

// A column of f(a[i], b[i], ...): what f returns are its elements, or, of strings, column<text>. The arguments of f
// are elements, of text std::string_view. std::invalid_argument when the columns have different lengths.
template <typename F, typename First, typename... Others>
auto transform(F&& f, const column<First>& first, const column<Others>&... others) {
  if (((others.size() != first.size()) || ...))
    throw std::invalid_argument("hl::far::transform: the columns have different lengths");
  using result = std::remove_cvref_t<decltype(std::invoke(f, first[0], others[0]...))>;
  inside::column_for<result> made;
  if constexpr (std::is_convertible_v<result, std::string_view>) {
    made.reserve(first.size());
    inside::each_row(
        first.size(), [&](std::size_t row) { made.push_back(std::invoke(f, first[row], others[row]...)); }, first,
        others...);
  } else {
    made.resize(first.size());
    result* const out = made.data();
    inside::each_row(
        first.size(), [&](std::size_t row) { out[row] = std::invoke(f, first[row], others[row]...); }, first,
        others...);
  }
  return made;
}

// The distinct strings, ascending, in ordinary memory of the program. (Of numbers: offload.hpp.)
inline std::vector<std::string> unique(const column<text>& values) {
  std::vector<std::string> found;
  for (const std::uint32_t code : unique(values.codes())) found.emplace_back(values.word(code));
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace hl::far
