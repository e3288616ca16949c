// One thread of the churn: does random things to its own memory, and knows what must come of each.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "shadow.hpp"

namespace churn {

// Operations hold the gate shared; a fork whose child looks at all threads' memory holds it alone.
class Gate {
 public:
  Gate();
  void enter() { pthread_rwlock_rdlock(lock_); }
  void enter_alone() { pthread_rwlock_wrlock(lock_); }
  void leave() { pthread_rwlock_unlock(lock_); }

 private:
  pthread_rwlock_t* lock_;  // in shadow memory
};

struct Span {  // whole cells of an area without a hole among them
  Area* area = nullptr;
  std::size_t first = 0, count = 0;
  char* address() const { return area->cell(first); }
  std::size_t bytes() const { return count * kCellBytes; }
  explicit operator bool() const { return count != 0; }
};

class Worker {
 public:
  struct Chances {
    unsigned forks_per_10000;
    unsigned low_percent;  // of mappings, and of places that mremap goes to, below 4 GiB
  };
  Worker(const Everything& all, ThreadShadow& mine, Gate& gate, Chances chances, std::uint64_t seed);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void take_share();  // fills the thread's share of the memory
  void step();        // one random operation
  void finish();      // waits for children, verifies everything of this thread
  std::uint64_t forks() const { return forks_; }

 private:
  // content_operations.cpp
  void read_cells();
  void write_cells();
  void set_span();
  void copy_span();
  void add_to_counters();
  void verify_area();
  // kernel_operations.cpp
  void through_pipe();
  void through_file();
  // map_operations.cpp
  void drop_pages();
  void drop_pages(Area& area);
  void punch_or_mend();
  void punch(Area& area);
  void mend(Area& area);
  void remap();
  void remap(Area& area);
  bool remap_to(Area& area, std::size_t bytes, bool elsewhere);
  int place_flag();  // for mmap: 0 or MAP_32BIT
  void flip_protection();
  void flip_protection(Area& area);
  Area* whole_mapping();  // nullptr when none without a hole was found
  void map_area(Area& area, std::size_t bytes);
  void unmap_area(Area& area);
  // heap_operations.cpp
  void replace_area();
  void make_area(Area& area);
  void release_area(Area& area);
  void allocate_area(Area& area, std::size_t bytes);
  void reallocate();
  void small_allocations();
  // hint_operations.cpp
  void hint();
  void pin();
  void pin_others();
  void discard();
  void change_what_comes();
  const char* somewhere();
  // region_operations.cpp
  void create_region(Area& area, std::size_t bytes);
  void destroy_region(Area& area);
  // fork_operation.cpp
  void fork_child();
  [[noreturn]] void live_as_child(bool quiet);
  void reap(std::size_t children_left);

  void operate();
  void open_scratch();
  void close_scratch();
  Area* random_area(Area::Kind kind);  // nullptr when there is none
  Area* random_area();
  Span random_span(std::size_t bytes_max);
  bool intact(const Span& span) const;  // drawing another span may have replaced its area
  std::size_t room_bytes() const;       // of the thread's share
  Span random_pages(Area& area, std::size_t pages_max);
  void note(Span span, const char* what) { span.area->note(what, span.first, span.count, mine_.operations); }
  void write_new(Area& area, std::size_t first, std::size_t count);
  void copied(Span from, Span to, const char* what);

  const Everything& all_;
  ThreadShadow& mine_;
  Gate& gate_;
  Random random_;
  Chances chances_;
  std::uint64_t forks_ = 0;
  int generation_ = 0;
  int pipe_[2] = {-1, -1};
  int file_ = -1;
  std::array<pid_t, 2> children_{};
  std::size_t child_count_ = 0;
};

}  // namespace churn
