// The housekeeper thread: starts paging when the program nears its budget, applies `hinterland tune`, and keeps the
// figures in the statistics page fresh. Sleeps nearly always.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "kernel/scheduling.hpp"
#include "paging/pager_impl.hpp"
#include "paging/program_end.hpp"

namespace hinterland {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
// Where the budget is shared: while somebody waits for what is far, and while nobody does.
constexpr std::uint64_t kLookAtMisses = 20 * kMillisecond, kLookAtHolders = 100 * kMillisecond;
// What a fault costs beside its service: the trap, the message and the wake-up.
constexpr std::uint64_t kTripNs = 1500;
// What the kernel can hand out at most while we sleep: huge pages zeroed by two CPUs.
constexpr std::uint64_t kTouchedPerNanosecond = 8;  // bytes

}  // namespace

// Paging begins before the budget is used up by as much as the program could touch while nobody looks. Of small
// budgets no more than a quarter is given up for that: what fits with room to spare must not be paged.
std::uint64_t Pager::Impl::takeover_mark() const {
  std::uint64_t budget = budget_bytes.load();
  return budget - std::min(std::clamp<std::uint64_t>(budget / 8, 16 * kMiB, 256 * kMiB), budget / 4);
}

void Pager::Impl::housekeeper() {
  InsideRuntime inside;
  note_runtime_thread();
  core.devices.enter_process();
  // Until then the program touches memory as fast as it can; on a busy machine it would be far over its budget by our
  // turn.
  if (!core.managed.load())
    go_before_others();
  else
    tell_that_paging_began();
  for (;;) {
    StatPage* page = stat_page();
    std::uint32_t seen = page->request_sequence.load(std::memory_order_acquire);  // pairs with the kick's add
    std::uint64_t sleep_ns = look_after();
    for (std::uint64_t now = now_ns(), end = now + sleep_ns; now < end; now = now_ns()) {
      std::uint64_t tick_ns = watch_handler();
      if (page->request_sequence.load(std::memory_order_acquire) != seen) break;
      futex_wait(&page->request_sequence, seen, std::min(tick_ns, end - now), true);
    }
  }
}

std::uint64_t Pager::Impl::look_after() {
  core.devices.enter_process();
  answer_requests();
  if (FaultObserver* observer = core.observer.load(); observer != nullptr && observer->is_over())
    core.observer.store(nullptr);
  if (core.managed.load()) start_wanted_threads();
  std::uint64_t sleep_ns = core.managed.load() ? keep_room_for_other_memory() : watch_pressure();
  if (core.devices.settle()) sleep_ns = std::min(sleep_ns, 10 * kMillisecond);
  if (core.devices.is_shared()) sleep_ns = std::min(sleep_ns, let_go_for_the_dead());
  refresh_gauges();
  if (core.managed.load()) core.policy.look_after(now_ns());
  program_end::end_if_over();
  return program_end::is_expected() ? std::min(sleep_ns, 20 * kMillisecond) : sleep_ns;
}

// Spare handlers, and a second thread that reclaims: most programs need neither.
void Pager::Impl::start_wanted_threads() {
  if (!handlers.wants_start() && !reclaimer->wants_help()) return;
  LockGuard guard(map_mutex);
  handlers.start_called();
  reclaimer->start_helper();
}

// Before paging began: is it time? Sleeps no longer than the program needs to reach the mark at full speed.
std::uint64_t Pager::Impl::watch_pressure() {
  std::uint64_t mark = takeover_mark();
  std::uint64_t resident = core.kernel.resident_anonymous_bytes();
  set_gauge(Gauge::resident_bytes, resident);
  note_peak(resident);
  if (given_up) return 10 * kSecond;
  if (core.ledger.is_shared()) {
    std::uint64_t others = core.ledger.used_bytes();
    keep_to_part(budget_bytes.load(), resident - std::min(resident, others));
    if (resident < mark) return kLookAtHolders;
  }
  if (resident < mark) {
    LockGuard guard(map_mutex);
    // It cannot get there without mapping more, and then map() wakes us.
    if (resident + regions.mapped_bytes() < mark) return 10 * kSecond;
    return std::clamp<std::uint64_t>((mark - resident) / kTouchedPerNanosecond, kMillisecond, kSecond);
  }
  if (Status status = take_over(); !status) {
    take_usual_priority();
    log::error("%s; the program goes on without a budget", status.error().what());
    return 10 * kSecond;
  }
  return 100 * kMillisecond;
}

// Children, parents and siblings that are gone still hold far pages.
std::uint64_t Pager::Impl::let_go_for_the_dead() {
  for (bool more = true; more;) {
    LockGuard guard(map_mutex);  // no fork meanwhile
    more = core.devices.reap();
  }
  return 500 * kMillisecond;
}

// What the program has in anonymous memory that is not ours to page (thread stacks, static arrays) comes out of the
// budget as far as it is more than usual, so that the budget holds for the process; but never more than three
// quarters.
std::uint64_t Pager::Impl::keep_room_for_other_memory() {
  constexpr std::uint64_t kUsual = 16 * kMiB;
  std::uint64_t resident = core.kernel.resident_anonymous_bytes();
  note_peak(resident);
  std::uint64_t ours = bytes_of_pages(static_cast<std::size_t>(std::max<std::int64_t>(core.budget.local(), 0)));
  std::uint64_t known = ours + core.ledger.used_bytes() + kUsual;
  std::uint64_t other = resident - std::min(resident, known);
  std::uint64_t budget = budget_bytes.load();
  keep_to_part(std::max(budget > other ? budget - other : 0, budget / 4), ours);
  bool idle = std::exchange(resident_before, resident) == resident;
  if (core.ledger.is_shared()) return core.ledger.is_missed() ? kLookAtMisses : kLookAtHolders;
  return idle ? kSecond : 100 * kMillisecond;
}

