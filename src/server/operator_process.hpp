// Runs the operators of the server's owner in a process of its own: what crashes or does not return there costs
// nobody anything but that operator.
//
// Two processes are forked before the server has anything of anybody's: a keeper, which waits, and the worker, which
// computes, and which the keeper makes anew when it dies (the server itself may start no processes once it is
// confined). Server and worker share memory for one message: copies of up to 64 pieces, which the worker can only
// read, and results. The worker has no descriptors but standard error, a filter of system calls of its own, a limit
// of memory, and for each message a limit of a processor's time, after which the kernel ends it. All three die with
// the server.
//
// An operator that crashed or took too long is withdrawn: there is none of that name any more until the server is
// started anew, and clients compute for themselves.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "far/tcp/wire.hpp"
#include "server/operators.hpp"

namespace hinterland {

class OperatorProcess {
 public:
  // Forks: to be called before the server has threads, pages or sockets, on a thread that lives as long as it.
  static Result<std::unique_ptr<OperatorProcess>> start(std::vector<LoadedOperator> operators);
  ~OperatorProcess();
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  // These three: any thread.
  std::uint32_t count() const { return static_cast<std::uint32_t>(operators_.size()); }
  // Its number; nothing when there is none like that, or it was withdrawn.
  std::optional<std::uint32_t> find(const far::OperatorName& name) const;
  // nullptr when there is no such number, or it was withdrawn.
  const hl_operator* get(std::uint32_t number) const;

  // One thread at a time, which fills in the message, runs it, and reads the results. `page`: as a piece's page is
  // aligned, of which the piece's bytes are copied from the same place.
  struct Piece {
    const std::byte* page;
    std::uint16_t offset, bytes;
    std::uint64_t word;
  };
  // ok, and result_bytes for each piece in `results`; or no_operator: it was withdrawn, perhaps for this; or
  // bad_request: not this time. Blocks for as long as the operator takes, at most for some seconds.
  far::wire::Code run(std::uint32_t number, std::span<const std::byte> argument, std::span<const Piece> pieces,
                      std::byte* results);

 private:
  struct Shared;
  explicit OperatorProcess(std::vector<LoadedOperator> operators) : operators_(std::move(operators)) {}
  Status share();
  [[noreturn]] void keep();
  [[noreturn]] void work();
  void compute_message();
  bool wait_for(std::uint32_t message);
  far::wire::Code withdraw(std::uint32_t number, int died);

  std::vector<LoadedOperator> operators_;
  std::array<std::atomic<bool>, far::wire::kOperatorsMax> withdrawn_{};
  Shared* shared_ = nullptr;
  std::byte* inputs_ = nullptr;  // a page a piece
  pid_t keeper_ = -1;
  bool broken_ = false;  // nobody answers any more
};

}  // namespace hinterland
