// What the kernel has pinned, over the real kernel: without MOVE nobody sees it, and what a call may pin is held
// (docs/adr/0078-pins-without-move.md).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "base/units.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr std::uint64_t kPages = 4 * Pager::kMinimumBudgetBytes / kPageSize;
constexpr std::uint64_t kHeldPages = 64;

struct Memory {
  std::uintptr_t base;
  std::uint64_t& word(std::uint64_t page) const { return *reinterpret_cast<std::uint64_t*>(base + page * kPageSize); }
  void write(std::uint64_t first, std::uint64_t count, std::uint64_t seed) const {
    for (std::uint64_t page = first; page < first + count; ++page) word(page) = page * 3 + seed;
  }
  std::uint64_t wrong(std::uint64_t first, std::uint64_t count, std::uint64_t from, std::uint64_t seed) const {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < count; ++i) wrong += word(first + i) != (from + i) * 3 + seed;
    return wrong;
  }
};

std::uint64_t count_present(Pager& pager, const Memory& memory, std::uint64_t pages) {
  std::array<std::uint64_t, kHeldPages / 64> bits{};
  if (PagerParts::of(pager).core.kernel.present(memory.base, pages, bits) != 0) return 0;
  std::uint64_t count = 0;
  for (std::uint64_t word : bits) count += static_cast<std::uint64_t>(__builtin_popcountll(word));
  return count;
}

struct PagerPins : ::testing::Test {
  void SetUp() override {
    if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(PagerPins, WhatACallHoldsStaysUntilItIsLetGoOf) {
  run_with_real_pager({.take_by_move = false}, [](Pager& pager) -> std::string {
    if (pager.sees_pins()) return "pins are seen without MOVE";
    const std::intptr_t mapped = pager.map(kPages * kPageSize, kPageSize, PROT_READ | PROT_WRITE);
    if (mapped < 0) return "cannot map";
    const Memory memory{static_cast<std::uintptr_t>(mapped)};
    memory.write(0, kPages, 0);
    if (!pager.hold_for_call(memory.base, kHeldPages * kPageSize, true)) return "cannot hold";
    memory.write(0, kPages, 1);
    memory.write(0, kPages, 2);
    if (count_present(pager, memory, kHeldPages) != kHeldPages) return "a page left that a call holds";
    pager.let_go_after_call(memory.base, kHeldPages * kPageSize);
    for (std::uint64_t round = 3; round < 50; ++round) {
      memory.write(kHeldPages, kPages - kHeldPages, round);
      if (count_present(pager, memory, kHeldPages) == 0) return memory.wrong(0, kHeldPages, 0, 2) == 0 ? "" : "wrong";
    }
    return "pages stayed that nobody holds any more";
  });
}

// The kernel pins the pages that it writes to and then reads what it writes there, which is far: while these pages
// come, others leave.
TEST_F(PagerPins, WhatTheKernelWritesToPinnedPagesIsNotLost) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr std::uint64_t kRounds = 12;  // what may be wrong here is the kernel's doing, which they do not see
#else
  constexpr std::uint64_t kRounds = 40;
#endif
  constexpr std::uint64_t kCopied = 256, kTo = kCopied, kOthers = 2 * kCopied;
  for (bool by_move : {true, false})
    run_with_real_pager({.take_by_move = by_move}, [](Pager& pager) -> std::string {
      const bool holds = !pager.sees_pins();  // also where the kernel has no MOVE
      const std::intptr_t mapped = pager.map(kPages * kPageSize, kPageSize, PROT_READ | PROT_WRITE);
      if (mapped < 0) return "cannot map";
      const Memory memory{static_cast<std::uintptr_t>(mapped)};
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        memory.write(0, kCopied, round);
        memory.write(kOthers, kPages - kOthers, round);  // it leaves
        memory.write(kTo, kCopied, 77);
        memory.write(kOthers, 200 + round * 800 / kRounds, round);  // more and more of these are to leave next
        const std::uintptr_t target = memory.base + kTo * kPageSize;
        if (holds) pager.hold_for_call(target, kCopied * kPageSize, true);
        iovec here{reinterpret_cast<void*>(memory.base), kCopied * kPageSize};
        iovec there{reinterpret_cast<void*>(target), kCopied * kPageSize};
        if (process_vm_writev(getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(kCopied * kPageSize))
          return "not written";
        if (holds) pager.let_go_after_call(target, kCopied * kPageSize);
        if (memory.wrong(kTo, kCopied, 0, round) != 0) return "what the kernel wrote is lost";
      }
      return audit(pager, true);
    });
}

// Until the process ends. False: there is no io_uring.
bool pin(std::uintptr_t address, std::size_t length) {
  io_uring_params about{};
  const long ring = syscall(SYS_io_uring_setup, 1, &about);
  iovec buffer{reinterpret_cast<void*>(address), length};
  return ring >= 0 && syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1) == 0;
}

