// The heap of far objects: what becomes of a pointer's word when the program dereferences, moves or ends it. The
// other side, evacuators, is evacuator.hpp; who may do what is words.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "object/far_log.hpp"
#include "object/grace.hpp"
#include "object/local_log.hpp"
#include "object/local_memory.hpp"

namespace hinterland::object {

class Arrivals;
class Evacuator;

struct HeapOptions {
  static constexpr std::uint64_t kLocalBytesMin = 8 * kMiB;
  static constexpr unsigned kEvacuatorsMax = 8;
  std::uint64_t local_bytes = 0;
  std::uint64_t arena_bytes = 256 * kGiB;    // of addresses, for local objects
  std::uint64_t far_bytes_max = 256 * kGiB;  // of tables' addresses
  unsigned evacuators = 1;
};

// How long who needs room in a scope waits for evacuators before he goes beyond the limit: what they make comes soon,
// or not for long, for scopes that are open keep it.
inline constexpr std::uint64_t kPatienceInScopeNs = 300'000;
// And before a scope.
inline constexpr std::uint64_t kPatienceNs = 10'000'000;

// Relaxed: statistics, ordered with nothing.
struct HeapFigures {
  std::atomic<std::uint64_t> brought{0};       // objects, from the device
  std::atomic<std::uint64_t> left{0};          // objects that became far
  std::atomic<std::uint64_t> left_clean{0};    // of these, without being written
  std::atomic<std::uint64_t> moved_on{0};      // objects that were in use, and moved within local memory
  std::atomic<std::uint64_t> stayed{0};        // objects that were used while they were leaving
  std::atomic<std::uint64_t> beyond_bytes{0};  // local memory that was taken beyond the limit
  std::atomic<std::uint64_t> errors{0};        // of the device
  std::atomic<std::uint64_t> waited_ns{0};     // by the program for objects and for room, about
};

class Heap {
 public:
  // Takes the device over. `grace`, which has begun, outlives it. The threads are started by begin().
  static Result<std::unique_ptr<Heap>> create(const HeapOptions& options, std::unique_ptr<far::Device> device,
                                              Grace& grace);
  // Stops the evacuators. No pointer may be left that names an object.
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  Status begin();

  // As hl::far::detail::runtime says.
  // `at_once`: evacuators are not waited for; !`may_go_beyond`: nullptr where there is no room within the limit.
  void* begin_object(std::size_t bytes, std::size_t alignment, const Type* type, bool nontemporal,
                     bool at_once = false, bool may_go_beyond = true);
  void finish_object(void* object, Word* owner);
  void drop_object(void* object);
  void* reach(Word* word, std::uint32_t flags, int* error);
  // Without bringing it. nullptr: it is far or arriving, and *value is its word; or, for who is not patient, an
  // evacuator has it for the time of some copies.
  void* reach_there(Word* word, std::uint32_t flags, std::uint64_t* value, bool patient = true);
  std::size_t reach_many(std::span<Word* const> words, std::uint32_t flags);
  void release(Word* word);
  void move(Word* from, Word* to);
  void relieve(Grace::Slot* slot);
  // A look at it for who does not block: true while it is worth waiting on.
  bool still_pressed();

  // Fork: nothing is in the midst of anything between the two, in no thread. Child and parent have all objects: they
  // share the far pages, which nobody overwrites. Blocks while calls under way wait for the device. A child that
  // cannot reach the device says so, and goes on with what is local.
  // `when_still()` runs when no other thread is within a call any more, and evacuators are between two rounds.
  void before_fork(void (*when_still)());
  void after_fork_in_parent(bool forked);
  void after_fork_in_child();

  // Of the statistics page: what has to be looked at.
  void show_figures();

