#include "paging/out/hermit_reclaimers.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "paging/place/runtime_thread.hpp"

namespace hinterland {

static_assert(HermitSchedule::kThreadsMax <= 16, "a digit of the thread's name");

unsigned HermitReclaimers::wanted() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return std::clamp(static_cast<unsigned>(CPU_COUNT(&allowed)), 1u, HermitSchedule::kThreadsMax);
}

Status HermitReclaimers::start(unsigned threads) {
  auto entry = [](void* self) -> void* {
    auto* thread = static_cast<Thread*>(self);
    thread->all->run(*thread);
    return nullptr;
  };
  Status status;
  unsigned made = 0;
  for (unsigned number = 0; number < threads && status; ++number) {
    auto evictor = Evictor::create(core_);
    if (!evictor) {
      status = std::unexpected(evictor.error());
      break;
    }
    Thread& thread = threads_[number];
    thread = {this, number, std::move(*evictor)};
    char name[] = "hl-reclaim-0";
    name[sizeof name - 2] = "0123456789abcdef"[number];
    status = start_runtime_thread(name, &thread, entry);
    made += status.has_value();
  }
  if (status || made == 0) return status;
  log::info("%s; fewer threads reclaim", status.error().what());
  return {};
}

// Hermit's work item: a batch, and once more if it is still wanted; else until the next call.
void HermitReclaimers::run(Thread& thread) {
  InsideRuntime inside;
  note_runtime_thread();
  companions_.join();
  long pause_ns = 1'000'000;
  for (;;) {
    core_.hermit->wait_for_call(thread.number);
    if (thread.number != 0 && core_.hermit->is_wanted(thread.number)) count(Counter::reclaim_helps);
    while (core_.hermit->is_wanted(thread.number)) {
      if (reclaim(thread) != 0) {
        pause_ns = 1'000'000;
        continue;
      }
      // Nothing can be taken: all is pinned, or the device is gone. Doubles, so that a hopeless case costs no CPU.
      timespec pause{0, pause_ns};
      nanosleep(&pause, nullptr);
      pause_ns = std::min(pause_ns * 2, 200'000'000L);
    }
  }
}

std::size_t HermitReclaimers::reclaim(Thread& thread) {
  std::uint64_t started_ns = now_ns();
  std::size_t freed = thread.evictor->reclaim(kBatch);
  if (thread.number == 0) core_.hermit->note_reclaimed(freed, now_ns() - started_ns);
  count(Counter::reclaim_background_pages, freed);
  return freed;
}

void HermitReclaimers::lock() {
  for (Thread& thread : threads_)
    if (thread.evictor != nullptr) thread.evictor->mutex().lock();
}

void HermitReclaimers::unlock() {
  for (Thread& thread : threads_)
    if (thread.evictor != nullptr) thread.evictor->mutex().unlock();
}

}  // namespace hinterland
