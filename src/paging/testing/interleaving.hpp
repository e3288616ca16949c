// Several movers at work on the same few pages, one schedule at a time: the page machine with a scheduler under it.
// After every step the invariants of DESIGN.md 4 are looked at as far as they must hold in the midst of things; when
// all movers are done, all of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "paging/testing/ghost.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/scheduler.hpp"
#include "paging/testing/stepped_kernel.hpp"

namespace hinterland::testing {

enum class MoverKind : std::uint8_t {
  read,          // a thread of the program reads, and the handler serves its fault
  write,         // the same with a write
  evict,         // the background evictor, which expires frames when there is nothing to evict
  evict_direct,  // the handler's evictor
  drop,          // MADV_DONTNEED
  unmap,         // munmap, and a new mapping in its place
  protect,       // read-only, and writable again
  remap,         // mremap to another place
  fork,
  fork_fails,
  reuse,  // the heap lets go of the pages and takes them again
};
enum class Start : std::uint8_t { untouched, dirty, clean, parked, far, freed };
enum class Trouble : std::uint8_t {
  none,
  reads_fail,
  writes_fail,
  device_full,
  pinned,
  shared,
  move_again,
  short_calls
};
const char* name_of(MoverKind kind);
const char* name_of(Start start);
const char* name_of(Trouble trouble);

struct InterleavingOptions {
  Start start = Start::far;
  Trouble trouble = Trouble::none;
  bool move = true;
  bool direct = true;
  bool write_protect = true;
  bool second_chance = true;  // clean pages are parked, too
  std::uint32_t pages = 2;    // of the program; with two, runs are moved and taken in part
  std::uint32_t budget_pages = 64;
  std::uint32_t frames = 8;
};

class Interleaving final : public Scheduler::Listener {
 public:
  explicit Interleaving(const InterleavingOptions& options);

  void add(MoverKind kind);
  // A thread that goes on for `operations` operations of these kinds, on pages of its choice.
  void add_random(std::vector<MoverKind> kinds, std::uint64_t operations, std::uint64_t seed);
  // One schedule. "" or what is wrong.
  std::string run(const Scheduler::Choose& choose, std::uint64_t steps_max = UINT64_MAX);
  // Everything that the future depends on.
  std::uint64_t state() const;
  Scheduler& scheduler() { return scheduler_; }
  // From the policy.
  void evictor_goes_round();

  // --- Scheduler::Listener
  void word_changed(const void* cell, std::uint64_t before, std::uint64_t after) override;
  std::uint64_t name_of(const void* cell) override;
  bool held_by_mover(const void* cell) override { return kernel_->holder(name_of(cell)) == scheduler_.current(); }
  void stepped() override;

 private:
  // The page that pairs of movers meet on; its neighbours before it come with it.
  std::uint32_t target() const { return options_.pages - 1; }

  void prepare();
  void fail(const std::string& what, std::uint32_t page);
  std::uintptr_t address_of(std::uint32_t page) const { return data_ + bytes_of_pages(page); }
  std::uint64_t look(std::uint32_t page, std::size_t word);
  void act(MoverKind kind, std::uint32_t page, std::size_t who);
  bool reach(std::uint32_t page, bool write);
  void read(std::uint32_t page);
  void write(std::uint32_t page, std::size_t who);
  void protect();
  void remap();
  void fork(bool fails);
  void look_at_child(std::uint32_t page);
  template <typename Call>
  void clearing(Call&& call);
  std::string finish();
  void faults_over();
  void settle_policy();
  void check_page(std::uint32_t page);
  void check_bound();

  InterleavingOptions options_;
  std::uint32_t window_pages_;  // at most 64; the upper half is where mremap goes
  SteppedKernel* kernel_;       // owned by the machine
  std::unique_ptr<PageMachine> machine_;
  Scheduler scheduler_;
  Ghost ghost_;
  std::uintptr_t data_ = 0;
  unsigned mapping_calls_ = 0;  // under way that may take the mapping from under a thread of the program
  std::uint64_t next_value_ = 0;
  std::size_t programs_ = 0;  // movers that write so far: each has a word of its own in each page
  std::array<bool, Scheduler::kMoversMax> evicting_{};
  std::array<std::uint64_t, Scheduler::kMoversMax> rounds_{};  // of the evictors
  std::string wrong_;
};

}  // namespace hinterland::testing
