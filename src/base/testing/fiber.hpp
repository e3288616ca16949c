// A body that runs on a stack of its own and can be left and entered again at any place: what lets a scheduler
// interleave movers within one thread, so that a schedule can be repeated exactly. The sanitizers know nothing of it.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace hinterland::testing {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Only while the last body is done.
  void set_body(std::function<void()> body) {
    body_ = std::move(body);
    done_ = false;
  }
  // From outside: runs until the body leaves or ends.
  void enter();
  // From the body: back to who entered.
  void leave();
  bool done() const { return done_; }

 private:
  static void entry(unsigned high, unsigned low);
  void loop();

  ucontext_t context_{}, outside_{};
  std::byte* stack_ = nullptr;
  std::function<void()> body_;
  bool done_ = true;
  int inside_runtime_ = 0;  // each mover is a thread of its own in this, too (base/inside.hpp)
};

}  // namespace hinterland::testing
