// Faults that park, over a runtime of the test's own: "far" pages are protected ones, the fault is a SIGSEGV, and a
// page comes when the test says so.
#include "fiber/fault_parking.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "fiber/parking.hpp"
#include "hinterland/fiber.hpp"
#include "hinterland/hint.h"

namespace {

using namespace hl::fibers;

constexpr std::size_t kPage = 4096, kPages = 256;
enum class Page : std::uint8_t { far, asked, at_the_door, there, never };

std::byte* g_memory;
std::array<std::atomic<Page>, kPages> g_pages;
std::atomic<hl_fault_parker> g_parker{nullptr};
std::atomic<int> g_served{0}, g_parked{0}, g_begun{0};

std::size_t number_of(const void* address) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - g_memory) / kPage;
}
void bring(std::size_t page) { mprotect(g_memory + page * kPage, kPage, PROT_READ | PROT_WRITE); }

int begin(const void* address, std::size_t, std::int32_t, std::uint32_t) {
  ++g_begun;
  Page far = Page::far;
  std::atomic<Page>& page = g_pages[number_of(address)];
  page.compare_exchange_strong(far, Page::asked);
  return page == Page::asked || page == Page::at_the_door;
}
int on_its_way(const void* address, std::size_t) { return g_pages[number_of(address)] != Page::there; }
int poll() {
  int any = 0;
  for (std::size_t page = 0; page < kPages; ++page) {
    Page come = Page::at_the_door;
    if (g_pages[page] != come) continue;
    bring(page);
    any |= g_pages[page].compare_exchange_strong(come, Page::there);
  }
  return any;
}
void set_fault_parker(hl_fault_parker parker) { g_parker = parker; }

// As bus_signal.cpp: the parker is asked, else the page is brought at once.
void on_fault(int, siginfo_t* info, void* context) {
  hl_fault_parker parker = g_parker;
  if (static_cast<std::byte*>(info->si_addr) < g_memory || number_of(info->si_addr) >= kPages) abort();
  if (parker != nullptr && parker(reinterpret_cast<std::uintptr_t>(info->si_addr), 0, context) != 0) {
    ++g_parked;
    return;
  }
  ++g_served;
  std::size_t page = number_of(info->si_addr);
  bring(page);
  g_pages[page] = Page::there;
}

std::uint64_t* at(std::size_t page) { return reinterpret_cast<std::uint64_t*>(g_memory + page * kPage); }
std::uint64_t touch(std::size_t page) { return *static_cast<volatile std::uint64_t*>(at(page)); }
void arrive(std::size_t page) {
  Page asked = Page::asked;
  while (!g_pages[page].compare_exchange_weak(asked, Page::at_the_door))
    asked = Page::asked, std::this_thread::yield();
}
void no_hint(const void*, std::size_t, std::int32_t, std::uint32_t) {}

}  // namespace

// Where the preloaded library's would be. Hints are not what is tested: no address is in its range.
struct hl_runtime hl_runtime = [] {
  struct hl_runtime runtime{};
  runtime.abi_version = 1;
  runtime.hint = no_hint;
  return runtime;
}();
const struct hl_parking hl_parking = {begin, on_its_way, poll, set_fault_parker};

namespace {

class FaultParking : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    void* memory = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    g_memory = static_cast<std::byte*>(memory);
    for (std::size_t page = 0; page < kPages; ++page) *at(page) = page * 7 + 1;
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);  // before the first run(), which puts its own before it
  }
  void SetUp() override {
    if (!hinterland::fiber::can_park_on_faults()) GTEST_SKIP() << "this processor has no XSAVE";
    for (auto& page : g_pages) page = Page::far;
    mprotect(g_memory, kPages * kPage, PROT_NONE);
    g_served = g_parked = g_begun = 0;
  }
  void TearDown() override { EXPECT_EQ(g_parker.load(), nullptr); }  // when no fiber is left
};

