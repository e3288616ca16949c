// Linux swap to compare with: an unused zram device and a memory cgroup (v1 or v2), for the length of one object.
// Swap that is on already, and a device that somebody uses, are never touched: then there is no comparison.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "cli/compare/decoys.hpp"

namespace hinterland::cli {

// One at a time in a process; one thread. What it set up is taken down when it goes. Only SIGKILL leaves it behind.
class SwapLimit {
 public:
  // Why there is no swap to compare with, and what to do; changes nothing.
  static Status check();
  // Swap of so many bytes on zram, and a cgroup that may have `memory_bytes` of memory. Blocks for milliseconds.
  static Result<SwapLimit> make(std::uint64_t memory_bytes, std::uint64_t swap_bytes);
  SwapLimit(SwapLimit&& other) noexcept;
  SwapLimit& operator=(SwapLimit&&) = delete;
  ~SwapLimit();  // what could not be taken down is said, with the commands that do it

  // The process, and all that it starts from now on, is under the limit. The kernel kills decoys in its place.
  Status hold(pid_t process) const;
  // Bytes since the start: the most memory that the group had, and the most that zram took for what was swapped out.
  std::uint64_t peak_bytes() const;
  std::uint64_t pages_in() const;  // of the whole machine
  unsigned kills_diverted() const { return decoys_->killed(); }

 private:
  SwapLimit() = default;
  std::string group_;
  bool first_version_ = false, swap_is_on_ = false, device_is_ours_ = false;
  std::uint64_t pages_in_before_ = 0;
  std::unique_ptr<Decoys> decoys_;
};

}  // namespace hinterland::cli
