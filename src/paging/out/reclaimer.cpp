#include "paging/out/reclaimer.hpp"

#include <algorithm>
#include <ctime>

#include "base/inside.hpp"
#include "base/log.hpp"
#include "paging/place/runtime_thread.hpp"

namespace hinterland {

void Reclaimer::run() {
  InsideRuntime inside;
  note_runtime_thread();
  companions_.join();
  for (bool leaves_it = false;;) {
    core_.budget.sleep_until_woken(0, leaves_it);
    leaves_it = !reclaim_until_stop();
  }
}

// False: it leaves the rest to others.
bool Reclaimer::reclaim_until_stop() {
  // Doubles while nothing can be taken (everything pinned, device gone), so that a hopeless case costs no CPU.
  long pause_ns = 1'000'000;
  std::int64_t least_free = core_.budget.free();
  for (; !core_.budget.should_stop(); least_free = std::min(least_free, core_.budget.free())) {
    if (core_.flush_share.left_to_users(&taken_where_used_)) return false;
    if (core_.budget.falls_behind()) call_helper();
    if (reclaim(evictor_, core_.budget.batch_until_stop(Evictor::kBatchMax))) {
      pause_ns = 1'000'000;
      continue;
    }
    timespec pause{0, pause_ns};
    nanosleep(&pause, nullptr);
    pause_ns = std::min(pause_ns * 2, 200'000'000L);
  }
  core_.budget.note_reclaimed(least_free);
  return true;
}

bool Reclaimer::reclaim(Evictor& evictor, std::size_t wanted) {
  std::size_t freed = evictor.reclaim(wanted);
  count(Counter::reclaim_background_pages, freed);
  return freed != 0;
}

void Reclaimer::call_helper() {
  if (!helper_started_.load(std::memory_order_acquire)) {  // pairs with start_helper()
    if (!wants_help_.exchange(true, std::memory_order_relaxed)) wake_housekeeper_();
    return;
  }
  std::uint32_t calls = calls_.load(std::memory_order_relaxed);
  if (calls % 2 != 0) return;  // it is at work
  calls_.store(calls + 1, std::memory_order_relaxed);
  futex_wake(&calls_, 1);
}

void Reclaimer::start_helper() {
  if (!wants_help()) return;
  helper_tried_ = true;
  if (!companions_.several_cpus()) return;
  auto evictor = Evictor::create(core_);
  Status status;
  if (evictor) {
    helpers_evictor_ = std::move(*evictor);
    auto entry = [](void* self) -> void* {
      static_cast<Reclaimer*>(self)->help();
      return nullptr;
    };
    status = start_runtime_thread("hl-reclaim-more", this, entry);
  } else {
    status = std::unexpected(evictor.error());
  }
  if (status)
    helper_started_.store(true, std::memory_order_release);  // pairs with call_helper()
  else  // no warning: nothing is lost but speed, and the program may be at its limit on purpose
    log::info("%s; one thread reclaims", status.error().what());
}

// The second thread's body.
void Reclaimer::help() {
  InsideRuntime inside;
  note_runtime_thread();
  companions_.join();
  for (;;) {
    std::uint32_t calls = calls_.load(std::memory_order_relaxed);
    if (calls % 2 == 0) {
      futex_wait(&calls_, calls);
      continue;
    }
    count(Counter::reclaim_helps);
    while (core_.budget.should_start() && !core_.flush_share.left_to_users(&helper_taken_where_used_) &&
           reclaim(*helpers_evictor_, Evictor::kBatchMax))
      continue;
    calls_.store(calls + 1, std::memory_order_relaxed);
  }
}

void Reclaimer::lock_helper() {
  if (helpers_evictor_ != nullptr) helpers_evictor_->mutex().lock();
}

void Reclaimer::unlock_helper() {
  if (helpers_evictor_ != nullptr) helpers_evictor_->mutex().unlock();
}

}  // namespace hinterland
