// What a system call uses that we make ourselves, in signal mode: brought in, and kept there meanwhile. (For libc's
// own calls the signal room does it.)
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "preload/state.hpp"

namespace hinterland {

class HeldForCall {
 public:
  // `pointer`: anything. Where it is not far, nothing happens.
  HeldForCall(const void* pointer, std::size_t bytes)
      : address_(reinterpret_cast<std::uintptr_t>(pointer)), bytes_(bytes) {
    held_ = mode() == Mode::far && pager().faults_by_signal() && pager().contains(address_);
    if (!held_) return;
    int saved_errno = errno;
    InsideRuntime inside;
    pager().hold_for_call(address_, bytes_, true);
    errno = saved_errno;
  }
  ~HeldForCall() {
    if (!held_) return;
    int saved_errno = errno;
    InsideRuntime inside;
    pager().let_go_after_call(address_, bytes_);
    errno = saved_errno;
  }
  HeldForCall(const HeldForCall&) = delete;
  HeldForCall& operator=(const HeldForCall&) = delete;

 private:
  std::uintptr_t address_;
  std::size_t bytes_;
  bool held_;
};

}  // namespace hinterland
