// A file of a device, whose descriptor the program may close or lose by calls that nobody sees. The keeper has a
// second copy (descriptor_keeper.hpp) from the time when paging begins; who finds the first one gone takes it back.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <span>

#include "kernel/descriptor_keeper.hpp"

namespace hinterland {

class KeptFile {
 public:
  static constexpr std::size_t kMax = 8;  // more than that are not kept

  // Owns the descriptor.
  explicit KeptFile(int descriptor);
  ~KeptFile();
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  // relaxed: who finds an old number goes through take_back()
  int descriptor() const { return now_.load(std::memory_order_relaxed); }
  // Whether descriptor() is open and still this file. Thread-safe.
  bool is_here() const;
  // After a call with `lost` failed: whether descriptor() is this file again. Keeps errno.
  bool take_back(int lost);

  // Whether one of them is this file, as stat(2) names it. Thread-safe; keeps errno.
  static bool is_one(dev_t device, ino_t number);
  static bool any() { return s_count.load(std::memory_order_relaxed) != 0; }  // relaxed: a number alone

  // For the keeper, when it begins: their numbers. What it keeps is taken back from it.
  static std::size_t begin_keeping(const DescriptorKeeper& keeper, std::span<int> descriptors);
  // Before a fork: a child cannot take back what its parent had lost by then.
  static void take_back_all();
  static void after_fork_in_child();

 private:
  bool take_back_locked();

  static std::atomic<unsigned> s_count;

  std::atomic<int> now_;
  dev_t device_ = 0;
  ino_t number_ = 0;
  int kept_ = -1;  // its number in the keeper's table
};

}  // namespace hinterland
