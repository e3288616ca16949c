// Memory shared with forked children: reserved once, touched as used, without a descriptor that the program could
// close and without counting against RssAnon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.hpp"

namespace hinterland::far {

class SharedMemory {
 public:
  SharedMemory() = default;
  // Reserves address space; pages read as zeros and take memory when written. `purpose` is for the error.
  static Result<SharedMemory> reserve(std::size_t bytes, const char* purpose);
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(data_ + offset);
  }

  // Gives the memory of a page-aligned range back, for all processes; it reads as zeros again. One system call.
  void punch(std::size_t offset, std::size_t length) const;

 private:
  SharedMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// RAM and swap of this machine, in bytes: nothing kept in memory can be larger.
std::uint64_t machine_memory_bytes();

}  // namespace hinterland::far
