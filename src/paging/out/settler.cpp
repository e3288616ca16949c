#include "paging/out/settler.hpp"

#include <ctime>

#include "base/inside.hpp"
#include "base/log.hpp"
#include "paging/place/runtime_thread.hpp"

namespace hinterland {

bool Settler::ready() {
  if (ready_.load(std::memory_order_acquire)) return true;  // pairs with start()
  if (!wanted_.exchange(true, std::memory_order_relaxed) && wake_housekeeper_ != nullptr) wake_housekeeper_();
  return false;
}

void Settler::call(unsigned handler, Evictor& evictor) {
  evictors_[handler].store(&evictor, std::memory_order_relaxed);
  calls_.fetch_add(1, std::memory_order_release);  // pairs with run()
  futex_wake(&calls_, 1);
}

void Settler::start() {
  if (!wants_start()) return;
  tried_ = true;
  if (!companions_.several_cpus()) return;
  auto entry = [](void* self) -> void* {
    static_cast<Settler*>(self)->run();
    return nullptr;
  };
  Status status = start_runtime_thread("hl-write-back", this, entry);
  if (status)
    ready_.store(true, std::memory_order_release);  // pairs with ready()
  else                                              // no warning: nothing is lost but speed
    log::info("%s; the fault handler writes back what it takes", status.error().what());
}

void Settler::run() {
  InsideRuntime inside;
  note_runtime_thread();
  companions_.join();
  for (;;) {
    std::uint32_t calls = calls_.load(std::memory_order_acquire);  // pairs with call()
    if (settle_all()) {
      futex_wait(&calls_, calls);
    } else {
      timespec nap{0, 20'000};
      nanosleep(&nap, nullptr);
    }
  }
}

bool Settler::settle_all() {
  bool all = true;
  for (const auto& each : evictors_)
    if (Evictor* evictor = each.load(std::memory_order_relaxed); evictor != nullptr)
      all &= evictor->try_settle_taken();
  return all;
}

void Settler::after_fork_in_child() {
  wanted_.store(false, std::memory_order_relaxed);
  tried_ = false;
  ready_.store(false, std::memory_order_relaxed);
  for (auto& each : evictors_) each.store(nullptr, std::memory_order_relaxed);
}

}  // namespace hinterland
