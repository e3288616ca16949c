// For tests with the real kernel: a pager lives as long as its process, so each test body runs in a process of its
// own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "paging/pager.hpp"

namespace hinterland::testing {

struct RealPagerOptions {
  std::string far_url = "mem:";
  bool take_by_move = true;
  bool faults_by_signal = false;
  std::uint64_t budget_bytes = Pager::kMinimumBudgetBytes;
  Parts parts = {};
  Reclaim reclaim = Reclaim::adaptive;
  Addresses addresses = Addresses::automatic;
};

// "" or why this kernel, or these privileges, cannot page.
std::string why_no_real_pager();

// After so many seconds a process of a test hangs, however busy the machine. Less than ctest's limit, so that it is
// this process that dies, with a core.
constexpr unsigned kHangSeconds = 240;

// Runs `body` over a fresh pager in a forked process, which is killed when it hangs. The body returns "" or what is
// wrong, which becomes the test's failure.
void run_with_real_pager(const RealPagerOptions& options, const std::function<std::string(Pager&)>& body);

// Whether this process has a thread of that name.
bool has_thread(const std::string& wanted);
// A thread takes its name a moment after it was started. Waits for as long as a test may take.
void wait_for_thread(const std::string& wanted);

// Whether the runtime has as much of the budget free as it wants to keep in hand.
bool has_room_in_hand(Pager& pager);

// What does not add up in a pager that nobody uses at the moment: page words against the kernel, budget, far space.
// `alone`: no other process holds far pages of the same space (a forked child does, also when it has ended).
std::string audit(Pager& pager, bool alone);

}  // namespace hinterland::testing
