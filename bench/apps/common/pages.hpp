// Memory in whole pages, for data whose place within pages matters.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace apps {

inline constexpr std::size_t kPageBytes = 4096;

// `count` values of T that begin at a page and are not initialised. Throws std::bad_alloc.
template <typename T>
class Pages {
 public:
  explicit Pages(std::size_t count) : count_(count) {
    std::size_t bytes = (count * sizeof(T) + kPageBytes - 1) / kPageBytes * kPageBytes;
    data_.reset(static_cast<T*>(std::aligned_alloc(kPageBytes, bytes == 0 ? kPageBytes : bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::size_t count_;
  std::unique_ptr<T, Free> data_;
};

}  // namespace apps
