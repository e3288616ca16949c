// Fetches that nobody waits for, as those see them who find a page on its way: a contract, implemented by the hints
// (serve/hints.hpp).
#pragma once

namespace hinterland {

class UnawaitedFetches {
 public:
  // Gathers what has arrived for anybody. Never blocks; next to nothing where nothing is on its way. True when
  // something came. Any thread; the caller may hold map_mutex.
  virtual bool poll() = 0;
  // A thread faulted on a page that is on its way, and cannot poll.
  virtual void wake_gatherer() = 0;

 protected:
  ~UnawaitedFetches() = default;  // nobody owns them through this
};

}  // namespace hinterland
