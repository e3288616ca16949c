// A second pair of hands for runs of clean pages: they are mapped by a thread of their own, piece by piece, while the
// fault handler receives the next run (docs/adr/0031-runs-are-mapped-by-two.md), and read where the device answers at
// once (docs/adr/0089-runs-are-unpacked-by-two.md).
//
// Whoever has a run to map lends pieces of it, takes back what the helper has not begun when there is nothing better
// to do, and waits for the rest. So a helper that comes late, or never, costs nothing but its help. It sleeps until
// something is lent, and looks for a while before it sleeps again where that has paid.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "paging/place/companions.hpp"
#include "paging/place/spin_budget.hpp"

namespace hinterland {

class Fetcher;

class MapHelper {
 public:
  // Pages that one call maps; COPY of 16 costs 1.03 times what one of 64 does, a page (the floor), and who waits for
  // the last piece waits for 30 us.
  static constexpr std::uint32_t kPiecePages = 16;

  // Of a transfer of the fetcher's that has arrived; all of it stays as it is until the piece is mapped.
  struct Piece {
    Fetcher* fetcher = nullptr;
    std::uint32_t transfer = 0, offset = 0, count = 0;
  };

  explicit MapHelper(Companions& companions) : companions_(companions) {}

  // --- who has something to map. Nothing here blocks but wait()
  // True when the thread is there. When it is not, this asks for it.
  bool ready();
  // False: too much is lent already.
  bool lend(const Piece& piece);
  void call();  // after one or several lend()
  // The oldest piece that nobody has begun. False: there is none.
  bool take(Piece* piece);
  // How many pieces the helper has ever mapped; wait() returns once it is another one than `seen`, or after
  // timeout_ns.
  std::uint32_t mapped() const { return mapped_.load(std::memory_order_acquire); }  // pairs with help()
  void wait(std::uint32_t seen, std::uint64_t timeout_ns);

  // --- the housekeeper, under the pager's map lock: no fork meanwhile
  void set_waker(void (*wake_housekeeper)()) { wake_housekeeper_ = wake_housekeeper; }
  bool wants_start() const { return wanted_.load(std::memory_order_relaxed) && !tried_; }
  void start();
  // In place of start(): others call help(). Of tests.
  void count_as_started() { ready_.store(true, std::memory_order_release); }

  // The thread's work, once. False: there was nothing to do.
  bool help();

  // Nothing is lent when a program forks: handlers are paused.
  void after_fork_in_child();

 private:
  void run();
  void sleep(std::uint32_t calls);

  Companions& companions_;
  void (*wake_housekeeper_)() = nullptr;
  std::atomic<bool> wanted_{false};
  bool tried_ = false;  // the housekeeper's
  std::atomic<bool> ready_{false};

  Mutex mutex_;
  static constexpr std::uint32_t kPiecesMax = 64;
  std::array<Piece, kPiecesMax> pieces_;  // guarded by mutex_; a ring
  std::uint32_t first_ = 0, count_ = 0;   // guarded by mutex_

  // Sequentially consistent: who sleeps says so and then looks at the count, who counts then looks for sleepers.
  std::atomic<std::uint32_t> calls_{0}, mapped_{0};  // futexes
  std::atomic<std::uint32_t> sleeps_{0}, waiters_{0};
  SpinBudget spin_;  // the thread's
};

}  // namespace hinterland
