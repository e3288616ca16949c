// Computes on clients' pages (far/tcp/wire.hpp: compute), on a thread of its own with the least share of the CPU, so
// that those that serve pages wait for nothing.
//
// A job is one message: at most 64 pieces, 256 KiB that are read once, so that it is done within a millisecond and
// takes 36 KiB of memory, results included, and where pages are made (compose, patch) 256 KiB more. A connection has
// one job at a time; further messages stay in its socket. Jobs are done in turn, so a client waits for no more than
// one job of each other connection. That is the limit of time and memory of each; a client that goes is not waited
// for, and what it asked for last is not begun.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "far/tcp/wire.hpp"
#include "server/operator_process.hpp"
#include "server/session.hpp"

namespace hinterland {

// One message's work, by the server's own functions or by an operator. Of the connection's thread until it is given
// to the computer, and from done() on.
struct ComputeJob {
  struct Held {
    HeldPage page;
    std::uint64_t checksum;
    std::uint16_t offset, bytes;
    std::uint64_t word = 0;  // for an operator
  };
  // Pages to be composed of the pieces, instead of a computation. They are made in memory of the job, and written by
  // the connection's thread when the job is done, as a client's write is: store().
  struct Composition {
    std::vector<HeldPage> pages;
    std::uint32_t element_bytes = 0;
    std::vector<std::byte> masks;  // of all pieces, one after the other
    std::uint64_t stamp = 0;       // of the write
    std::unique_ptr<std::byte[]> made;
    // Of pages that are patched instead: for each what fills it, or nothing where it begins as the next piece; and
    // what is then put where.
    std::vector<std::optional<std::uint64_t>> fills;
    std::vector<far::wire::Place> places;
    std::vector<std::byte> elements;
  };
  Composition composition;
  hl_computation what{};
  OperatorProcess* operators = nullptr;  // not null: apply its operator of this number instead
  std::uint32_t number = 0;
  std::array<std::byte, HL_OPERATOR_ARGUMENT_MAX> argument{};
  std::vector<Held> pieces;
  far::wire::Code code = far::wire::Code::ok;
  std::uint32_t result_bytes = 0;
  std::unique_ptr<std::byte[]> results;  // so many
  int event = -1;                        // eventfd that is written to when the job is done

  bool done() const { return done_.load(std::memory_order_acquire); }  // pairs with finish()
  // Writes the pages that were made. Of a job that is done.
  void store();
  // The client went: it need not be begun.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

 private:
  friend class Computer;
  bool check(const Held& piece);
  void compute();
  void apply();
  void compose();
  void patch();
  void put_elements();
  void tell_checksums();
  void run();
  void finish();
  const std::byte* checked_ = nullptr;  // the page that was looked at last
  std::uint64_t checksum_ = 0;
  std::atomic<bool> done_{false}, cancelled_{false};
};

class Computer {
 public:
  Computer() = default;
  ~Computer();
  Computer(const Computer&) = delete;
  Computer& operator=(const Computer&) = delete;

  // The job is done by another thread, and its event told. Does not block.
  void take(std::shared_ptr<ComputeJob> job);
  // Does jobs, and sleeps while there are none. On a thread of its own, until stop().
  void run();
  bool run_one();  // false: there was none. For run(), and for tests without threads.
  void stop();

 private:
  std::shared_ptr<ComputeJob> next();

  Mutex mutex_;
  std::deque<std::shared_ptr<ComputeJob>> jobs_;  // guarded by mutex_
  std::atomic<std::uint32_t> work_{0};            // futex: changes with each job
  std::atomic<bool> stopped_{false};
};

}  // namespace hinterland
