// Starting the pager, taking the program's memory over, and the small calls.
#include "paging/pager.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/signal_handlers.hpp"
#include "kernel/same_page_merging.hpp"
#include "kernel/scheduling.hpp"
#include "paging/bus_signal.hpp"
#include "paging/pager_impl.hpp"
#include "paging/place/runtime_thread.hpp"
#include "paging/program_end.hpp"

namespace hinterland {
namespace {

Pager* g_pager = nullptr;

std::uint32_t frames_for(std::uint64_t budget_bytes) {
  // Room for the second chance plus the batches of two evictors; the budget may later be tuned up to eight times.
  std::uint64_t pages = budget_bytes / kPageSize / 16 * 8 + std::uint64_t{4} * Evictor::kBatchMax;
  return static_cast<std::uint32_t>(std::bit_ceil(std::clamp<std::uint64_t>(pages, 2048, 65536)));
}

// Where that cannot be, the window alone is far memory. Who asked for all addresses is warned of it.
void cover_all_addresses(Window& window, Addresses addresses, FaultDelivery faults) {
  constexpr const char* kInstead = "memory outside of the window stays local";
  const auto say = addresses == Addresses::all ? log::warning : log::info;
  if (faults == FaultDelivery::signals) return say("--addresses all needs --fault message: %s", kInstead);
  if (Status status = window.cover_all_addresses(); !status)
    say("%s: %s; %s", status.error().what(), kInstead, status.error().next_step());
}

}  // namespace

Pager* Pager::current() { return g_pager; }

Result<Pager*> Pager::start(const PagerOptions& options, Kernel& kernel, std::unique_ptr<far::Device> device) {
  HL_CHECK(g_pager == nullptr);
  if (options.budget_bytes < kMinimumBudgetBytes)
    return std::unexpected(
        Error::make(0, "a budget of %llu bytes is too small", static_cast<unsigned long long>(options.budget_bytes))
            .remedy("--local must be at least 4M"));
  if (!kernel.features().write_protect && !kernel.features().move)
    return std::unexpected(Error::make(0, "this kernel can neither protect nor move pages for a userfaultfd")
                               .remedy("use Linux 5.7 or newer"));
  if (Status status = same_page_merging::leave(); !status) return std::unexpected(status.error());
  auto impl = std::make_unique<Impl>(kernel, std::move(device), options.far_url);
  impl->options = options;
  impl->budget_bytes = options.budget_bytes;
  Result<Window> window = Window::reserve(options.window_bytes, 4 * kGiB);
  if (!window) return std::unexpected(window.error());
  impl->core.window = std::move(*window);
  program_end::watch_this_process();
  if (options.addresses != Addresses::window)
    cover_all_addresses(impl->core.window, options.addresses, options.faults);
  if (Status status = impl->create_parts(); !status) return std::unexpected(status.error());

  auto* pager = new Pager;
  pager->base_ = impl->core.window.base();
  pager->bytes_ = impl->core.window.bytes();
  pager->impl_ = impl.release();
  g_pager = pager;
  Impl& parts = *pager->impl_;
  if (parts.core.faults_by_signal)
    if (Status status = bus_signal::install(); !status) return std::unexpected(status.error());
  // In signal mode a system call that waits with a page in its hands must find it there later, too: such pages are
  // held from the start (hold_for_call), which paging must know.
  if (options.manage_at_once || parts.core.faults_by_signal) {
    Status status = parts.take_over();
    if (!status) return std::unexpected(status.error());
  }
  if (Status status = parts.start_housekeeper(); !status) return std::unexpected(status.error());
  return pager;
}

Status Pager::Impl::create_parts() {
  core.faults_by_signal = options.faults == FaultDelivery::signals;
  core.take_by_move = options.take_by_move && core.kernel.features().move;
  core.read_ahead_pages_max = std::min(options.read_ahead_pages_max, Fetcher::kRunMax);
  core.observer.store(options.observer);
  core.budget.set_limit(options.budget_bytes);
  core.policy.gather_arrivals(options.budget_bytes >= PolicyHost::kGatherFromBytes);
  core.second_chance.enabled = (options.policy->flags & HL_POLICY_LEAVES_AT_ONCE) == 0;
  if (core.devices.synchronous(0)) {
    core.second_chance.saves_a_fetch = false;
    core.budget.park_few();
  }
  if (options.policy->worth_a_frame != nullptr) core.budget.park_an_eighth();
  leave_out(options.parts);
  set_gauge(Gauge::budget_bytes, options.budget_bytes);
  set_gauge(Gauge::device_capacity_bytes, core.devices.capacity_bytes());
  if (Status status = core.pages.create(core.window.places(), core.window.used_most()); !status) return status;
  if (Status status = core.marks.create(core.window.places()); !status) return status;
  if (Status status = core.forecast.create(core.window.places()); !status) return status;
  if (Status status = core.hint_map.create(core.window.places()); !status) return status;
  if (Status status = core.pinned.create(core.window.places()); !status) return status;
  if (Status status = core.frames.create(frames_for(options.budget_bytes)); !status) return status;
  PolicyHost::Terms terms{&core.hint_map, &core.budget, options.policy_settings, options.policy_instead};
  if (Status status = core.policy.create(options.policy, core.pages, terms); !status) return status;
  if (Status status = follow_hermit(); !status) return status;
  show_inside();
  return core.devices.create_space(core.window.bytes());
}

void Pager::Impl::leave_out(const Parts& without) {
  core.parts = without;
  if (!without.background_reclaim) core.budget.keep_nothing_in_hand();
  if (!without.second_chance) {
    core.second_chance.enabled = false;
    core.budget.park_nothing();
  }
  if (!without.feedback) {
    core.second_chance.adapts = false;
    core.flush_share.stay_low();
    core.budget.keep_the_usual_in_hand();
  }
  if (!without.write_forecast) core.forecast.learn_nothing();
  if (!without.write_back_thread) handlers.leave_out_settler();
  if (!without.read_ahead) core.read_ahead_pages_max = 0;
}

// Where nothing is reclaimed in the background, or nothing follows feedback, there is none of Hermit's either.
Status Pager::Impl::follow_hermit() {
  if (options.reclaim != Reclaim::hermit || !core.parts.background_reclaim || !core.parts.feedback) return {};
  core.hermit = std::make_unique<Hermit>();
  core.flush_share.stay_low();  // handlers take no pages ahead of need
  return core.hermit->create(core.budget, core.window.places(), HermitReclaimers::wanted());
}

void Pager::Impl::show_inside() {
  InsideView& inside = stat_page()->inside;
  inside.window_base = core.window.base();
  inside.window_bytes = core.window.bytes();
  inside.places_base = core.window.origin();
  inside.places_bytes = bytes_of_pages(core.window.places());
  inside.outside_chunks = core.window.outside().chunks_address();
  inside.outside_bits = core.window.outside().bits_address();
  inside.page_words = core.pages.words_address();
  inside.page_directory = core.pages.directory_address();
  inside.page_chunks = core.pages.chunks_address();
  inside.page_marks = core.marks.address();
  inside.inside_offset = reinterpret_cast<std::intptr_t>(&t_inside_runtime) -
                         reinterpret_cast<std::intptr_t>(__builtin_thread_pointer());
}

Status Pager::Impl::create_paging_parts() {
  auto first = Evictor::create(core);
  if (!first) return std::unexpected(first.error());
  background = std::move(*first);
  auto second = Evictor::create(core);
  if (!second) return std::unexpected(second.error());
  direct = std::move(*second);
  if (Status status = handlers.create(*direct); !status) return status;
  reclaimer = std::make_unique<Reclaimer>(core, *background, handlers.companions(), kick_housekeeper);
  hermit_reclaimers = std::make_unique<HermitReclaimers>(core, handlers.companions());
  return {};
}

Status Pager::Impl::start_paging_threads() {
  if (Status status = create_paging_parts(); !status) return status;
  gatherer_started = false;
  if (Status status = start_gatherer(); !status) return status;
  // The last that may fail: from here on pages leave, and there is no way back.
  start_keeper();
  if (core.faults_by_signal) core.kernel.expect_unwaited_copies();
  Status served = core.faults_by_signal ? handlers.start_lanes(kick_housekeeper) : handlers.start(kick_housekeeper);
  if (!served) return served;
  if (Status status = start_reclaim_threads(); !status)
    log::warning("%s; faults make room for themselves, and take longer", status.error().what());
  return {};
}

Status Pager::Impl::start_reclaim_threads() {
  if (core.hermit != nullptr) return hermit_reclaimers->start(HermitReclaimers::wanted());
  return start_runtime_thread("hl-reclaim", reclaimer.get(), [](void* self) -> void* {
    static_cast<Reclaimer*>(self)->run();
    return nullptr;
  });
}

// Without it a program that closes our descriptors behind our back loses its far pages: said, for it is rare.
void Pager::Impl::start_keeper() {
  auto entry = [](void* self) -> void* {
    InsideRuntime inside;
    note_runtime_thread();
    if (int error = static_cast<Kernel*>(self)->keep_descriptors(); error != 0)
      log::info("no thread can have descriptors of its own (%s): far pages depend on those of the program",
                strerrordesc_np(-error));
    return nullptr;
  };
  Status status = start_runtime_thread("hl-keeper", &core.kernel, entry);
  if (status)
    core.kernel.wait_until_kept();
  else
    log::info("%s; far pages depend on descriptors that the program can close", status.error().what());
}

Status Pager::Impl::start_gatherer() {
  if (gatherer_started || core.devices.all_synchronous()) return {};
  auto entry = [](void* self) -> void* {
    static_cast<Hints*>(self)->run_gatherer();
    return nullptr;
  };
  Status status = start_runtime_thread("hl-gather", &hints, entry);
  gatherer_started = status.has_value();
  return status;
}

Status Pager::Impl::start_housekeeper() {
  auto entry = [](void* self) -> void* {
    static_cast<Impl*>(self)->housekeeper();
    return nullptr;
  };
  return start_runtime_thread("hl-housekeeper", this, entry);
}

Status Pager::Impl::take_over() {
  {
    LockGuard guard(map_mutex);
    if (Status status = take_over_locked(); !status) {
      leave_to_kernel();
      return status;
    }
  }
  tell_that_paging_began();
  return {};
}

// Nobody serves the regions that are registered: who touches them would wait for ever. All pages are still there.
void Pager::Impl::leave_to_kernel() {
  given_up = true;  // what was made half is not made again
  copy_mark.drop();
  let_into_copy();
  regions.for_all([&](const Region& region) {
    if (!region.surrendered) core.kernel.unregister_range(region.start, region.length());
  });
}

// Outside the pager's lock: the allocator gives memory back under its own locks, which come before ours. In a forked
// child, too, if the fork came before this.
void Pager::Impl::tell_that_paging_began() {
  if (told.load()) return;
  if (options.on_managed != nullptr) options.on_managed();
  told.store(true);
}

Status Pager::Impl::take_over_locked() {
  std::uint64_t started = now_ns();
  if (int error = core.frames.attach(core.kernel); error != 0)
    return std::unexpected(Error::make(-error, "cannot register the frames with userfaultfd"));
  if (Status status = copy_mark.create(); !status) return status;
  if (int error = keep_from_copies(); error != 0)
    return std::unexpected(Error::make(-error, "cannot keep far memory from copies of the process"));
  // Registered regions fault from now on; the handler starts when all their pages are listed.
  int error = 0;
  regions.for_all([&](const Region& region) {
    if (int failed = take_over_region(region); failed != 0) error = failed;
  });
  if (error != 0) return std::unexpected(Error::make(-error, "cannot register memory with userfaultfd"));
  std::uint64_t resident = bytes_of_pages(static_cast<std::size_t>(core.budget.local()));
  take_usual_priority();  // if this is the housekeeper
  if (Status status = start_paging_threads(); !status) return status;
  signal_handlers::set_settle([] { g_pager->impl_->settle_hints(); });
  std::uint64_t took_ns = now_ns() - started;
  set_gauge(Gauge::takeover_ns, took_ns);
  set_gauge(Gauge::takeover_resident_bytes, resident);
  core.managed.store(true);
  set_gauge(Gauge::managed, 1);
  core.ask_for_room();
  log::debug("paging began with %llu MiB resident, after %llu us", static_cast<unsigned long long>(resident / kMiB),
             static_cast<unsigned long long>(took_ns / 1000));
  return {};
}

int Pager::Impl::take_over_region(const Region& region) {
  if (region.surrendered) return 0;
  if (int error = core.kernel.register_range(region.start, region.length()); error != 0) return error;
  std::array<iovec, 256> runs;
  for (std::uintptr_t at = region.start; at < region.end;) {
    const PresentRuns present = core.kernel.present_runs(at, region.end, runs);
    if (present.error != 0) return present.error;
    for (const iovec& run : std::span(runs).first(present.count)) adopt(run);
    at = present.looked_until;
  }
  return 0;
}

void Pager::Impl::adopt(const iovec& run) {
  const PageIndex first = core.window.index_of(reinterpret_cast<std::uintptr_t>(run.iov_base));
  const std::size_t pages = run.iov_len >> kPageShift;
  for (std::size_t i = 0; i < pages; ++i) core.transitions.adopt(first + i);
}

int Pager::set_budget(std::uint64_t bytes) {
  if (bytes < kMinimumBudgetBytes) return -EINVAL;
  impl_->budget_bytes.store(bytes);
  // What the pages have of a budget that is shared, the housekeeper knows.
  if (!impl_->core.ledger.is_shared()) impl_->core.budget.set_limit(bytes);
  impl_->core.policy.gather_arrivals(bytes >= PolicyHost::kGatherFromBytes);
  set_gauge(Gauge::budget_bytes, bytes);
  impl_->core.ask_for_room();
  Impl::kick_housekeeper();
  return 0;
}

bool Pager::join_budget(LedgerClient& client) {
  if (!impl_->core.ledger.join(client)) return false;
  Impl::kick_housekeeper();
  return true;
}

bool Pager::holds_outside(std::uintptr_t address) const { return impl_->core.window.outside().contains(address); }
bool Pager::overlaps_outside(std::uintptr_t address, std::size_t length) const {
  return impl_->core.window.outside().overlaps(address, length);
}
std::uintptr_t Pager::end_of_piece(std::uintptr_t address, std::uintptr_t end) const {
  return impl_->core.window.end_of_piece(address, end);
}
std::uintptr_t Pager::places_base() const { return impl_->core.window.origin(); }
std::size_t Pager::places_bytes() const { return bytes_of_pages(impl_->core.window.places()); }
bool Pager::covers_all_addresses() const { return impl_->core.window.covers_all_addresses(); }
std::size_t Pager::outside_bytes() const { return impl_->core.window.outside().bytes(); }

std::uint64_t Pager::budget_bytes() const { return impl_->budget_bytes.load(); }

void Pager::thread_started(const volatile std::uint32_t* cpu) {
  impl_->threads.add(static_cast<std::uint32_t>(syscall(SYS_gettid)), cpu);
}

void Pager::thread_ended() { impl_->threads.remove(static_cast<std::uint32_t>(syscall(SYS_gettid))); }

void Pager::leave_device() { impl_->core.devices.leave(); }
void Pager::stay_on_device() { impl_->core.devices.stay(); }

}  // namespace hinterland
