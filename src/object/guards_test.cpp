// Guards against evacuators, signals and each other.
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include <sys/time.h>

#include "object/guards_test_support.hpp"

namespace hinterland::object::testing {
namespace {

TEST(Guards, EverySizeOfAccess) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  auto* block = static_cast<unsigned char*>(allocate_block(64, true));
  guarded_write_1(block, 0x81);
  guarded_write_2(block + 2, 0x8283);
  guarded_write_4(block + 4, 0x84858687);
  guarded_write_8(block + 8, 0x88898a8b8c8d8e8f);
  EXPECT_EQ(guarded_read_1(block), 0x81u);
  EXPECT_EQ(guarded_read_2(block + 2), 0x8283u);
  EXPECT_EQ(guarded_read_4(block + 4), 0x84858687u);
  EXPECT_EQ(guarded_read_8(block + 8), 0x88898a8b8c8d8e8fu);
  EXPECT_EQ(guarded_read_1(block + 1), 0u);
  EXPECT_EQ(guarded_read_8(block + 16), 0u);
  unsigned char bytes[16];
  hl_guard_read_bytes(bytes, block, 16);
  EXPECT_EQ(bytes[0], 0x81);
  EXPECT_EQ(bytes[15], 0x88);
  std::memset(bytes, 0x55, 16);
  hl_guard_write_bytes(block + 30, bytes, 16);
  EXPECT_EQ(guarded_read_1(block + 29), 0u);
  EXPECT_EQ(guarded_read_1(block + 30), 0x55u);
  EXPECT_EQ(guarded_read_1(block + 45), 0x55u);
  EXPECT_EQ(guarded_read_1(block + 46), 0u);
  hl_guard_fill(block, 0x66, 64);
  EXPECT_EQ(guarded_read_8(block + 56), 0x6666666666666666u);
  EXPECT_EQ(window->pages_brought_home(), 0u);
  release_block(block);
}

TEST(Guards, MovesOfBytes) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  auto* block = static_cast<char*>(allocate_block(256, true));
  auto* other = static_cast<char*>(allocate_block(256, true));
  char text[256], back[256];
  for (int i = 0; i < 256; ++i) text[i] = static_cast<char>(i * 7);
  move_bytes(block, text, 256);
  move_bytes(other, block, 256);
  move_bytes(block + 10, block, 200);  // they overlap
  move_bytes(back, block + 10, 200);
  EXPECT_EQ(std::memcmp(back, text, 200), 0);
  move_bytes(block, block + 10, 200);
  move_bytes(back, block, 200);
  EXPECT_EQ(std::memcmp(back, text, 200), 0);
  move_bytes(back, other, 256);
  EXPECT_EQ(std::memcmp(back, text, 256), 0);
  move_bytes(text, back, 256);
  EXPECT_EQ(window->pages_brought_home(), 0u);
  release_block(block);
  release_block(other);
}

// --- copies of blocks, for loops
// --------------------------------------------------------------------------------------------------

struct Room {
  alignas(64) std::byte bytes[kBorrowedRoom];
};

TEST(GuardsCopies, WhatIsBorrowedIsTheBlocks) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(1, 6);  // 48 bytes
  std::uint64_t* block = blocks[0];
  Room room;
  std::memset(&room, 0xee, sizeof room);
  auto* all = static_cast<std::uint64_t*>(borrow_bytes(block, INTPTR_MIN, INTPTR_MAX, room.bytes));
  ASSERT_NE(all, block);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(all[i], Blocks::word_of(0, i));
  EXPECT_EQ(all[6], 0xeeeeeeeeeeeeeeee);  // behind its end
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(all) - reinterpret_cast<std::uintptr_t>(block)) % 64, 0u);
  std::memset(&room, 0xee, sizeof room);
  auto* some = static_cast<std::uint64_t*>(borrow_bytes(block + 2, -8, 16, room.bytes)) - 2;
  EXPECT_EQ(some[0], 0xeeeeeeeeeeeeeeee);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(some[i], Blocks::word_of(0, i));
  EXPECT_EQ(some[4], 0xeeeeeeeeeeeeeeee);
  // From a pointer before the block, as programs have for arrays that are numbered from 1.
  auto* before = static_cast<std::uint64_t*>(borrow_bytes(block, 40, INTPTR_MAX, room.bytes));
  EXPECT_EQ(before[5], Blocks::word_of(0, 5));
}

TEST(GuardsCopies, WhatIsNoBlocksIsLeftWhereItIs) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  void* block = allocate_block(100, true);
  Room room;
  EXPECT_EQ(borrow_bytes(block, 200, 300, room.bytes), block);
  EXPECT_EQ(borrow_bytes(block, -300, 0, room.bytes), block);
  EXPECT_EQ(borrow_bytes(block, 8, 8, room.bytes), block);
  EXPECT_EQ(borrow_bytes(block, INTPTR_MAX, INTPTR_MIN, room.bytes), block);
  release_block(block);
  EXPECT_EQ(borrow_bytes(block, 0, 100, room.bytes), block);
  give_back_bytes(block, block, 0, 100);  // of nothing that was borrowed
}

