// Makes room: empties regions of local memory beside the program (AIFM 5.3). Each is a thread of its own; several
// work on regions of their own.
//
// A round: claim regions; mark their objects as leaving; wait until every scope that was open has ended; then empty
// them. An object that somebody has used meanwhile stays where it is. One that was used since the last look moves on
// to another region, together with others of its kind (unless rounds like that have freed nothing). Of the rest,
// those that equal their far copy are let go of, and those that do not are packed into pages and written. A region in
// which nothing is left is free.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "object/far_writer.hpp"
#include "object/local_log.hpp"

namespace hinterland::object {

class Heap;

class Evacuator {
 public:
  Evacuator(Heap& heap, unsigned number, std::unique_ptr<Port> port)
      : heap_(heap), number_(number), writer_(*heap_far(heap), std::move(port)) {}

  Status begin();
  // After Heap::stopping_ was set and it was woken.
  void wait_for_end();

  // No round is under way from one to the other: fork. Owner: who holds it.
  void hold() { working_.lock(); }
  void let_go() { working_.unlock(); }
  // In the child, where its thread is not there: starts one. Without a port, none.
  Status after_fork_in_child(std::unique_ptr<Port> port);

  // One round. How many regions it freed, without those that what moved on has taken.
  std::int64_t round();

 private:
  struct Pending {
    Header* header;
    Location location;
    std::uint32_t page_index;
    std::uint32_t units;
  };
  static FarLog* heap_far(Heap& heap);
  static void* main(void* self);
  void work();
  bool wait_until_wanted(std::uint64_t sleep_ns);
  void make_room();
  void clean();
  std::uint64_t keep_house();

  void claim();
  void mark(Region& region);
  void mark_some(Region& region);
  void empty(Region& region);
  void empty_some(Region& region);
  void take_out(Header* header, std::uint64_t value);
  void write_out(Header* header, std::uint64_t value);
  void empty_waiting();
  Header* waiting_holder_of(const Word* word) const;
  template <typename Call>
  void while_busy(Header* header, Call&& call);
  void move_on(Header* header, std::uint64_t value);
  void stay(Header* header, std::uint64_t value);
  bool holds_local_objects(Header* header) const;
  void write_large(Header* header);
  bool copy_piece(Header* header, std::uint64_t offset, std::byte* to, std::uint64_t bytes);
  bool become_far_locked(Header* header, std::uint64_t far);
  void write_placed();
  LocalLog::Left what_is_left(const Region& region) const;

  Heap& heap_;
  unsigned number_;
  FarWriter writer_;
  Mutex working_;  // held in a round
  Lane lane_;      // for what moves on
  std::vector<Region*> regions_;
  std::vector<Header*> some_;                            // looked at together
  std::vector<std::pair<Header*, std::uint64_t>> busy_;  // and their words
  std::vector<Pending> placed_;                          // and not written yet
  std::vector<Header*> waiting_;                         // in this round, for what they hold to become far
  std::vector<const Word*> far_words_;                   // of what became far since some wait
  int vain_ = 0;                              // rounds in vain before this one; then what is in use must leave, too
  std::uint64_t moved_bytes_ = 0, left_ = 0;  // in this round: bytes, objects
  int error_ = 0;                             // of the device, in this round
  std::atomic<std::uint32_t> ended_{1};       // futex
};

}  // namespace hinterland::object
