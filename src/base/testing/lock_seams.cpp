// Where movers would wait for a lock or a futex, they come to the scheduler instead; and nothing is logged. Linked
// before the room base, which has the same functions (mutex.cpp, log.cpp).
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/testing/scheduler.hpp"

namespace hinterland {

using testing::Scheduler;

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t expected, std::uint64_t, bool) {
  Scheduler* scheduler = Scheduler::running();
  // Out of movers there is nobody who could wake us.
  if (scheduler != nullptr) scheduler->futex_wait(word, [word, expected] { return word->load() == expected; });
}

void futex_wake(std::atomic<std::uint32_t>* word, int, bool) {
  if (Scheduler* scheduler = Scheduler::running()) scheduler->futex_wake(word);
}

void Mutex::lock_slow() {
  while (!try_lock()) Scheduler::running()->block_until("a mutex", [this] { return state_.load() == kFree; });
}

// Each machine would say once that its device is full, and there are thousands.
void log::set_level(Level) {}
log::Level log::level() { return Level::quiet; }
void log::error(const char*, ...) {}
void log::warning(const char*, ...) {}
void log::info(const char*, ...) {}
void log::debug(const char*, ...) {}

}  // namespace hinterland
