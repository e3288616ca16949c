// The reclaim threads of --reclaim hermit: each takes 64 pages at a time for as long as the rule has work for its
// number (Hermit, NSDI 2023, section 4.2; page/hermit.hpp).
#pragma once

#include <array>
#include <memory>

#include "paging/out/evictor.hpp"
#include "paging/page/core.hpp"
#include "paging/place/companions.hpp"

namespace hinterland {

class HermitReclaimers {
 public:
  // As many as Hermit has, but no more than CPUs that the process may use: it ties each to one.
  static unsigned wanted();

  // Borrowed for the life of the process; core.hermit is there.
  HermitReclaimers(Core& core, Companions& companions) : core_(core), companions_(companions) {}

  // Makes the threads. With fewer than wanted() it goes on; an error only where not even the first can be made.
  Status start(unsigned threads);

  // --- fork
  void lock();
  void unlock();

 private:
  static constexpr std::size_t kBatch = 64;  // the paper has 32 for each node of memory

  struct Thread {
    HermitReclaimers* all = nullptr;
    unsigned number = 0;
    std::unique_ptr<Evictor> evictor;
  };
  void run(Thread& thread);
  std::size_t reclaim(Thread& thread);

  Core& core_;
  Companions& companions_;
  std::array<Thread, HermitSchedule::kThreadsMax> threads_;
};

}  // namespace hinterland
