// The pager's parts, put together. Private to the paging room.
//
// Locks, outermost first: map_mutex, then the lanes of hints, the handlers' and the evictors' own (through pause()
// and mutex()), then Core::protection_mutex, the policy's, the frame ring's. Whoever waits for a page's busy bit may
// hold only map_mutex: the movers that hold pages never take it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "paging/heap_calls.hpp"
#include "paging/out/evictor.hpp"
#include "paging/out/hermit_reclaimers.hpp"
#include "paging/out/reclaimer.hpp"
#include "paging/page/copy_mark.hpp"
#include "paging/page/core.hpp"
#include "paging/pager.hpp"
#include "paging/place/program_threads.hpp"
#include "paging/regions.hpp"
#include "paging/serve/handler_team.hpp"
#include "paging/serve/hints.hpp"
#include "paging/serve/signal_faults.hpp"

namespace hinterland {

struct Pager::Impl {
  Impl(Kernel& kernel, std::unique_ptr<far::Device> device, std::string url = {})
      : core(kernel, std::move(device), std::move(url)),
        hints(core),
        handlers(core, threads),
        signal_faults(core, handlers) {}

  Core core;
  Hints hints;
  HeapCalls heap_calls;
  PagerOptions options;
  ProgramThreads threads;
  Mutex map_mutex;
  Regions regions;  // guarded by map_mutex
  CopyMark copy_mark;
  std::unique_ptr<Evictor> background;
  std::unique_ptr<Evictor> direct;
  HandlerTeam handlers;
  SignalFaults signal_faults;
  std::unique_ptr<Reclaimer> reclaimer;
  std::unique_ptr<HermitReclaimers> hermit_reclaimers;  // has threads only where there is core.hermit
  std::atomic<std::uint64_t> budget_bytes{0};

  // --- pager.cpp
  Status create_parts();
  void leave_out(const Parts& without);  // what is false there; before the first thread starts
  Status follow_hermit();                // if the options say so
  void show_inside();                    // to `hinterland core`
  Status create_paging_parts();   // everything but threads: tests of the page machine drive the parts themselves
  Status start_paging_threads();  // the parts, and threads for them
  Status start_reclaim_threads();
  Status start_housekeeper();
  // Paging begins: registers every region and lists the pages that are there. Once, by one thread.
  Status take_over();
  Status take_over_locked();
  void leave_to_kernel();
  void tell_that_paging_began();  // once; no locks
  bool given_up = false;          // paging could not begin, and never will; the housekeeper's
  std::atomic<bool> told{false};
  int take_over_region(const Region& region);
  void adopt(const iovec& run);
  void start_keeper();
  Status start_gatherer();        // if there is a device that needs one
  bool gatherer_started = false;  // guarded by map_mutex

  // --- pager_regions.cpp; map_mutex is held
  Result<std::uint32_t> add_device(std::unique_ptr<far::Device> device, const std::string& url);

  // --- housekeeper.cpp
  void housekeeper();
  void start_wanted_threads();
  std::uint64_t look_after();  // returns how long to sleep, ns
  std::uint64_t watch_pressure();
  std::uint64_t let_go_for_the_dead();
  std::uint64_t keep_room_for_other_memory();
  void keep_to_part(std::uint64_t bytes, std::uint64_t used);
  std::uint64_t waited_for_pages_ns() const;
  void note_peak(std::uint64_t resident);
  std::uint64_t peak_anonymous_bytes = 0, peak_total_bytes = 0;  // the housekeeper's own
  std::uint64_t resident_before = 0;                             // the same
  void answer_requests();
  int begin_to_observe(const StatPage& page);  // 0 or -errno
  static void kick_housekeeper();
  std::uint64_t watch_handler();  // returns how long to sleep, ns
  void refresh_gauges();
  std::uint64_t takeover_mark() const;  // anonymous bytes resident at which paging begins

  // --- pager_mappings.cpp; map_mutex is held
  // mmap in the place of what is there: whose pages are not being taken meanwhile, under another protection.
  void* map_over(std::uintptr_t address, std::size_t length, int protection, int flags);
  bool empty_and_forbid(std::uintptr_t address, std::size_t length);  // as a reservation is; needs no mapping more
  bool has_room_for(std::size_t bytes) const;                         // as Pager::has_room_for()
  // Flags for mmap: of one that only far memory has room for, MAP_NORESERVE, too.
  int with_far_room(std::size_t length, int flags) const;
  std::intptr_t place(std::uintptr_t address, std::size_t length, int protection, int flags, int attributes = 0,
                      MappedAs as = {});
  PageRun run_of(std::uintptr_t address, std::size_t length) const {
    return {core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift)};
  }
  int unmap(std::uintptr_t address, std::size_t length);
  int surrender(std::uintptr_t address, std::size_t length);
  int make_way(std::uintptr_t address, std::size_t length);  // far memory outside of the window, as surrender()
  // Addresses that a mapping has now, or has no longer: the window keeps them reserved, the kernel gets those
  // outside.
  void occupy(std::uintptr_t address, std::size_t length);
  void release(std::uintptr_t address, std::size_t length);
  bool is_inside(std::uintptr_t address) const { return core.window.contains(address, 1); }
  const std::vector<Region>& pieces(std::uintptr_t address, std::size_t length);
  std::vector<Region> pieces_found;  // what pieces() returned last: kept, so that it seldom allocates
  int reserve_again(std::uintptr_t address, std::size_t length);  // back to reserved address space
  void alike_reserved(std::uintptr_t address, std::size_t length);
  void forget(std::uintptr_t address, std::size_t length);  // pages that are gone already
  void drop(std::uintptr_t address, std::size_t length);    // MADV_DONTNEED