// What is pinned stays. To find that out, memory that may not be written can be written for a moment, by its mapping;
// until that is over its pages may not be.
TEST_F(PagerPins, NobodyWritesToPagesThatStayInMemoryThatMayNotBeWritten) {
  run_with_real_pager({}, [](Pager& pager) -> std::string {
    const std::intptr_t mapped = pager.map(kPages * kPageSize, kPageSize, PROT_READ | PROT_WRITE);
    if (mapped < 0) return "cannot map";
    const Memory memory{static_cast<std::uintptr_t>(mapped)};
    memory.write(0, kHeldPages, 1);
    if (!pager.sees_pins() || !pin(memory.base, kHeldPages * kPageSize)) return "";
    if (pager.protect(memory.base, kHeldPages * kPageSize, PROT_READ) != 0) return "cannot protect";
    std::atomic<bool> stopped = false;
    std::uint64_t written = 0, refused = 0;
    std::thread writer([&] {
      const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
      for (std::uint64_t page = 0; !stopped.load(); page = (page + 1) % kHeldPages)
        ++(read(zeros, &memory.word(page), 8) > 0 ? written : refused);
      close(zeros);
    });
    for (std::uint64_t round = 0; round < 10; ++round) memory.write(kHeldPages, kPages - kHeldPages, round);
    stopped.store(true);
    writer.join();
    if (refused == 0) return "nobody has tried";
    return written == 0 && memory.wrong(0, kHeldPages, 0, 1) == 0 ? "" : std::to_string(written) + " were written";
  });
}

// What comes in may be the only page that can leave. Who brought it may not take it again before it was used: the
// thread would fault on it for ever.
TEST_F(PagerPins, AFaultIsOverThoughAllElseIsHeld) {
  constexpr std::uint64_t kHeld = Pager::kMinimumBudgetBytes / kPageSize;
  for (bool by_signal : {false, true}) {
    run_with_real_pager({.faults_by_signal = by_signal}, [](Pager& pager) -> std::string {
      const std::intptr_t mapped = pager.map(kPages * kPageSize, kPageSize, PROT_READ | PROT_WRITE);
      if (mapped < 0) return "cannot map";
      const Memory memory{static_cast<std::uintptr_t>(mapped)};
      for (std::uint64_t round = 0; round < 3; ++round)
        for (std::uint64_t i = 0; i < kPages; ++i) memory.word(i * 1031 % kPages) = i;  // scattered
      memory.write(0, kPages, 0);
      pager.hold_for_call(memory.base, kHeld * kPageSize, true);
      memory.write(0, kHeld, 1);
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < kPages; i += 2) {
        const std::uint64_t page = i * 1031 % kPages;
        if (page < kHeld) continue;
        wrong += memory.word(page) != page * 3;
        memory.word(page) = page * 3;
      }
      pager.let_go_after_call(memory.base, kHeld * kPageSize);
      return wrong + memory.wrong(0, kHeld, 0, 1) == 0 ? "" : "wrong";
    });
  }
}

}  // namespace
}  // namespace hinterland::testing
