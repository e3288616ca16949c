// The fault handler: message in, page mapped, thread woken.
#include "paging/serve/fault_handler.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/inside.hpp"

namespace hinterland {
namespace {

// 64 pages of zeros to copy from: never written, so the kernel backs all of them with its one zero page. (Not const:
// it would then be 256 KiB of zeros in the file.)
alignas(kPageSize) std::array<std::byte, bytes_of_pages(Fetcher::kRunMax)> g_zeros;

// To the observer.
FaultKind kind_of(PageWord word, const FaultMessage& message) {
  switch (word.state()) {
    case PageState::resident:
      return message.write_protect ? FaultKind::write_protect : FaultKind::spurious;
    case PageState::untouched:
      return FaultKind::first_touch;
    case PageState::parked:
      return FaultKind::refault;
    case PageState::lost:
      return FaultKind::lost;
    default:
      return message.write ? FaultKind::write : FaultKind::read;
  }
}

}  // namespace

Result<std::unique_ptr<FaultHandler>> FaultHandler::create(Core& core, const HandlerPlace& place, Settler& settler,
                                                           Evictor& direct, FaultHandler* first) {
  auto handler = std::unique_ptr<FaultHandler>(new FaultHandler(core, place, settler, direct, first));
  auto fetcher = Fetcher::create(core);
  if (!fetcher) return std::unexpected(fetcher.error());
  handler->fetcher_ = std::move(*fetcher);
  return handler;
}

void FaultHandler::pause() {
  paused_.store(1);
  working_.lock();  // the handler lets go when nothing is in flight
  direct_.settle_taken();
}

void FaultHandler::resume() {
  paused_.store(0);
  working_.unlock();
  futex_wake(&paused_, 1);
}

void FaultHandler::run() {
  InsideRuntime inside;
  note_runtime_thread();
  placement_.start();
  for (;;) {
    if (paused_.load() != 0) {
      futex_wait(&paused_, 1);
      continue;
    }
    if (int count = wait_for_faults(); count > 0) serve_until_idle(count);
  }
}

// Serves so many messages, and then whatever comes while something is in flight or room is made.
void FaultHandler::serve_until_idle(int count) {
  LockGuard guard(working_);
  for (;;) {
    if (count == static_cast<int>(messages_.size()))
      serve_crowd(messages_.size());
    else if (count > 0)
      serve_all(received(count));
    if (fetcher_->in_flight() == 0) {
      count = make_room_at_leisure();
      if (count <= 0) return;
      continue;
    }
    count = 0;
    if (paused_.load() == 0)
      count = wait_for_faults_or_arrivals();
    else if (!fetcher_->progress())
      fetcher_->wait(1'000'000'000);
  }
}

void FaultHandler::run_spare() {
  InsideRuntime inside;
  note_runtime_thread();
  placement_.start();
  for (;;) {
    std::uint32_t thread_id = place_.attendance.wait_for_call(place_.handler);
    std::uint64_t served = placement_.go_to(thread_id) ? serve_while_called() : 0;
    placement_.go_back();
    place_.attendance.leave(place_.handler, served);
  }
}

// Looks again and again without sleeping, which it can do because it makes way: where the thread runs, it does not;
// and where the thread waits, there is nothing better to do. What it does not sleep for need not wake it.
std::uint64_t FaultHandler::serve_while_called() {
  std::uint64_t served = 0;
  for (unsigned in_vain = 0; in_vain < kLooksInVain && placement_.makes_way();) {
    if (paused_.load() != 0) {
      futex_wait(&paused_, 1);
      continue;
    }
    int count = core_.kernel.look_for_faults(room_for_messages());
    if (count < 0) break;
    if (count == 0) {
      ++in_vain;
      placement_.looked();
      continue;
    }
    in_vain = 0;
    served += static_cast<unsigned>(count);
    LockGuard guard(working_);
    serve_all(received(count));
    finish();
  }
  return served;
}

// Alone it takes all there are; beside others one, and leaves the others theirs. But then nobody sees a crowd: now
// and then the first handler takes all.
std::span<FaultMessage> FaultHandler::room_for_messages() {
  bool all = place_.attendance.alone() || (place_.handler == 0 && ++reads_beside_others_ % kLookForCrowdEvery == 0);
  return std::span(messages_).first(all ? messages_.size() : 1);
}

void FaultHandler::serve_all(std::span<const FaultMessage> messages) {
  std::uint64_t started = now_ns();
  fetcher_->hold_requests();
  for (const FaultMessage& message : messages) serve(message);
  fetcher_->send_requests();
  std::uint64_t done = now_ns();
  spin_.start(done);
  stat_page()->fault_latency.add((done - started) / messages.size());
}

// Nothing is in flight. One system call a fault, unless requests have lately been slept for: that takes poll(), which
// does not work on a descriptor that blocks, and changing it costs a call as well.
int FaultHandler::wait_for_faults() {
  bool may_block = core_.kernel.features().look_for_faults && waits_since_poll_ >= kWaitsBeforeBlocking;
  if (core_.devices.all_synchronous() || may_block) return core_.kernel.read_faults(room_for_messages(), true);
  ++waits_since_poll_;
  if (int count = core_.kernel.read_faults(messages_, false); count != 0) return count;
  pollfd wait{core_.kernel.fault_descriptor(), POLLIN, 0};
  ::poll(&wait, 1, 100);
  return core_.kernel.read_faults(messages_, false);
}

// Something is in flight. A look for faults after each fetch: disks report pages together, the threads that wait for
// them would all fault together again, and the disk would stand still while their pages are mapped
// (docs/adr/0024-one-fetch-then-a-look.md).
int FaultHandler::wait_for_faults_or_arrivals() {
  if (fetcher_->progress(1)) {
    spin_.answered();
    if (fetcher_->in_flight() == 0) return 0;
    spin_.start(now_ns());
    return look_for_faults();
  }
  if (!spin_.spin(now_ns())) return sleep_until_fault_or_arrival();
  int count = look_for_faults();
  if (count > 0) spin_.answered();
  return count;
}

int FaultHandler::look_for_faults() {
  return core_.kernel.features().look_for_faults ? core_.kernel.look_for_faults(messages_)
                                                 : core_.kernel.read_faults(messages_, false);
}

int FaultHandler::sleep_until_fault_or_arrival() {
  waits_since_poll_ = 0;
  if (fetcher_->is_being_helped()) {  // for one piece at most, as if this thread had mapped it itself
    fetcher_->wait(100'000'000);
    return look_for_faults();
  }
  if (int count = core_.kernel.read_faults(messages_, false); count != 0) return count;  // poll() works from here on
  std::array<pollfd, 1 + far::kDevicesMax> waits;
  waits[0] = {core_.kernel.fault_descriptor(), POLLIN, 0};
  std::size_t events = fetcher_->events(std::span(waits).subspan<1>());
  ::poll(waits.data(), 1 + events, 100);
  return core_.kernel.read_faults(messages_, false);
}

void FaultHandler::serve(const FaultMessage& message) {
  placement_.on_fault(message.thread_id);
  serve_page(message);
  placement_.served();
}

void FaultHandler::serve_here(const FaultMessage& message) {
  std::uint64_t started = now_ns();
  serve_page(message);
  spin_.start(started);
  finish();
  stat_page()->fault_latency.add(now_ns() - started);
}

// Until nothing is in flight: for who cannot look for faults meanwhile.
void FaultHandler::finish() {
  while (fetcher_->in_flight() != 0) {
    if (fetcher_->progress())
      spin_.answered();
    else if (!spin_.spin(now_ns()))
      fetcher_->wait(100'000'000);
  }
}

void FaultHandler::serve_page(const FaultMessage& message) {
  if (!core_.window.contains(message.address, kPageSize)) {  // a frame: never touched while empty
    core_.kernel.wake(message.address, kPageSize);
    return;
  }
  PageIndex page = core_.window.index_of(message.address);
  core_.pages.note_used(page);
  PageCell& cell = core_.pages[page];
  PageWord word;
  while (!cell.try_lock(&word))
    if (cell.announce_waiter()) {  // who holds it wakes the thread, which looks again
      core_.page_is_waited_for();
      if (fetcher_->is_marker(page)) read_ahead(streams_.on_fault(page, core_.window.pages(), run_max(page)));
      return observe(message, FaultKind::waited);
    }
  bool comes_in = word.state() == PageState::far || (word.state() == PageState::parked && !message.write);
  bool expected = comes_in && expects_write(page, word);
  observe(message, kind_of(word, message), expected && !message.write);

  switch (word.state()) {
    case PageState::resident:
      serve_resident(page, word, message);
      break;
    case PageState::untouched:
      serve_untouched(page, message);
      break;
    case PageState::parked:
      serve_parked(page, word, message.write || expected);
      break;
    case PageState::far:
      serve_far(page, word, message.write, expected);
      break;
    case PageState::lost:
      core_.kernel.poison(message.address, kPageSize);
      core_.unlock(page, word);
      core_.kernel.wake(message.address, kPageSize);
      break;
    case PageState::leaving:
    case PageState::arriving:
      HL_CHECK(false && "a page on its way is busy");
  }
  if (core_.budget.should_start()) keep_room();
}

void FaultHandler::observe(const FaultMessage& message, FaultKind kind, bool expects_write) {
  FaultObserver* observer = core_.observer.load(std::memory_order_acquire);  // pairs with who sets it
  if (observer == nullptr) [[likely]]
    return;
  observer->fault(message.address, message.thread_id, message.write || message.write_protect, kind, expects_write);
}

// Reclaim ahead of need belongs to the background. But taking scattered pages flushes the faulting thread's CPU once
// a page, and from another CPU that is an interrupt, which costs more than the page. A handler that shares the CPU
// with the one thread that faults takes a few pages itself: it has woken the thread already. In signal mode it is
// that thread. (docs/adr/0015-scattered-pages-leave-from-the-same-cpu.md) Writing them back is left to the settler.
bool FaultHandler::reclaims_here() const {
  bool on_its_cpu = core_.faults_by_signal || placement_.makes_way();
  return on_its_cpu && core_.flush_share.high() && core_.devices.all_synchronous();
}

// Unchanged pages leave by one call for many, and are the background's, but where waking it draws the thread away
// (docs/adr/0035-the-reclaimer-attracts-too.md), and the program brings in single pages: runs are worth another CPU.
bool FaultHandler::takes_clean_pages_here() {
  bool may = placement_.makes_way() && core_.parts.feedback && core_.devices.all_synchronous();
  return may && single_pages_ >= kScatteredFrom && !core_.budget.falls_behind() && !placement_.may_wake_reclaimer();
}

void FaultHandler::keep_room() {
  std::optional<std::size_t> taken = 0;
  if (reclaims_here())
    taken = take_here();
  else if (takes_clean_pages_here())
    taken = direct_.reclaim(kCleanPagesTakenHere);
  if (!taken) return;
  count(Counter::reclaim_handler_pages, *taken);
  if (*taken != 0)
    core_.flush_share.note_taken_where_used();
  else if (core_.budget.wake_reclaimer())
    placement_.woke_reclaimer();
}

// A handler that makes way, and has the CPU without a fault to serve, is there because the thread sleeps: in a system
// call, or for want of work. Pages that leave now are not waited for. Returns how many messages it read meanwhile.
// Of a program that has not paused for long it is asked now and then: a look costs more than a read that blocks.
int FaultHandler::make_room_at_leisure() {
  if (faults_since_pause_++ > kFaultsWithoutPause && faults_since_pause_ % kLookEvery != 0) return 0;
  while (reclaims_here() && !core_.budget.should_stop() && paused_.load() == 0) {
    if (!core_.kernel.features().look_for_faults) return 0;
    if (int count = core_.kernel.look_for_faults(room_for_messages()); count != 0) return count;
    faults_since_pause_ = 0;
    std::size_t freed = direct_.reclaim(kPagesTakenAtLeisure);
    if (freed == 0) return 0;
    count(Counter::reclaim_handler_pages, freed);
  }
  return 0;
}

// Nothing: what was taken last time is being written back, and that is soon enough.
std::optional<std::size_t> FaultHandler::take_here() {
  if (core_.budget.falls_behind() || !settler_.ready() || !placement_.may_wake_helper())
    return direct_.reclaim(kPagesTakenHere);
  std::optional<std::size_t> taken = direct_.take(kPagesTakenHere);
  if (taken && *taken != 0) {
    settler_.call(place_.handler, direct_);
    placement_.woke_helper();
  }
  return taken;
}

void FaultHandler::serve_resident(PageIndex page, PageWord word, const FaultMessage& message) {
  std::uintptr_t address = core_.address_of(page);
  if (message.write_protect) {
    if (word.has_far()) core_.release_far(word.far_page());
    // Wakes; but not when the mapping went away meanwhile, and then the thread must find that out.
    if (core_.kernel.write_protect(address, kPageSize, false) != 0) core_.kernel.wake(address, kPageSize);
    core_.policy.used(page, HL_ACCESS_WRITE);
    core_.unlock(page, word.resident_dirty().with_often_written(core_.forecast.learns()));
    core_.forecast.note_written(page);
    count(Counter::faults_write_protect);
    return;
  }
  // Usually another thread's fault was served first. Or the program dropped the page by a raw system call, and then
  // it reads as zeros.
  count(Counter::faults_spurious);
  std::uint64_t present = 0;
  bool there = core_.kernel.present(address, 1, {&present, 1}) != 0 || present != 0;
  if (!there) {
    if (word.has_far()) core_.release_far(word.far_page());
    core_.policy.departed(page, 1);
    core_.budget.subtract(1);
    core_.unlock(page, PageWord::untouched());
  } else {
    core_.unlock(page, word);
  }
  core_.kernel.wake(address, kPageSize);
}

StreamWindow FaultHandler::stream_of(PageIndex page) {
  StreamWindow window = streams_.on_fault(page, core_.window.pages(), run_max(page));
  if (window.unused != 0) count(Counter::pages_read_ahead_unused, window.unused);
  if (in_crowd_) window.steps = 0;
  return window;
}

void FaultHandler::serve_untouched(PageIndex page, const FaultMessage& message) {
  StreamWindow window = stream_of(page);
  PageRun run = lock_around(page, window.run, PageState::untouched);
  if (run.count < window.run.count || window.steps != 0) streams_.brought_only(page, run.count - 1);
  make_room(run.count);
  map_zeros(run, message.write);
  count(Counter::faults_first_touch);
}

void FaultHandler::map_zeros(PageRun run, bool write) {
  core_.budget.add(run.count);
  std::uint32_t at = 0, most = run.count;
  while (at < run.count) {
    std::uintptr_t address = core_.address_of(run.first + at);
    std::uint32_t wanted = std::min(most, run.count - at);
    std::size_t length = bytes_of_pages(wanted);
    std::int64_t done =
        write ? core_.kernel.copy(address, g_zeros.data(), length, false) : core_.kernel.zero(address, length);
    if (done == -EAGAIN) continue;
    if (done == -ENOMEM && direct_.reclaim(Evictor::kBatchMax) != 0) continue;
    if (done < 0 && done != -EEXIST && wanted > 1) {  // maybe it only reaches beyond one of the kernel's mappings
      most = wanted / 2;
      continue;
    }
    if (done > 0) most = run.count;
    std::uint32_t mapped = done > 0 ? static_cast<std::uint32_t>(done >> kPageShift) : 0;
    // Read ahead of a stream may reach beyond what is mapped: -ENOENT, and nothing was there to map.
    bool there = mapped != 0 || done == -EEXIST;
    std::uint32_t dealt_with = std::max(mapped, 1u);
    if (there) core_.policy.arrived(run.first + at, dealt_with, HL_ARRIVAL_FIRST_TOUCH);
    if (!there) core_.budget.subtract(dealt_with);
    for (std::uint32_t i = 0; i < dealt_with; ++i)
      core_.unlock(run.first + at + i, there ? PageWord{}.resident_dirty() : PageWord::untouched());
    if (mapped == 0) core_.kernel.wake(address, kPageSize);
    at += dealt_with;
    if (!there) most = 1;  // the rest of what was brought ahead lies beyond the mapping, too
  }
}

void FaultHandler::serve_parked(PageIndex page, PageWord word, bool writable) {
  Frame& frame = core_.frames[word.frame()];
  far::FarPage far = frame.far;
  count(Counter::faults_refault);
  core_.second_chance.note_hit();
  // A page that is only read stays clean: mapped protected from a copy, in one step. One that is written is moved.
  bool keep_clean = !writable && core_.kernel.features().write_protect;
  if (keep_clean) {
    std::int64_t done =
        core_.kernel.copy(core_.address_of(page), core_.frames.memory_of(word.frame()), kPageSize, true);
    keep_clean = done == static_cast<std::int64_t>(kPageSize);
  }
  core_.policy.arrived(page, 1, HL_ARRIVAL_REFAULT);
  if (keep_clean) {
    core_.budget.add(1);
    frame.state.store(FrameState::dropped, std::memory_order_release);  // pairs with the look in end_second_chance()
    core_.unlock(page, word.resident_clean(far));
  } else {
    core_.give_back(page, word.frame());
    core_.release_far(far);
    core_.unlock(page, word.resident_dirty());
  }
  core_.kernel.wake(core_.address_of(page), kPageSize);
}

void FaultHandler::serve_far(PageIndex page, PageWord word, bool write, bool expects_write) {
  count(write ? Counter::faults_write : Counter::faults_read);
  std::array<PageIndex, PolicyHost::kNextMax> next;
  std::optional<std::size_t> chosen = core_.policy.missed(
      page, std::span(next).first(in_crowd_ ? 0 : std::min<std::size_t>(run_max(page) - 1, next.size())));
  StreamWindow window = chosen ? StreamWindow{.run = {page, 1}} : stream_of(page);
  // Decides, once a fetch, how the fetcher will map each page.
  core_.pages[page].set_locked(word.arriving().with_writable(expects_write));
  PageRun run = lock_around(page, window.run, PageState::far);
  if (core_.forecast.samples(run)) {
    PageIndex sample = run.first == page ? run.first + (run.count - 1) : run.first;
    core_.pages[sample].set_locked(core_.pages[sample].load().with_writable(false));
  }
  if (run.count > 1) count(Counter::pages_read_ahead, run.count - 1);
  single_pages_ = run.count == 1 && window.steps == 0 ? single_pages_ + 1 : 0;
  make_room(run.count);
  core_.budget.add(run.count);
  // Over a device that answers at once the steps come first: a thread that was woken before them would fault on each
  // of them all the same, and wait until it is there.
  bool at_once = core_.devices.synchronous(word.far_page().device());
  std::uint32_t brought = run.count - 1;
  if (chosen) read_chosen(std::span(next).first(*chosen));
  if (at_once) brought += read_in_steps(page, window);
  // A marker is here, and mapping it wakes the thread, which is through its window soon: the next goes out before.
  bool is_kept = word.fetched();
  if (is_kept) read_ahead(window);
  fetcher_->start(run, page, write);
  if (!at_once && !is_kept) read_ahead(window);
  if (!at_once) brought += read_in_steps(page, window);
  if (!chosen && brought < window.run.count - 1 + window.steps) streams_.brought_only(page, brought);
}

// What the policy would read next. As steps: only where there is room.
void FaultHandler::read_chosen(std::span<const PageIndex> pages) {
  std::uint32_t asked = 0;
  for (PageIndex page : pages) {
    if (!core_.budget.has_room(1)) break;
    if (!lock_in_state(page, PageState::far)) continue;
    core_.budget.add(1);
    if (!fetcher_->start_unasked(page)) break;
    ++asked;
  }
  if (asked != 0) count(Counter::pages_read_ahead, asked);
}

// The same for a stream that steps over pages. Only where there is room: what nobody waits for must not make a fault
// wait. Returns how many pages it asked for.
std::uint32_t FaultHandler::read_in_steps(PageIndex page, const StreamWindow& window) {
  std::uint32_t asked = 0;
  for (std::uint32_t i = 1; i <= window.steps && core_.budget.has_room(1); ++i) {
    PageIndex next{static_cast<std::uint32_t>(page.value + std::int64_t{window.stride} * i)};
    if (!lock_in_state(next, PageState::far)) continue;
    core_.budget.add(1);
    if (!fetcher_->start_unasked(next)) break;
    ++asked;
  }
  if (asked != 0) count(Counter::pages_read_ahead, asked);
  return asked;
}

// Asks for what a stream will want next, while it uses up what it has.
void FaultHandler::read_ahead(const StreamWindow& window) {
  for (PageRun left = window.ahead; left.count != 0;) {
    PageRun wanted{left.first, std::min(left.count, window.ahead_window)};
    if (!read_window_ahead(wanted)) return;
    left = {wanted.end(), left.count - wanted.count};
  }
}

// True when all of it was asked for.
bool FaultHandler::read_window_ahead(PageRun wanted) {
  std::uint32_t most = std::min(wanted.count, run_max(wanted.first)), count = 0;
  if (most == 0 || !core_.budget.has_room(most)) return false;
  while (count < most && lock_in_state(wanted.first + count, PageState::far)) ++count;
  if (count == 0) return false;
  PageRun run{wanted.first, count};
  if (core_.forecast.samples(run)) {
    PageIndex last = wanted.first + (count - 1);
    core_.pages[last].set_locked(core_.pages[last].load().with_writable(false));
  }
  hinterland::count(Counter::pages_read_ahead, count);
  core_.budget.add(count);
  if (!fetcher_->start_ahead(run)) return false;
  streams_.asked_ahead(run);
  return run.count == wanted.count;
}

bool FaultHandler::expects_write(PageIndex page, PageWord word) {
  return word.often_written() || core_.forecast.expects_write(page);
}

// Under a small budget a run must not push out what it brings.
std::uint32_t FaultHandler::run_max(PageIndex page) {
  auto most = static_cast<std::uint32_t>(std::clamp<std::int64_t>(core_.budget.limit() / 16, 1, Fetcher::kRunMax));
  return std::min(most, core_.read_ahead_max(page) + 1);
}

// Without waiting. A far page is arriving from now on, mapped as its neighbourhood suggests.
bool FaultHandler::lock_in_state(PageIndex page, PageState state) {
  if (core_.pages[page].load().state() != state) return false;
  core_.pages.note_used(page);
  PageCell& cell = core_.pages[page];  // only now: an unused page's cell is not its own
  PageWord word;
  if (!cell.try_lock(&word)) return false;
  if (word.state() != state) {
    core_.unlock(page, word);
    return false;
  }
  bool writable = word.often_written() || core_.forecast.expects_write_unsampled(page);
  if (state == PageState::far) cell.set_locked(word.arriving().with_writable(writable));
  return true;
}

// Locks the neighbours of a page that are in the same state, as far as the window asks.
PageRun FaultHandler::lock_around(PageIndex page, PageRun wanted, PageState state) {
  std::uint32_t most = run_max(page), first = page.value, end = page.value + 1;
  while (end < wanted.end().value && end - first < most && lock_in_state({end}, state)) ++end;
  while (first > wanted.first.value && end - first < most && lock_in_state({first - 1}, state)) --first;
  return {{first}, end - first};
}

// Direct reclaim, the last resort: the background fell behind.
void FaultHandler::make_room(std::uint32_t pages) {
  if (core_.budget.has_room(pages)) return;
  fetcher_->send_requests();  // others need not wait for this one's room
  count(Counter::reclaim_direct_faults);
  while (!core_.budget.has_room(pages)) {
    std::size_t freed = direct_.reclaim(std::max<std::size_t>(pages, 32));
    if (freed == 0) return;  // all pinned, or the device refuses: go beyond the budget rather than hang
    count(Counter::reclaim_direct_pages, freed);
  }
}

}  // namespace hinterland
