#include "server/computer.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include "far/tcp/shared_pages.hpp"

namespace hinterland {

using far::wire::Code;
namespace elements = hl::far::detail;

void ComputeJob::compute() {
  const std::size_t step = what.operation == elements::spread ? 0 : elements::result_bytes(what.operation, 1);
  std::byte* result = results.get();
  if (step == 0) std::memset(result, 0, result_bytes);
  const std::byte* checked = nullptr;  // the page that was looked at last
  std::uint64_t checksum = 0;
  for (const Held& piece : pieces) {
    const std::byte* page = piece.page.memory();
    if (page != checked) checksum = far::SharedPages::checksum_of(page);
    checked = page;
    if (checksum != piece.checksum) {
      code = Code::damaged;
      return;
    }
    elements::compute_piece(what, page + piece.offset, piece.bytes, result);
    result += step;
  }
}

void ComputeJob::finish() {
  if (!cancelled_.load(std::memory_order_relaxed)) compute();
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
