// One budget for all local memory of the process (`--local`): pages have a part of it, and so has each other holder
// of local memory that joins, such as the heap of far objects. Every holder keeps to its own limit by itself. The
// ledger moves the limits towards the holder that waits longest for what is far (base/claims.hpp; ADR 0055).
//
// Invariant: limits only grow by what other holders have really given up, so that all of them together stay within
// the budget. While a holder gives up memory, what it still uses counts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hinterland {

// A holder of local memory beside the pages. Its functions are called by the housekeeper thread, and do not block.
class LedgerClient {
 public:
  virtual std::uint64_t limit_bytes() const = 0;
  virtual std::uint64_t used_bytes() const = 0;  // resident anonymous memory that it holds now
  virtual std::uint64_t waited_ns() const = 0;   // by the program's threads, for what was far; only grows
  // It begins to give up at once what is beyond the limit, and takes no more beyond it than it always may.
  virtual void set_limit(std::uint64_t bytes) = 0;

 protected:
  ~LedgerClient() = default;
};

class Ledger {
 public:
  struct Pages {
    std::uint64_t limit_bytes, used_bytes, waited_ns;  // as of a client
  };
  static constexpr std::size_t kClientsMax = 4;
  static constexpr std::uint64_t kLeastBytes = 8 << 20;  // each keeps so much, as far as the budget allows

  // False where there are too many. The client lives as long as the process. Any thread.
  bool join(LedgerClient& client);
  bool is_shared() const { return count_.load(std::memory_order_acquire) != 0; }  // pairs with join()
  std::uint64_t used_bytes() const;                                               // by clients

  // The rest is for one thread, the housekeeper. Shares the bytes out, sets the clients' limits and returns that of
  // the pages. `now_ns`: of a clock that only goes forward.
  std::uint64_t share_out(std::uint64_t bytes, const Pages& pages, std::uint64_t now_ns);
  // Whether somebody waited at the last look: the next one should be soon.
  bool is_missed() const { return missed_; }

 private:
  // What somebody waited, as a share of the time that passed, smoothed.
  struct Waiting {
    std::uint64_t before_ns = 0;
    double share = 0;
    void look(std::uint64_t waited_ns, std::uint64_t passed_ns);
  };

  std::array<std::atomic<LedgerClient*>, kClientsMax> clients_{};
  std::atomic<std::size_t> count_{0};
  std::array<Waiting, kClientsMax + 1> waiting_;  // the last: of pages
  std::uint64_t looked_ns_ = 0;
  bool missed_ = false;
};

}  // namespace hinterland
