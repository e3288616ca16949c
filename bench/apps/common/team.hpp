// The measured part on threads or on fibers.
#pragma once

#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace apps {

// Runs body(i) for i of [0, count), each on a thread of its own. Returns when all have ended; throws the first
// exception of any.
template <typename Body>
void on_threads(unsigned count, Body&& body) {
  std::mutex guard;  // of `error`
  std::exception_ptr error;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        try {
          body(i);
        } catch (...) {
          std::lock_guard lock(guard);
          if (error == nullptr) error = std::current_exception();
        }
      });
  }
  if (error != nullptr) std::rethrow_exception(error);
}

// What the i-th of `of` does: [first, last) of `total`. All are about equal, and all that there is.
struct Share {
  std::size_t first, last;
  std::size_t size() const { return last - first; }
};
constexpr Share share(std::size_t total, unsigned i, unsigned of) {
  auto from = [&](unsigned at) { return total / of * at + (at < total % of ? at : total % of); };
  return {from(i), from(i + 1)};
}

}  // namespace apps
