// The functions that ours stand in for: the next ones in the lookup order, which are libc's, or another preloaded
// library's.
#pragma once

#include <atomic>

#include "preload/libc_symbol.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland {

// One function. Looked up at first use, or by resolve().
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  // nullptr when libc has no such function.
  Function* get() {
    // relaxed: every thread would find the same address
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      // This needs a kilobyte, and the loader's lock.
      found = uninterrupted([this] { return find_next(name_); });
      found_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(found);
  }
  void resolve() { static_cast<void>(get()); }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

}  // namespace hinterland