TEST_F(FaultParking, AnotherFiberRunsMeanwhile) {
  std::vector<int> order;
  run({.workers = 1}, [&] {
    fiber faulting([&] {
      faults_may_park declared;
      order.push_back(1);
      EXPECT_EQ(touch(3), 22u);
      order.push_back(3);
    });
    fiber other([&] {
      order.push_back(2);
      arrive(3);
    });
    faulting.join();
    other.join();
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(g_parked, 1);
  EXPECT_EQ(g_served, 0);
}

TEST_F(FaultParking, OnlyWhereItIsDeclared) {
  run({.workers = 1}, [] {
    EXPECT_EQ(touch(1), 8u);
    {
      faults_may_park outer;
      {
        faults_may_park inner;
      }
      fiber helper([] { arrive(2); });
      EXPECT_EQ(touch(2), 15u);  // the inner one's end is not the outer one's
      helper.join();
    }
    EXPECT_EQ(touch(4), 29u);
    fiber child([] { EXPECT_EQ(touch(5), 36u); });  // not inherited
    child.join();
  });
  EXPECT_EQ(g_parked, 1);
  EXPECT_EQ(g_served, 3);
}

TEST_F(FaultParking, NotInThreadsAndNotWithBlockingHints) {
  {
    faults_may_park declared;
    EXPECT_EQ(touch(1), 8u);
  }
  run({.workers = 1, .hints_park = false}, [] {
    faults_may_park declared;
    EXPECT_EQ(touch(2), 15u);
  });
  EXPECT_EQ(g_parked, 0);
  EXPECT_EQ(g_served, 2);
}

// In libc a lock may be held, or the address of something of the thread may be in a register.
TEST_F(FaultParking, NotWithinLibc) {
  run({.workers = 1}, [] {
    faults_may_park declared;
    static std::array<char, kPage> copy;
    void* (*volatile copying)(void*, const void*, std::size_t) = std::memcpy;
    copying(copy.data(), at(6), kPage);
    EXPECT_EQ(copy[0], 43);
  });
  EXPECT_EQ(g_parked, 0);
  EXPECT_EQ(g_served, 1);
}

// A handler's frame is its thread's, with the mask and the alternate stack that are put back at its end.
TEST_F(FaultParking, NotInASignalHandler) {
  struct sigaction action{}, before{};
  action.sa_handler = [](int) { touch(7); };
  sigaction(SIGUSR1, &action, &before);
  run({.workers = 1}, [] {
    faults_may_park declared;
    raise(SIGUSR1);
  });
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(g_parked, 0);
  EXPECT_EQ(g_served, 1);
}

// What the hint does not bring (never touched, given up) is the fault's in the end, not parked for again and again.
TEST_F(FaultParking, APageThatDoesNotComeIsServed) {
  g_pages[8] = Page::never;
  run({.workers = 1}, [] {
    faults_may_park declared;
    EXPECT_EQ(touch(8), 57u);
  });
  EXPECT_EQ(g_parked, 1);
  EXPECT_EQ(g_served, 1);
}

__attribute__((noinline)) std::uint64_t touch_deep(std::size_t page, const std::byte* low, std::size_t spare) {
  volatile std::byte frame[512];
  frame[0] = std::byte{1};
  if (static_cast<const std::byte*>(__builtin_frame_address(0)) - low > static_cast<std::ptrdiff_t>(spare))
    return touch_deep(page, low, spare) + static_cast<std::uint64_t>(frame[0]) - 1;
  return touch(page);
}

TEST_F(FaultParking, NotWhereTheStackIsNearlyUsed) {
  run({.workers = 1}, [] {
    fiber deep(
        [] {
          faults_may_park declared;
          // A stack of 32 KiB, whose top is a little above this frame.
          const auto* low = static_cast<const std::byte*>(__builtin_frame_address(0)) - 32 * 1024 + 2048;
          touch_deep(9, low, 6 * 1024);
        },
        {.stack_bytes = 32 * 1024});
    deep.join();
  });
  EXPECT_EQ(g_parked, 0);
  EXPECT_EQ(g_served, 1);
}

TEST_F(FaultParking, ErrnoIsKept) {
  run({.workers = 1}, [] {
    fiber faulting([] {
      faults_may_park declared;
      errno = EDOM;
      touch(3);
      EXPECT_EQ(errno, EDOM);  // one worker: the address is right
    });
    fiber other([] {
      errno = ERANGE;
      arrive(3);
    });
    faulting.join();
    other.join();
  });
  EXPECT_EQ(g_parked, 1);
}

// What an instruction that faults may not lose. In one asm block, so that the compiler has no part in it.
struct Registers {
  std::uint64_t general[13], red_zone[2], carry, loaded;
  alignas(16) std::uint64_t vectors[16][2];
};

__attribute__((noinline)) void load_with_all_registers_in_use(const void* from, Registers& out) {
  Registers* address = &out;
  __asm__ volatile(
      "push %%rbp\n\t"
      "lea -256(%%rsp), %%rsp\n\t"  // the compiler's own red zone stays as it is
      "mov %%rdi, %%r15\n\t"
      "mov $0x101, %%eax\n\tmov $0x102, %%ecx\n\tmov $0x103, %%edx\n\tmov $0x104, %%esi\n\tmov $0x105, %%edi\n\t"
      "mov $0x106, %%ebp\n\tmov $0x107, %%r8d\n\tmov $0x108, %%r9d\n\tmov $0x109, %%r10d\n\tmov $0x10a, %%r11d\n\t"
      "mov $0x10b, %%r12d\n\tmov $0x10c, %%r13d\n\t"
      "movq %%rax, %%xmm0\n\tmovq %%rcx, %%xmm1\n\tmovq %%rdx, %%xmm7\n\tmovq %%r8, %%xmm8\n\tmovq %%r13, %%xmm15\n\t"
      "movq $0x201, -8(%%rsp)\n\tmovq $0x202, -128(%%rsp)\n\t"
      "stc\n\t"
      "mov (%%rbx), %%r14\n\t"  // the fault
      "movq %%rax, 0(%%r15)\n\tmovq %%rcx, 8(%%r15)\n\tmovq %%rdx, 16(%%r15)\n\tmovq %%rsi, 24(%%r15)\n\t"
      "movq %%rdi, 32(%%r15)\n\tmovq %%rbp, 40(%%r15)\n\tmovq %%r8, 48(%%r15)\n\tmovq %%r9, 56(%%r15)\n\t"
      "movq %%r10, 64(%%r15)\n\tmovq %%r11, 72(%%r15)\n\tmovq %%r12, 80(%%r15)\n\tmovq %%r13, 88(%%r15)\n\t"
      "setc %%al\n\tmovzbl %%al, %%eax\n\tmovq %%rax, 120(%%r15)\n\t"
      "movq -8(%%rsp), %%rax\n\tmovq %%rax, 104(%%r15)\n\tmovq -128(%%rsp), %%rax\n\tmovq %%rax, 112(%%r15)\n\t"
      "movq %%r14, 128(%%r15)\n\t"
      "movdqa %%xmm0, 144(%%r15)\n\tmovdqa %%xmm1, 160(%%r15)\n\tmovdqa %%xmm7, 256(%%r15)\n\t"
      "movdqa %%xmm8, 272(%%r15)\n\tmovdqa %%xmm15, 384(%%r15)\n\t"
      "lea 256(%%rsp), %%rsp\n\t"
      "pop %%rbp\n\t"
      : "+b"(from), "+D"(address)
      :
      : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm7",
        "xmm8", "xmm15", "memory", "cc");
}

TEST_F(FaultParking, AllRegistersAndTheRedZoneAreKept) {
  Registers seen{};
  run({.workers = 1}, [&] {
    fiber faulting([&] {
      faults_may_park declared;
      load_with_all_registers_in_use(at(3), seen);
    });
    fiber other([] {
      asm volatile(
          "pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm7, %%xmm7\n\tpxor %%xmm8, %%xmm8\n\t"
          "pxor %%xmm15, %%xmm15" ::
              : "xmm0", "xmm1", "xmm7", "xmm8", "xmm15");
      arrive(3);
    });
    faulting.join();
    other.join();
  });
  EXPECT_EQ(g_parked, 1);
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(seen.general[i], 0x101 + i) << i;
  EXPECT_EQ(seen.red_zone[0], 0x201u);
  EXPECT_EQ(seen.red_zone[1], 0x202u);
  EXPECT_EQ(seen.carry, 1u);
  EXPECT_EQ(seen.loaded, 22u);
  EXPECT_EQ(seen.vectors[0][0], 0x101u);
  EXPECT_EQ(seen.vectors[1][0], 0x102u);
  EXPECT_EQ(seen.vectors[7][0], 0x103u);
  EXPECT_EQ(seen.vectors[8][0], 0x107u);
  EXPECT_EQ(seen.vectors[15][0], 0x10cu);
}

// Each touches every page, on two workers, while a thread lets pages come; all go on, maybe elsewhere, with what is
// right.
TEST_F(FaultParking, ThousandsOfFibers) {
  constexpr int kFibers = 2000;
  std::atomic<bool> end{false};
  std::atomic<int> right{0};
  std::thread door([&] {
    while (!end)
      for (auto& page : g_pages) {
        Page asked = Page::asked;
        page.compare_exchange_strong(asked, Page::at_the_door);
        if (asked == Page::asked) std::this_thread::yield();
      }
  });
  run({.workers = 2}, [&] {
    std::vector<fiber> fibers;
    for (int i = 0; i < kFibers; ++i)
      fibers.emplace_back([&, i] {
        faults_may_park declared;
        std::uint64_t sum = 0;
        for (std::size_t page = 0; page < kPages; page += 8)
          sum += touch((page + static_cast<std::size_t>(i)) % kPages);
        std::uint64_t wanted = 0;
        for (std::size_t page = 0; page < kPages; page += 8)
          wanted += (page + static_cast<std::size_t>(i)) % kPages * 7 + 1;
        right += sum == wanted ? 1 : 0;
      });
    for (fiber& each : fibers) each.join();
  });
  end = true;
  door.join();
  EXPECT_EQ(right, kFibers);
  EXPECT_GT(g_parked, static_cast<int>(kPages) / 2);
}

}  // namespace