TEST(GuardsCopies, OnlyWhatWasWrittenGoesBack) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(1, 256);
  std::uint64_t* block = blocks[0];
  Room room;
  auto* copy = static_cast<std::uint64_t*>(borrow_bytes(block, INTPTR_MIN, INTPTR_MAX, room.bytes));
  for (std::size_t i = 0; i < 256; ++i) copy[i] = i;
  guarded_write(block + 9, 77);  // by another thread, meanwhile
  give_back_bytes(block, copy, 80, 160);
  EXPECT_EQ(guarded_read(block + 9), 77u);
  for (std::size_t i = 10; i < 20; ++i) EXPECT_EQ(guarded_read(block + i), i);
  EXPECT_EQ(guarded_read(block + 20), Blocks::word_of(0, 20));
  EXPECT_EQ(window->pages_brought_home(), 0u);
}

TEST(GuardsCopies, OfBlocksThatAreFarOrHome) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(10'000, 250);  // 20 MB
  Room room;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 100 == 0) static_cast<void>(*static_cast<volatile std::uint64_t*>(blocks[i]));  // its page goes home
    auto* copy = static_cast<std::uint64_t*>(borrow_bytes(blocks[i], 0, 2000, room.bytes));
    for (std::size_t at = 0; at < 250; ++at) ASSERT_EQ(copy[at], Blocks::word_of(i, at));
    for (std::size_t at = 0; at < 250; ++at) copy[at] = Blocks::word_of(i + 1, at);
    give_back_bytes(blocks[i], copy, 0, 2000);
  }
  EXPECT_NE(current_heap()->figures().brought.load(), 0u);
  EXPECT_NE(window->pages_brought_home(), 0u);
  EXPECT_EQ(blocks.count_wrong(1), 0u);
}

// --- what all of them rest on
// ----------------------------------------------------------------------------------------

// A guard that takes its time: reads the word, says so, and uses what it has read only when it may.
extern "C" std::uint64_t hl_test_slow_guard(const Word* word, const std::atomic<std::uint32_t>* may_go,
                                            std::atomic<std::uint32_t>* begun);
__asm__(R"asm(
.pushsection .text
.type hl_test_slow_guard, @function
hl_test_slow_guard:
1:mov hl_guard_sequence_at(%rip), %r10
  lea 9f(%rip), %rax
  mov %rax, %fs:(%r10)
2:mov (%rdi), %rax
  lock incl (%rdx)
3:pause
  cmpl $0, (%rsi)
  je 3b
4:ret
  .byte 0x0f, 0xb9, 0x3d
  .long 0x53053053
5:jmp 1b
.pushsection .data.rel.ro, "aw"
.p2align 5
9:.long 0, 0
  .quad 2b, 4b - 2b, 5b
.popsection
.popsection
)asm");

// Without Grace::restart_guards() the guard goes on with the word that it has read before (unless the scheduler
// happens to interrupt it).
TEST(Guards, NoGuardGoesOnWithAWordThatEvacuatorsHaveWaitedFor) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  for (int round = 0; round < 20; ++round) {
    Word word{1};
    std::atomic<std::uint32_t> may_go{0}, begun{0};
    std::uint64_t used = 0;
    std::thread guard([&] { used = hl_test_slow_guard(&word, &may_go, &begun); });
    while (begun.load() == 0) std::this_thread::yield();
    word.store(2);
    const std::atomic<bool> never{false};
    EXPECT_TRUE(current_heap()->grace().wait(never));
    may_go.store(1);
    guard.join();
    EXPECT_EQ(used, 2u);
  }
}

constexpr std::size_t kCounters = 250'000;

std::uint64_t sum_of(const std::vector<std::uint64_t*>& counters) {
  std::uint64_t sum = 0;
  for (std::uint64_t* counter : counters) sum += guarded_read(counter);
  return sum;
}

// Each thread counts in blocks of its own, which lie beside those of the others, some of them without a guard, while
// evacuators take what they can: a store that went to an object that has moved would be missing at the end.
void count_beside_each_other(bool also_plainly) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  constexpr unsigned kThreads = 4;
  constexpr std::uint64_t kSteps = 150'000;
  std::vector<std::uint64_t*> counters;
  for (std::size_t i = 0; i < kCounters; ++i) {
    counters.push_back(static_cast<std::uint64_t*>(allocate_block(64, true)));
    ASSERT_NE(counters.back(), nullptr);
  }
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      std::mt19937_64 random(number);
      for (std::uint64_t step = 0; step < kSteps; ++step) {
        std::uint64_t* counter = counters[random() % (kCounters / kThreads) * kThreads + number];
        volatile std::uint64_t* plain = counter;
        if (also_plainly && step % 64 == 0)
          *plain = *plain + 1;
        else
          guarded_write(counter, guarded_read(counter) + 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum_of(counters), kThreads * kSteps);
  EXPECT_GT(current_heap()->figures().left.load(), kCounters);
  EXPECT_EQ(window->pages_brought_home() != 0, also_plainly);
  for (std::uint64_t* counter : counters) release_block(counter);
}

