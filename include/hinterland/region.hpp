// Regions (region.h) in C++20: an owner, and memory for the containers of the standard library.
//
//     hl::region far_memory(std::size_t{1} << 30);              // or with options: {.device = "file:/ssd/cold"}
//     hl::region_resource resource(far_memory);
//     std::pmr::vector<int> numbers(&resource);                  // and all other containers of std::pmr
//     std::vector<int, hl::far_allocator<int>> others(hl::far_allocator<int>{resource});
//
// Errors: std::system_error where a region cannot be had; std::bad_alloc where it is full.
#pragma once

#include <cstddef>
#include <map>
#include <memory_resource>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "hinterland/region.h"

namespace hl {

struct region_options {
  std::size_t share = HL_SHARE_COMMON;
  std::int32_t rdahead = HL_RDAHEAD_DEFAULT;
  const char* policy = nullptr;
  const char* device = nullptr;
  const char* tag = nullptr;
};

// Owns a region.
class region {
 public:
  explicit region(std::size_t size, const region_options& how = {}) {
    const hl_region_options options{how.share, how.rdahead, how.policy, how.device, how.tag};
    if (int error = hl_region_create(&region_, size, &options); error != 0)
      throw std::system_error(error, std::generic_category(),
                              std::string("cannot create a region of far memory: ") + hl_region_error());
  }
  ~region() { hl_region_destroy(&region_); }
  region(region&& other) noexcept : region_(std::exchange(other.region_, hl_region{})) {}
  region& operator=(region&& other) noexcept {
    std::swap(region_, other.region_);
    return *this;
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(region_.data); }
  std::size_t size() const noexcept { return region_.size; }

 private:
  hl_region region_{};
};

namespace detail {

// Hands out pieces of a region, each of whole pages but for the small ones that the pools above it never ask for.
// What it knows of free pieces is kept in local memory: looking for one touches none of them. Thread-safe.
class pieces final : public std::pmr::memory_resource {
 public:
  explicit pieces(const region& whole) : begin_(whole.data()) {
    if (whole.size() != 0) free_.emplace(0, whole.size());
  }

 private:
  using Free = std::map<std::size_t, std::size_t>;  // offset, length
  static constexpr std::size_t kUnit = 64;

  static std::size_t rounded(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > static_cast<std::size_t>(-1) / 2) throw std::bad_alloc();
    bytes = rounded(bytes == 0 ? 1 : bytes);
    alignment = alignment < kUnit ? kUnit : alignment;
    const std::lock_guard guard(mutex_);
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      auto [offset, length] = *at;
      const std::size_t skipped = (alignment - (address_of(offset) & (alignment - 1))) & (alignment - 1);
      if (length < skipped || length - skipped < bytes) continue;
      // What may throw comes first: nothing is lost when it does.
      if (length - skipped > bytes) free_.emplace(offset + skipped + bytes, length - skipped - bytes);
      if (skipped != 0)
        at->second = skipped;
      else
        free_.erase(at);
      return begin_ + offset + skipped;
    }
    throw std::bad_alloc();
  }

  // Local memory for the entry may be short: then the piece is lost to the region, not the program.
  void do_deallocate(void* pointer, std::size_t bytes, std::size_t) override {
    std::size_t offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - begin_);
    std::size_t length = rounded(bytes == 0 ? 1 : bytes);
    const std::lock_guard guard(mutex_);
    auto after = free_.lower_bound(offset);
    if (after != free_.end() && offset + length == after->first) {
      length += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == offset) {
        before->second += length;
        return;
      }
    }
    try {
      free_.emplace_hint(after, offset, length);
    } catch (const std::bad_alloc&) {
    }
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  std::size_t address_of(std::size_t offset) const { return reinterpret_cast<std::size_t>(begin_) + offset; }

  std::byte* begin_;
  std::mutex mutex_;
  Free free_;  // guarded by mutex_
};

}  // namespace detail

// Memory out of a region, which must outlive it, for std::pmr. Small blocks of a size lie together. Thread-safe.
class region_resource final : public std::pmr::memory_resource {
 public:
  explicit region_resource(const region& whole) : pieces_(whole) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override { return pools_.allocate(bytes, alignment); }
  void do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) override {
    pools_.deallocate(pointer, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  detail::pieces pieces_;
  std::pmr::synchronized_pool_resource pools_{&pieces_};
};

// For containers with an allocator of their own type. Equal when the resource is the same; copies of a container keep
// it.
template <typename T>
class far_allocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  explicit far_allocator(region_resource& resource) noexcept : resource_(&resource) {}
  template <typename U>
  far_allocator(const far_allocator<U>& other) noexcept : resource_(other.resource()) {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(resource_->allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* pointer, std::size_t count) noexcept {
    resource_->deallocate(pointer, count * sizeof(T), alignof(T));
  }
  region_resource* resource() const noexcept { return resource_; }
  template <typename U>
  bool operator==(const far_allocator<U>& other) const noexcept {
    return resource_ == other.resource();
  }

 private:
  region_resource* resource_;
};

}  // namespace hl
