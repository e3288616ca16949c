#include "server/computer.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include "far/tcp/shared_pages.hpp"

namespace hinterland {

using far::wire::Code;
namespace elements = hl::far::detail;

// Whether the page is what the client wrote.
bool ComputeJob::check(const Held& piece) {
  const std::byte* page = piece.page.memory();
  if (page != checked_) checksum_ = far::SharedPages::checksum_of(page);
  checked_ = page;
  if (checksum_ != piece.checksum) code = Code::damaged;
  return checksum_ == piece.checksum;
}

void ComputeJob::compute() {
  const std::size_t step = what.operation == elements::spread ? 0 : elements::result_bytes(what.operation, 1);
  std::byte* result = results.get();
  if (step == 0) std::memset(result, 0, result_bytes);
  for (const Held& piece : pieces) {
    if (!check(piece)) return;
    elements::compute_piece(what, piece.page.memory() + piece.offset, piece.bytes, result);
    result += step;
  }
}

void ComputeJob::apply() {
  const hl_operator* which = operators->get(number);
  if (which == nullptr) {
    code = Code::no_operator;
    return;
  }
  std::vector<OperatorProcess::Piece> list;
  list.reserve(pieces.size());
  for (const Held& piece : pieces) {
    if (!check(piece)) return;
    list.push_back({piece.page.memory(), piece.offset, piece.bytes, piece.word});
  }
  code = operators->run(number, std::span(argument).first(which->argument_bytes), list, results.get());
}

void ComputeJob::finish() {
  if (!cancelled_.load(std::memory_order_relaxed)) operators != nullptr ? apply() : compute();
  pieces.clear();  // here, so that a slab that was given up meanwhile is free when the client hears of the job
  // The job may end with this: its connection looks at it at any time.
  const int told = event;
  done_.store(true, std::memory_order_release);  // pairs with done()
  std::uint64_t one = 1;
  static_cast<void>(!::write(told, &one, sizeof one));  // full only when the thread is awake anyway
}

Computer::~Computer() = default;

void Computer::take(std::shared_ptr<ComputeJob> job) {
  {
    LockGuard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  work_.fetch_add(1);
  futex_wake(&work_, 1);
}

std::shared_ptr<ComputeJob> Computer::next() {
  LockGuard lock(mutex_);
  if (jobs_.empty()) return nullptr;
  std::shared_ptr<ComputeJob> job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void Computer::run() {
  // The caller's own: others that want this CPU have it first. Where it is refused, all are alike.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, 19));
  while (!stopped_.load()) {
    std::uint32_t seen = work_.load();
    if (!run_one()) futex_wait(&work_, seen);
  }
}

bool Computer::run_one() {
  std::shared_ptr<ComputeJob> job = next();
  if (job != nullptr) job->finish();
  return job != nullptr;
}

void Computer::stop() {
  stopped_.store(true);
  work_.fetch_add(1);
  futex_wake(&work_, 1);
}

}  // namespace hinterland