  // --- pager_advice.cpp; map_mutex is held
  int advise_piece(const Region& piece, int advice);
  int populate(std::uintptr_t address, std::size_t length, int advice);
  void note_dumped(std::uintptr_t address, std::size_t length, bool dumped);
  void apply(const Region& region);        // gives a new mapping of ours its attributes
  void tell_kernel(const Region& region);  // the same for one that is not ours: no page of it has marks
  void bring_for_kernel(std::uintptr_t address, std::size_t length);
  void set_locked(std::uintptr_t address, std::size_t length, int attributes);
  int attributes_of_new = 0;  // after mlockall(MCL_FUTURE)

  // --- pager_remap.cpp; map_mutex is held
  std::intptr_t move_pieces(std::uintptr_t address, std::size_t length, int flags, std::uintptr_t new_address);
  std::intptr_t resize(const Region& region, std::uintptr_t address, std::size_t old_length, std::size_t new_length,
                       int flags, std::uintptr_t new_address);
  std::intptr_t move_mapping(const Region& old, std::size_t new_length, int flags, std::uintptr_t new_address);
  void clear_and_lock(PageIndex target);
  std::intptr_t move_foreign(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                             std::uintptr_t new_address);
  std::intptr_t move_foreign_to(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                                std::uintptr_t target);
  bool reclaim_hole(std::uintptr_t address, std::size_t length);
  std::intptr_t move_foreign_out(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                                 std::uintptr_t target);
  std::intptr_t move_piece_out(const Region& piece, std::size_t new_length, int flags, std::uintptr_t target);
  bool can_grow(std::uintptr_t end, std::size_t more) const;
  bool reserve_behind(std::uintptr_t end, std::size_t more);
  void move_resident(PageRun run, std::uint64_t shift);  // by so many pages, which may wrap around
  bool copy_page(PageIndex page, PageIndex target);
  int move_pages(std::uintptr_t from, std::uintptr_t to, std::size_t length);
  bool is_plain(std::uintptr_t address, std::size_t length);
  unsigned moved_by_kernel = 0;  // extents, before paging began
  std::size_t covered_prefix(std::uintptr_t address, std::size_t length) const;

  // --- offloading.cpp; map_mutex is held
  // The pages (`page`, `far`) are to have these bytes from now on, which are held for them. Returns how many do; they
  // come first then.
  struct Replacement {
    PageIndex page;
    far::FarPage far;
    std::uint32_t which;  // the caller's
    // Only where it is Far as this one, which is borrowed: then it has not changed since.
    std::optional<far::FarPage> instead_of = {};
  };
  std::size_t replace(std::span<Replacement> pages);
  // The page is all zero from now on. False: it is resident, or may not be written or leave; it is as it was.
  bool replace_by_zeros(PageIndex page);
  bool may_replace(PageIndex page) const;

  // --- pager_holding.cpp
  void may_leave(PageIndex page);
  // An evictor that took the page's busy bit before it was marked as held is done with it.
  void wait_until_nobody_takes(PageIndex page);
  // In signal mode, for the kernel: SignalFaults::bring() of each page of the range that lies in the window, where it
  // may be called. Any thread of the program.
  bool bring(std::uintptr_t address, std::size_t length, bool write);
  static void bring_wanted(void* impl);
  bool is_foreign(std::uintptr_t address);
  void let_go_of_freed(std::uintptr_t address, std::size_t length);

  // --- pager_hints.cpp
  bool hears_hints() const;                   // on this thread
  void settle_hints();                        // returns when all hints that were under way are done
  std::atomic<std::int64_t> pages_pinned{0};  // by hints; a page pinned twice counts twice
  int pin(Pager& pager, std::uintptr_t address, std::size_t length);  // not on a far stack, under Undisturbed
  void unpin(std::uintptr_t address, std::size_t length);

  std::uint64_t shares_bytes = 0;  // of all regions that were created; guarded by map_mutex

  // --- pager_fork.cpp
  // Ends the process if it is a copy that was made behind our back, with a message.
  void refuse_copies() const {
    if (copy_mark.is_copy()) end_copy();
  }
  [[noreturn]] static void end_copy();
  // Once paging has begun, the kernel leaves our mappings out of such copies, where far pages would read as zeros
  // (I4). Our own fork lets them in for as long as it takes. 0 or -errno; map_mutex is held.
  int keep_from_copies();
  int let_into_copy();
  int advise_ours(int advice, int except);
  // All who use channels stand still between these, and nothing is on its way. Paging has begun.
  void pause_movers();
  void resume_movers();
  Status resume_in_child();
  Status resume_paging_in_child();
  void leave_out_what_is_not_inherited();
  void retain_for_child(far::FarPage page) {
    retained[retained_count++] = page;
    if (retained_count == retained.size()) retain_flush();
  }
  void retain_flush() {
    if (retained_count > 0) core.devices.retain(std::span(retained.data(), retained_count));
    retained_count = 0;
  }
  std::array<far::FarPage, 512> retained;  // guarded by map_mutex
  std::size_t retained_count = 0;

  // Every page that was ever used.
  template <typename Visit>
  void for_each_page(Visit&& visit) {
    core.pages.for_all_used(visit);
  }
};

// Holds map_mutex for a call of the program's. Not for a copy of the process, in which nobody may ever unlock it.
class MapGuard {
 public:
  explicit MapGuard(Pager::Impl& parts) : guard_((parts.refuse_copies(), parts.map_mutex)) {}

 private:
  LockGuard guard_;
};

}  // namespace hinterland