// Of so many bytes for all holders of local memory, the pages have their part, or all where there is no other holder.
void Pager::Impl::keep_to_part(std::uint64_t bytes, std::uint64_t used) {
  if (core.ledger.is_shared()) {
    std::uint64_t limit = bytes_of_pages(static_cast<std::size_t>(core.budget.limit()));
    bytes = core.ledger.share_out(bytes, {limit, used, waited_for_pages_ns()}, now_ns());
  }
  if (bytes >> kPageShift == static_cast<std::uint64_t>(core.budget.limit())) return;
  core.budget.set_limit(bytes);
  if (core.budget.should_start()) core.ask_for_room();
}

// By the program's threads, about: each miss as long as a fault takes on average, or, where hints alone fetch, a
// request to the device.
std::uint64_t Pager::Impl::waited_for_pages_ns() const {
  const StatPage& page = *stat_page();
  std::uint64_t missed = 0;
  for (Counter counter : {Counter::faults_read, Counter::faults_write, Counter::faults_refault,
                          Counter::hint_pages_in, Counter::hint_refaults})
    missed += page.counters[counter];
  const LatencyHistogram& latency = page.fault_latency.count() != 0 ? page.fault_latency : page.fetch_latency;
  return missed * (kTripNs + latency.sum_ns() / std::max<std::uint64_t>(latency.count(), 1));
}

std::uint64_t Pager::Impl::watch_handler() {
  return core.managed.load() ? handlers.watch() : HandlerPlacement::kNotWatched;
}

void Pager::Impl::note_peak(std::uint64_t resident) {
  // Only this thread writes it.
  std::uint64_t& peak = peak_anonymous_bytes;
  peak = std::max(peak, resident);
  set_gauge(Gauge::peak_anonymous_bytes, peak);
  far::DeviceUsage usage = core.devices.usage();
  if (resident + usage.here_bytes <= peak_total_bytes) return;
  peak_total_bytes = resident + usage.here_bytes;
  set_gauge(Gauge::peak_total_bytes, peak_total_bytes);
  set_gauge(Gauge::store_at_peak_bytes, usage.here_bytes);
  set_gauge(Gauge::stored_at_peak_bytes, usage.here_bytes != 0 ? usage.used_bytes : 0);
}

void Pager::Impl::answer_requests() {
  StatPage* page = stat_page();
  std::uint32_t sequence = page->request_sequence.load(std::memory_order_acquire);
  if (sequence == page->request_answer.load(std::memory_order_relaxed)) return;
  // acq_rel: pairs with the writer's store before its add
  std::uint64_t bytes = page->budget_request_bytes.exchange(0, std::memory_order_acq_rel);
  if (bytes != 0) page->request_error.store(-Pager::current()->set_budget(bytes), std::memory_order_relaxed);
  // acquire: pairs with the tracer's store behind the rest of its request
  if (page->trace_requested.exchange(0, std::memory_order_acq_rel) != 0)
    page->request_error.store(-begin_to_observe(*page), std::memory_order_relaxed);
  page->request_answer.store(sequence, std::memory_order_release);  // publishes request_error
}

int Pager::Impl::begin_to_observe(const StatPage& page) {
  if (options.observe_on_request == nullptr) return -ENOTSUP;
  char directory[sizeof page.trace_directory];  // of our own: its writer may change it while we look
  std::memcpy(directory, page.trace_directory, sizeof directory);
  directory[sizeof directory - 1] = '\0';
  FaultObserver* observer = nullptr;
  int result = options.observe_on_request(directory, page.trace_instruction_every, &observer);
  if (result == 0) core.observer.store(observer, std::memory_order_release);
  return result;
}

void Pager::Impl::kick_housekeeper() {
  StatPage* page = stat_page();
  page->request_sequence.fetch_add(1, std::memory_order_release);
  futex_wake(&page->request_sequence, 1, true);
}

void Pager::Impl::refresh_gauges() {
  far::DeviceUsage usage = core.devices.usage();
  set_gauge(Gauge::device_used_bytes, usage.used_bytes);
  set_gauge(Gauge::device_stored_bytes, usage.stored_bytes);
  set_gauge(Gauge::far_bytes, bytes_of_pages(core.devices.pages_in_use()));
  if (core.devices.some_lost()) set_gauge(Gauge::device_lost, 1);
  if (!core.managed.load()) return;
  std::uint64_t frames = bytes_of_pages(core.frames.used());
  auto local = static_cast<std::uint64_t>(std::max<std::int64_t>(core.budget.local(), 0));
  set_gauge(Gauge::frames_bytes, frames);
  std::int64_t in_hand = core.hermit != nullptr ? core.hermit->kept_in_hand() : core.budget.kept_in_hand();
  set_gauge(Gauge::reserve_bytes, bytes_of_pages(static_cast<std::size_t>(in_hand)));
  set_gauge(Gauge::resident_bytes, bytes_of_pages(local) - std::min(frames, bytes_of_pages(local)));
}

}  // namespace hinterland
