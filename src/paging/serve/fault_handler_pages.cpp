// FaultHandler: what a fault means for its page, which pages come with it, and what is asked for ahead.
#include <algorithm>
#include <cerrno>

#include "paging/serve/fault_handler.hpp"

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

void FaultHandler::serve_page(const FaultMessage& message) {
  if (core_.frames.contains(message.address)) {  // never touched while empty
    core_.kernel.wake(message.address, kPageSize);
    return;
  }
  PageIndex page = core_.window.index_of(message.address);
  core_.pages.note_used(page);
  left_waiting_ = false;
  PageCell& cell = core_.pages[page];
  PageWord word;
  while (!cell.try_lock(&word))
    if (cell.announce_waiter()) {  // who holds it wakes the thread, which looks again
      left_waiting_ = true;
      core_.page_is_waited_for();
      if (fetcher_->is_marker(page)) read_ahead(streams_.on_fault(page, core_.window.places(), run_max(page)));
      return observe(message, FaultKind::waited);
    }
  bool comes_in = word.state() == PageState::far || (word.state() == PageState::parked && !message.write);
  bool expected = comes_in && bringer_.expects_write(page, word);
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
      core_.transitions.none(page, word);
      core_.kernel.wake(message.address, kPageSize);
      break;
    case PageState::leaving:
    case PageState::arriving:
      HL_CHECK(false && "a page on its way is busy");
  }
  if (core_.budget.should_start()) keep_room(page);
}

void FaultHandler::observe(const FaultMessage& message, FaultKind kind, bool expects_write) {
  FaultObserver* observer = core_.observer.load(std::memory_order_acquire);  // pairs with who sets it
  if (observer == nullptr) [[likely]]
    return;
  observer->fault(message.address, message.thread_id, message.write || message.write_protect, kind, expects_write);
}

void FaultHandler::serve_resident(PageIndex page, PageWord word, const FaultMessage& message) {
  std::uintptr_t address = core_.address_of(page);
  if (message.write_protect) {
    // Wakes; but not when the mapping went away meanwhile, and then the thread must find that out.
    if (core_.transitions.make_writable(page, word) != 0) core_.kernel.wake(address, kPageSize);
    count(Counter::faults_write_protect);
    return;
  }
  // Usually another thread's fault was served first. Or the program dropped the page by a raw system call, and then
  // it reads as zeros.
  count(Counter::faults_spurious);
  std::uint64_t present = 0;
  bool there = core_.kernel.present(address, 1, {&present, 1}) != 0 || present != 0;
  if (there)
    core_.transitions.none(page, word);
  else
    core_.transitions.found_gone(page, word, true);
  core_.kernel.wake(address, kPageSize);
}

StreamWindow FaultHandler::stream_of(PageIndex page) {
  StreamWindow window = streams_.on_fault(page, core_.window.places(), run_max(page));
  if (window.unused != 0) count(Counter::pages_read_ahead_unused, window.unused);
  if (in_crowd_) window.steps = 0;
  return window;
}

void FaultHandler::serve_untouched(PageIndex page, const FaultMessage& message) {
  StreamWindow window = stream_of(page);
  PageRun run = bringer_.begin_around(page, window.run, run_max(page), PageState::untouched);
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
    if (there)
      core_.transitions.first_touch(run.first + at, dealt_with);
    else
      core_.transitions.no_first_touch(run.first + at, dealt_with);
    if (mapped == 0) core_.kernel.wake(address, kPageSize);
    at += dealt_with;
    if (!there) most = 1;  // the rest of what was brought ahead lies beyond the mapping, too
  }
}

void FaultHandler::serve_parked(PageIndex page, PageWord word, bool writable) {
  count(Counter::faults_refault);
  core_.transitions.take_back(page, word, writable, 0);
  core_.kernel.wake(core_.address_of(page), kPageSize);
}

void FaultHandler::serve_far(PageIndex page, PageWord word, bool write, bool expects_write) {
  count(write ? Counter::faults_write : Counter::faults_read);
  std::array<PageIndex, PolicyHost::kNextMax> next;
  std::optional<std::size_t> chosen = core_.policy.missed(
      page, std::span(next).first(in_crowd_ ? 0 : std::min<std::size_t>(run_max(page) - 1, next.size())));
  StreamWindow window = chosen ? StreamWindow{.run = {page, 1}} : stream_of(page);
  // Decides, once a fetch, how the fetcher will map each page.
  core_.transitions.begin_arrival(page, word, expects_write);
  PageRun run = bringer_.begin_around(page, window.run, run_max(page), PageState::far);
  bringer_.sample(run, run.first == page ? run.first + (run.count - 1) : run.first);
  if (run.count > 1) count(Counter::pages_read_ahead, run.count - 1);
  single_pages_ = run.count == 1 && window.steps == 0 ? single_pages_ + 1 : 0;
  bool at_once = core_.devices.synchronous(word.far_page().device());
  bool room_later = reads_before_room(run.count, at_once);
  if (!room_later) make_room(run.count);
  core_.budget.add(run.count);
  // Over a device that answers at once the steps come first: a thread that was woken before them would fault on each
  // of them all the same, and wait until it is there.
  std::uint32_t brought = run.count - 1;
  if (chosen) read_chosen(std::span(next).first(*chosen));
  if (at_once) brought += read_in_steps(page, window);
  // A marker is here, and mapping it wakes the thread, which is through its window soon: the next goes out before.
  bool is_kept = word.fetched();
  if (is_kept) read_ahead(window);
  fetcher_->start(run, page, write);
  if (!at_once && !is_kept) read_ahead(window);
  if (!at_once) brought += read_in_steps(page, window);
  if (room_later) make_room(0);
  if (!chosen && brought < window.run.count - 1 + window.steps) streams_.brought_only(page, brought);
}

// One page that nobody waits for: only where there is room, for it must not make a fault wait. False when no more can
// be asked for.
bool FaultHandler::ask_unasked(PageIndex page, std::uint32_t* asked) {
  if (!core_.budget.has_room(1)) return false;
  if (!bringer_.begin(page, PageState::far)) return true;
  core_.budget.add(1);
  if (!fetcher_->start_unasked(page)) return false;
  ++*asked;
  return true;
}

// What the policy would read next.
void FaultHandler::read_chosen(std::span<const PageIndex> pages) {
  std::uint32_t asked = 0;
  for (PageIndex page : pages)
    if (!ask_unasked(page, &asked)) break;
  if (asked != 0) count(Counter::pages_read_ahead, asked);
}

// The same for a stream that steps over pages. Returns how many it asked for.
std::uint32_t FaultHandler::read_in_steps(PageIndex page, const StreamWindow& window) {
  std::uint32_t asked = 0;
  for (std::uint32_t i = 1; i <= window.steps; ++i) {
    PageIndex next{page.value + static_cast<std::uint64_t>(std::int64_t{window.stride} * i)};
    if (!ask_unasked(next, &asked)) break;
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
  while (count < most && bringer_.begin(wanted.first + count, PageState::far)) ++count;
  if (count == 0) return false;
  PageRun run{wanted.first, count};
  bringer_.sample(run, run.first + (count - 1));
  hinterland::count(Counter::pages_read_ahead, count);
  core_.budget.add(count);
  if (!fetcher_->start_ahead(run)) return false;
  streams_.asked_ahead(run);
  return run.count == wanted.count;
}

std::uint32_t FaultHandler::run_max(PageIndex page) {
  return std::min(bringer_.run_max(), core_.read_ahead_max(page) + 1);
}

}  // namespace hinterland
