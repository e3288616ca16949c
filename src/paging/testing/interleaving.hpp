// Several movers at work on the same few pages, one schedule at a time: the page machine with a scheduler under it.
// After every step the invariants of docs/architecture.md are looked at as far as they must hold in the midst of
// things; when all movers are done, all of them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/testing/explorer.hpp"
#include "paging/testing/ghost.hpp"
#include "paging/testing/page_machine.hpp"
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
  remap_keep,    // the same with MREMAP_DONTUNMAP: the old place stays, and reads as zeros
  fork,
  fork_fails,
  reuse,  // the heap lets go of the pages and takes them again
  hold,   // the pages stay for a while, because the kernel may write to them without a fault
  // Pages that a device wrote take the place of these, each at one moment, where they are not resident
  // (pager_compose.cpp)
  replace,
  // The same with one word changed of what they hold, where they are far all the while (pager_patch.cpp)
  patch,
};
// The pages that it works on: of two, the range that a call of the program names. A thread reads or writes one page,
// for `all` the last. The evictors and fork always take all.
enum class Part : std::uint8_t { all, first, last };
struct MoverSpec {
  MoverSpec(MoverKind kind_in, Part part_in = Part::all) : kind(kind_in), part(part_in) {}
  MoverKind kind;
  Part part;
};
enum class Start : std::uint8_t { untouched, dirty, clean, parked, far, freed };
enum class Trouble : std::uint8_t {
  none,
  reads_fail,
  one_read_fails,  // or another, or none
  writes_fail,
  one_write_fails,
  device_full,
  pinned,
  shared,
  move_again,
  short_calls
};
std::string name_of(MoverSpec mover);
const char* name_of(Start start);
const char* name_of(Trouble trouble);

struct InterleavingOptions {
  Start start = Start::far;
  std::optional<Start> start_of_last;  // where it is another
  Trouble trouble = Trouble::none;
  bool move = true;
  bool direct = true;
  bool write_protect = true;
  bool second_chance = true;             // clean pages are parked, too
  bool keeps_nothing_in_frames = false;  // the policy says so of each victim
  bool read_ahead = false;               // a fault on the last page brings the one before it
  bool two_handlers = false;             // else one serves all faults
  std::uint32_t pages = 2;               // of the program; with two, runs are moved and taken in part
  // How often an evictor gets victims before the policy has none left. Two movers can take a page from each other as
  // often as it is offered, and with two pages that alone makes more states than all the rest.
  std::uint64_t rounds_max = UINT64_MAX;
  std::uint32_t budget_pages = 64;
  std::uint32_t frames = 8;
};

class Interleaving final : public Explored, public Scheduler::Listener {
 public:
  explicit Interleaving(const InterleavingOptions& options);

  void add(MoverSpec mover);
  // A thread that goes on for `operations` operations of these kinds, on pages of its choice.
  void add_random(std::vector<MoverKind> kinds, std::uint64_t operations, std::uint64_t seed);

  // --- Explored
  std::string run(const Scheduler::Choose& choose, std::uint64_t steps_max = UINT64_MAX) override;
  std::uint64_t state() const override;
  Scheduler& scheduler() override { return scheduler_; }

  // From the policy: false when this evictor has had its rounds.
  bool evictor_goes_round();
  PageMachine& machine() { return *machine_; }
  std::size_t holder(std::uint32_t page) { return kernel_->holder(page); }  // the mover with its busy bit

  // --- Scheduler::Listener
  void word_changed(const void* cell, std::uint64_t before, std::uint64_t after) override;
  std::uint64_t name_of(const void* cell) override;
  bool held_by_mover(const void* cell) override {
    std::uint64_t name = name_of(cell);
    return name < window_pages_ && kernel_->holder(name) == scheduler_.current();
  }
  void stepped() override;

 private:
  static constexpr std::uint64_t kNobodysCell = UINT64_MAX;  // of pages that were never used
  struct Range {
    std::uint32_t first, count;
  };
  // What a forked child has of a far page.
  struct ChildPage {
    far::FarPage far;
    std::array<std::uint64_t, Ghost::kWords> words;
  };

  // Where a page lay that was moved while its place stayed, and what was written to it meanwhile.
  struct Behind {
    std::uintptr_t place;
    std::uint32_t page;
    Ghost::Racing written;
  };

  // The page that pairs of movers meet on; its neighbours before it come with it.
  std::uint32_t target() const { return options_.pages - 1; }
  Range range_of(Part part) const {
    return {part == Part::last ? target() : 0, part == Part::all ? options_.pages : 1};
  }

  Start start_of(std::uint32_t page) const {
    return page == target() ? options_.start_of_last.value_or(options_.start) : options_.start;
  }

  void prepare();
  void check_start();
  void bring_to(std::initializer_list<Start> starts);
  void park_all();
  void restart_handler();
  void fail(const std::string& what, std::uint32_t page);
  std::uintptr_t address_of(std::uint32_t page) const { return data_ + bytes_of_pages(page); }
  std::uint32_t index_of(std::uintptr_t address) const {
    return static_cast<std::uint32_t>((address - machine_->address_of(0)) >> kPageShift);
  }
  std::uint64_t look(std::uint32_t page, std::size_t word);
  void act(MoverKind kind, Range range, std::size_t who);
  void evict(Evictor& evictor);
  bool reach(std::uint32_t page, bool write);
  bool reach_at(std::uintptr_t address);
  std::optional<bool> access(std::uintptr_t address, bool write);
  void read(std::uint32_t page);
  void write(std::uint32_t page, std::size_t who);
  void unmap(Range range);
  void protect(Range range);
  void hold(Range range);
  void replace(Range range);
  void patch(Range range);
  bool patch_far(far::FarPage from, far::FarPage to, std::uint64_t value);
  bool write_far(far::FarPage page, const std::array<std::uint64_t, Ghost::kWords>& words);
  void remap(bool keep_old);
  void look_behind();
  void fork(bool fails);
  void look_at_child(std::uint32_t page);
  void discarded(std::span<const far::FarPage> pages);
  void end_child();
  template <typename Call>
  void clearing(Range range, Call&& call);
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
  std::vector<Behind> behind_;
  unsigned moves_ = 0, replacing_ = 0, reusing_ = 0;  // movers that are at it: mremap, replace, reuse
  unsigned mapping_calls_ = 0;  // under way that may take the mapping from under a thread of the program
  std::uint64_t next_value_ = 0;
  std::size_t programs_ = 0;  // movers that write so far: each has a word of its own in each page
  std::array<bool, Scheduler::kMoversMax> evicting_{};
  std::array<std::uint64_t, Scheduler::kMoversMax> rounds_{};  // of the evictors
  std::vector<ChildPage> child_;                               // of the last fork
  std::string wrong_;
};

}  // namespace hinterland::testing
