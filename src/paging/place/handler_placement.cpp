#include "paging/place/handler_placement.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "base/clock.hpp"
#include "kernel/scheduling.hpp"

namespace hinterland {
namespace {

// A starving handler waits for at most two of these, and with it a thread that faults; each tick wakes a CPU, which
// may attract the program's thread. While the only thread of a program computes, nobody waits but who reads its
// memory from outside.
constexpr std::uint64_t kTickNs = 5'000'000, kTickOfOneThreadNs = 20'000'000;
constexpr unsigned kQuietTicks = 50;  // then nothing is gained that is worth the ticks

pid_t own_thread_id() { return static_cast<pid_t>(syscall(SYS_gettid)); }

}  // namespace

void HandlerPlacement::start() {
  handler_id_ = own_thread_id();
  state_.open(path_of_thread_state(handler_id_).data());
  permitted_ = wake_watchdog_ != nullptr && may_leave_idle_policy();
  cpu_set_t allowed;
  started_ = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  if (started_) companions_.allow(allowed);
}

void HandlerPlacement::on_fault(std::uint32_t faulting_thread_id) {
  served();  // odd now
  if (!started_ || attendance_.by_another(faulting_thread_id, handler_)) return;
  bool same = thread_id_.load(std::memory_order_relaxed) == faulting_thread_id;
  if (handler_ == 0 && !same) thread_id_.store(faulting_thread_id, std::memory_order_relaxed);
  bool lone = handler_ != 0 || lone_.on_fault(faulting_thread_id);
  bool tolerated = handler_ == 0 && lone && faulting_thread_id != lone_.thread_id();
  if (!same && !tolerated)
    note_stranger(faulting_thread_id);
  else if (handler_ == 0 && !tolerated)
    attendance_.attend(0, faulting_thread_id);
  if (tolerated || (!same && handler_ != 0)) return;
  int cpu = threads_.cpu_of(faulting_thread_id), own = sched_getcpu();
  for (Attraction* attraction : {&helper_attraction_, &reclaimer_attraction_})
    attraction->on_fault(cpu >= 0 && cpu != own);
  int target = follow_.on_fault(cpu, own, makes_way() ? FollowCpu::kFaultsOfOne : FollowCpu::kFaults);
  if (target >= 0) move_to(target);
  if (handler_ != 0 || lone == makes_way()) return;
  if (!lone)
    stop_making_way();
  else if (permitted_)
    make_way();
}

// Two threads in turns look like many strangers; one now and then, in between many faults of one thread, does not.
void HandlerPlacement::note_stranger(std::uint32_t thread_id) {
  if (!permitted_ || thread_id == 0 || ++strangers_ < attendance_.patience()) return;
  strangers_ = 0;
  attendance_.call(thread_id);
}

void HandlerPlacement::move_to(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<unsigned>(cpu), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) return;  // a cpuset: then we stay, and are only slower
  cpu_.store(cpu, std::memory_order_relaxed);
  if (makes_way()) companions_.keep_off(handler_, cpu);
}

bool HandlerPlacement::go_to(std::uint32_t thread_id) {
  int cpu = threads_.cpu_of(thread_id);
  if (!started_ || !permitted_ || cpu < 0) return false;
  thread_id_.store(thread_id, std::memory_order_relaxed);
  move_to(cpu);
  make_way();
  return makes_way();
}

void HandlerPlacement::make_way() {
  if (set_idle_policy(0, true) != 0) {
    permitted_ = false;
    return;
  }
  strangers_ = 0;
  cpu_.store(sched_getcpu(), std::memory_order_relaxed);
  companions_.keep_off(handler_, cpu_.load(std::memory_order_relaxed));
  makes_way_.store(true, std::memory_order_release);  // pairs with watch(): handler_id_ is there
  wake_watchdog_();
}

// The handler, or the watchdog for it.
void HandlerPlacement::stop_making_way() {
  if (!makes_way_.exchange(false, std::memory_order_acq_rel)) return;
  set_idle_policy(handler_id_, false);
  companions_.keep_off(handler_, -1);
}

std::uint64_t HandlerPlacement::watch() {
  if (!makes_way_.load(std::memory_order_acquire)) return kNotWatched;
  if (!std::exchange(watched_before_, true)) companions_.join();
  std::uint64_t now = now_ns();
  std::uint64_t tick_ns = threads_.several() ? kTickNs : kTickOfOneThreadNs;
  if (now - looked_at_ns_ < tick_ns) return tick_ns - (now - looked_at_ns_);  // too soon to tell
  looked_at_ns_ = now;
  std::uint32_t progress = progress_.load(std::memory_order_relaxed);
  bool stands_still = progress == progress_seen_;
  progress_seen_ = progress;
  if (!stands_still) {
    quiet_ticks_ = 0;
    return tick_ns;
  }
  bool starves = is_runnable(state_);
  if (!starves && ++quiet_ticks_ < kQuietTicks) return tick_ns;
  quiet_ticks_ = 0;
  stop_making_way();
  // In the middle of a fault it may only have its own book-keeping left, and the program, awake again, computes for
  // long. With a fault waiting to be read, or while the program's thread waits, somebody else has the CPU, and making
  // way costs more than it saves.
  if (starves && handler_ == 0 && (progress % 2 == 0 || thread_waits())) lone_.went_wrong();
  return kNotWatched;
}

// Asked so seldom that the file is not kept open.
bool HandlerPlacement::thread_waits() const {
  ProcFile state;
  state.open(path_of_thread_state(static_cast<pid_t>(thread_id_.load(std::memory_order_relaxed))).data());
  return !is_runnable(state);
}

}  // namespace hinterland