  Grace& grace() { return grace_; }
  LocalLog& local() { return *local_; }
  FarLog& far() { return *far_; }
  LocalMemory& memory() { return memory_; }
  // Objects that are brought while nobody blocks. nullptr: the device answers at once, and nobody has to wait.
  Arrivals* arrivals() { return arrivals_.get(); }
  // Of local memory, at least kLocalBytesMin. What is beyond it becomes far, soon and by evacuators. Any thread.
  void set_limit(std::uint64_t bytes);
  std::uint64_t memory_limit() const { return memory_.limit(); }
  // A page of the object window has a frame, which counts as memory of objects, or has none any more.
  void charge_page() { memory_.charge_beyond(kPageSize); }
  void uncharge_page() { memory_.give_back(kPageSize); }
  HeapFigures& figures() { return figures_; }

 private:
  friend class Arrivals;
  friend class Evacuator;

  Heap(std::uint64_t local_bytes, Grace& grace);

  // --- an object's parts
  std::size_t object_bytes(const Header* header) const;  // what the program sees, rounded up to units
  std::uint64_t* location_at(Header* header) const;      // of a placed one
  std::uint32_t far_units(const Header* header) const;   // of a packed one: the object, and its type
  bool is_packed(const Header* header) const { return object_bytes(header) <= kPackedMax; }
  const Type* type_of(Header* header) const;
  void give_up_far_copy(Header* header);
  // Its room is free for others once the region is emptied. The region's lock is held, or the word is busy.
  void end_locked(Header* header);

  // --- room (heap_room.cpp)
  struct Asked {
    std::size_t bytes;   // of the object
    unsigned alignment;  // class
    bool typed, placed, nontemporal;
    bool may_go_beyond;
    bool at_once = false;  // without waiting for evacuators first
  };
  Header* room(const Asked& asked);
  Header* try_room(const Asked& asked, LocalLog::For purpose);
  void look_at_pressure();
  void tell_of_beyond(std::uint64_t bytes);
  void ask_evacuators();
  void seal_lanes();
  void keep_orphans();
  // By evacuators: whether they get anywhere.
  void made_room();
  void is_stuck(int error);

  // --- bringing
  void* fetch(Word* word, std::uint64_t value, std::uint32_t flags, int* error);
  Header* room_for_far(std::uint64_t value, std::uint32_t flags, bool may_go_beyond, bool at_once = false);
  void* arrived(Word* word, std::uint64_t value, Header* header, std::uint32_t flags);
  void not_arrived(Word* word, std::uint64_t value, Header* header);
  void settle_word(Word* word, std::uint64_t value);
  void wait_for_arrival(Word* word, std::uint64_t value, unsigned* spins);
  int read(std::uint64_t value, std::byte* to);

  LocalMemory memory_;
  HeapFigures figures_;
  Grace& grace_;
  std::unique_ptr<LocalLog> local_;
  std::unique_ptr<FarLog> far_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the first half for what is used again
  std::vector<std::unique_ptr<Evacuator>> evacuators_;
  std::unique_ptr<Arrivals> arrivals_;
  Grace::Slot* forking_slot_ = nullptr;  // of who forks, while it does

  // Regions left for the program: evacuators begin below low and end at high (AIFM: 12 and 22 %), and below pressed
  // who opens a scope waits for them.
  std::uint64_t low_regions() const { return std::max<std::uint64_t>(2, local_->regions_limit() * 12 / 100); }
  std::uint64_t high_regions() const { return std::max<std::uint64_t>(3, local_->regions_limit() * 22 / 100); }
  std::uint64_t pressed_regions() const { return std::max<std::uint64_t>(1, local_->regions_limit() / 32); }

  std::atomic<std::uint32_t> asked_{0};     // futex: evacuators are wanted
  std::atomic<std::uint32_t> progress_{0};  // futex: counts what they did
  std::atomic<bool> stuck_{false};          // they cannot help
  std::atomic<int> stuck_error_{0};         // the device's, or 0
  std::atomic<bool> stopping_{false};
  std::atomic<bool> interrupted_{false};  // rounds end without waiting for scopes: at the end, and for a fork

  Mutex orphans_mutex_;                 // who looks for objects that have lost their pointers; others wait
  std::atomic<bool> orphans_{false};    // there may be some
  std::vector<Grace::Stack> orphaned_;  // guarded by orphans_mutex_: where their pointers lay
  std::atomic<std::uint64_t> beyond_told_bytes_{0};
};

}  // namespace hinterland::object