TEST(GuardsThreads, NothingThatIsWrittenIsLost) { count_beside_each_other(false); }
TEST(GuardsThreads, NothingThatIsWrittenIsLostWithPagesThatGoHome) { count_beside_each_other(true); }

TEST(GuardsThreads, BlocksThatAreMadeAndFreedMeanwhile) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number)
    threads.emplace_back([number] {
      std::mt19937_64 random(number);
      std::vector<std::pair<std::uint64_t*, std::uint64_t>> blocks(20'000);
      for (std::uint64_t step = 0; step < 100'000; ++step) {
        auto& [block, value] = blocks[random() % blocks.size()];
        if (block != nullptr) {
          EXPECT_EQ(step % 50 == 0 ? *static_cast<volatile std::uint64_t*>(block) : guarded_read(block), value);
          release_block(block);
        }
        block = static_cast<std::uint64_t*>(allocate_block(16 + random() % 300, false));
        guarded_write(block, value = random());
      }
      for (auto& [block, value] : blocks) {
        if (block == nullptr) continue;
        EXPECT_EQ(guarded_read(block), value);
        release_block(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
  wait_until_nothing_is_far();
  EXPECT_EQ(current_heap()->far().live_bytes(), 0u);
}

// --- signals
// ---------------------------------------------------------------------------------------------------------

sigjmp_buf g_back;
volatile std::sig_atomic_t g_may_leave = 0, g_left = 0;
std::uint64_t* g_signals = nullptr;  // counted in the window, by the handler

void leave(int) {
  guarded_write(g_signals, guarded_read(g_signals) + 1);
  if (g_may_leave == 0) return;
  g_may_leave = 0;
  g_left = g_left + 1;
  siglongjmp(g_back, 1);
}

// A handler that uses the window itself, and leaves a guard that it has interrupted for good: nobody waits for that
// guard afterwards, and no lock is taken.
TEST(GuardsSignals, AHandlerThatLeavesWithSiglongjmp) {
  WindowForTest window;
  HL_WINDOW_OR_SKIP(window);
  Blocks blocks(kCounters, 8);
  g_signals = static_cast<std::uint64_t*>(allocate_block(64, true));
  struct sigaction action{}, before{};
  action.sa_handler = leave;
  sigaction(SIGALRM, &action, &before);
  g_left = 0;
  const itimerval often{{0, 500}, {0, 500}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  static std::mt19937_64 random(1);
  static volatile std::size_t wrong = 0;
  wrong = 0;
  while (g_left < 500) {
    if (sigsetjmp(g_back, 1) != 0) continue;
    g_may_leave = 1;
    for (;;) {
      const std::size_t i = random() % kCounters;
      if (!blocks.holds(i, i)) wrong = wrong + 1;
    }
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(guarded_read(g_signals), 500u);
  const std::uint64_t left = current_heap()->figures().left.load();
  EXPECT_EQ(blocks.count_wrong(), 0u);
  EXPECT_TRUE(wait_until_left(left + kCounters / 4));  // evacuators still get through
  release_block(g_signals);
}

// --- modules
// ---------------------------------------------------------------------------------------------------------

std::string said_of(GuardedModule& module) {
  ::testing::internal::CaptureStderr();
  take_guarded_module(module, [] { ADD_FAILURE() << "no window can begin here"; });
  return ::testing::internal::GetCapturedStderr();
}

TEST(GuardsModules, AnotherVersionIsLeftAlone) {
  GuardedModule newer{3, sizeof(GuardedModule), 0, 0, {}}, longer{2, sizeof(GuardedModule) + 8, 0, 0, {}};
  EXPECT_NE(said_of(newer).find("guards by the compiler of version 3"), std::string::npos);
  EXPECT_NE(said_of(longer).find("stays on pages"), std::string::npos);
  EXPECT_EQ(newer.size, 0u);
  EXPECT_EQ(newer.entries[0], nullptr);
}

// As this one, whose free() is not the preloaded library's.
TEST(GuardsModules, AProgramWithAMallocOfItsOwn) {
  GuardedModule module{2, sizeof(GuardedModule), 0, 0, {}};
  EXPECT_NE(said_of(module).find("the program has a malloc of its own"), std::string::npos);
  EXPECT_EQ(module.size, 0u);
}

}  // namespace
}  // namespace hinterland::object::testing
