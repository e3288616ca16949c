// The way in: device read, then one mapping call for each stretch of pages that arrived side by side.
#include "paging/in/fetcher.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {
namespace {

constexpr PageIndex kNobody{UINT64_MAX};  // as the page that was asked for: none of these

}  // namespace

Result<std::unique_ptr<Fetcher>> Fetcher::create(Core& core, For whom) {
  auto fetcher = std::unique_ptr<Fetcher>(new Fetcher(core, whom));
  auto channels = core.devices.open_channels();
  if (!channels) return std::unexpected(channels.error());
  fetcher->channels_ = std::move(*channels);
  fetcher->buffers_ = static_cast<std::byte*>(reserve_zeroed(bytes_of_pages(kBuffers + kKept)));
  if (fetcher->buffers_ == nullptr) return std::unexpected(Error::make(ENOMEM, "no memory for transfer buffers"));
  return fetcher;
}

Fetcher::~Fetcher() {
  if (buffers_ != nullptr) raw_munmap(buffers_, bytes_of_pages(kBuffers + kKept));
}

void Fetcher::start(PageRun run, PageIndex demanded, bool write, std::uint8_t priority) {
  run = part_on_device_of(run, demanded);
  if (is_direct(demanded)) {
    start_direct(run, demanded, write, priority);
    return;
  }
  if (run.count == 1 && map_kept(demanded, write, priority)) return;
  Transfer* transfer = prepare(run, demanded, write);
  // Short of buffers: only what was asked for; and for that there will be one when the next request completes.
  while (transfer == nullptr) {
    if (run.count > 1) run = call_off_all_but(run, {demanded, 1});
    transfer = prepare(run, demanded, write);
    if (transfer != nullptr) break;
    send_held();
    if (!progress()) wait(1'000'000'000);
  }
  transfer->priority = priority;
  if (read_by_two(*transfer)) return;
  ask_for(*transfer);
  if (!holds_) progress();
}

// A run may reach from one region into the next, which lies on another device: its pages are far again.
PageRun Fetcher::part_on_device_of(PageRun run, PageIndex page) {
  if (core_.devices.count() == 1 || run.count == 1) return run;
  std::uint32_t device = device_of(page);
  PageRun part{page, 1};
  while (part.end() < run.end() && device_of(part.end()) == device) ++part.count;
  while (run.first < part.first && device_of({part.first.value - 1}) == device)
    part = {{part.first.value - 1}, part.count + 1};
  return call_off_all_but(run, part);
}

PageRun Fetcher::call_off_all_but(PageRun run, PageRun part) {
  core_.transitions.call_off({run.first, static_cast<std::uint32_t>(part.first.value - run.first.value)});
  core_.transitions.call_off({part.end(), static_cast<std::uint32_t>(run.end().value - part.end().value)});
  return part;
}

bool Fetcher::start_ahead(PageRun run) {
  run = part_on_device_of(run, run.first);
  Transfer* transfer = prepare(run, run.first, false);
  if (transfer == nullptr) {
    core_.transitions.call_off(run);
    return false;
  }
  transfer->unasked = transfer->keeps_first = true;
  ask_for(*transfer);
  return true;
}

bool Fetcher::start_unasked(PageIndex page) {
  if (is_direct(page)) {
    start_direct({page, 1}, kNobody, false, 0);
    return true;
  }
  Transfer* transfer = prepare({page, 1}, page, false);
  if (transfer == nullptr) {
    core_.transitions.call_off({page, 1});
    return false;
  }
  transfer->unasked = true;
  ask_for(*transfer);
  if (!holds_) progress();
  return true;
}

bool Fetcher::is_marker(PageIndex page) const {
  return transfers_in_flight_ != 0 && std::any_of(transfers_.begin(), transfers_.end(), [page](const Transfer& each) {
           return each.active && each.keeps_first && each.run.first == page;
         });
}

// An active transfer with a place for each page; nullptr when they are all in use.
Fetcher::Transfer* Fetcher::prepare(PageRun run, PageIndex demanded, bool write) {
  Transfer* transfer = free_transfer();
  if (transfer == nullptr) return nullptr;
  std::uint32_t first_buffer = 0;
  if (!take_buffers(run.count, &first_buffer)) return nullptr;
  *transfer = {};
  transfer->run = run;
  transfer->demanded = demanded;
  transfer->write = write;
  transfer->active = true;
  transfer->first_buffer = first_buffer;
  transfer->left = run.count;
  transfer->started_ns = now_ns();
  ++transfers_in_flight_;
  return transfer;
}

// The marker of a stream: far still, but without I/O when it is asked for.
void Fetcher::keep_first(Transfer& transfer) {
  PageIndex page = transfer.run.first;
  PageWord word = core_.pages[page].load();
  auto same =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.used && each.page == page; });
  std::uint32_t entry = same != kept_.end() ? static_cast<std::uint32_t>(same - kept_.begin()) : next_kept_++ % kKept;
  kept_[entry] = {page, word.far_page(), true};
  std::memcpy(kept_bytes(entry), place_of(transfer, 0), kPageSize);
  transfer.arrived.reset(0);
  transfer.done.set(0);
  core_.transitions.keep(page);
}

bool Fetcher::map_kept(PageIndex page, bool write, std::uint8_t priority) {
  PageWord word = core_.pages[page].load();
  if (!word.fetched()) return false;
  for (std::uint32_t entry = 0; entry < kKept; ++entry) {
    Kept& kept = kept_[entry];
    if (!kept.used || kept.page != page || kept.far != word.far_page()) continue;
    kept.used = false;
    map_run(page, 1, kept_bytes(entry), wants_protection(page, page, write), demanded_arrival(), priority);
    return true;
  }
  return false;
}

Fetcher::Transfer* Fetcher::free_transfer() {
  auto at = std::find_if(transfers_.begin(), transfers_.end(), [](const Transfer& t) { return !t.active; });
  return at == transfers_.end() ? nullptr : &*at;
}

bool Fetcher::is_fetching(PageRun run) const {
  if (transfers_in_flight_ == 0) return false;
  return std::any_of(transfers_.begin(), transfers_.end(), [run](const Transfer& each) {
    PageIndex first = std::max(each.run.first, run.first), end = std::min(each.run.end(), run.end());
    for (PageIndex page = first; each.active && page < end; page = page + 1)
      if (!each.done[page.value - each.run.first.value]) return true;
    return false;
  });
}

bool Fetcher::note_waiting(PageIndex page, std::uint64_t since_ns) {
  if (transfers_in_flight_ == 0) return false;
  for (Transfer& each : transfers_) {
    if (!each.active || page < each.run.first || page >= each.run.end()) continue;
    if (each.done[page.value - each.run.first.value]) continue;
    std::uint64_t& since = page == each.demanded && !each.unasked ? each.demanded_since_ns : each.other_since_ns;
    if (since == 0) since = since_ns;
    return true;
  }
  return false;
}

// Adjacent buffers, so that a run that arrived whole is mapped with one call. The first that are free: they were used
// last, and are in the caches still.
bool Fetcher::take_buffers(std::uint32_t count, std::uint32_t* first) {
  for (std::uint32_t at = 0, length = 0; at < kBuffers; ++at) {
    length = buffers_used_[at] ? 0 : length + 1;
    if (length < count) continue;
    *first = at + 1 - count;
    for (std::uint32_t i = 0; i < count; ++i) buffers_used_.set(*first + i);
    return true;
  }
  return false;
}

std::byte* Fetcher::place_of(const Transfer& transfer, std::uint32_t offset) const {
  return buffers_ + bytes_of_pages(transfer.first_buffer + offset);
}

void Fetcher::ask_for(Transfer& transfer) {
  if (held_count_ + transfer.run.count > held_.size()) send_held();
  auto index = static_cast<std::uint64_t>(&transfer - transfers_.data());
  std::span requests(held_.data() + held_count_, transfer.run.count);
  for (std::uint32_t i = 0; i < transfer.run.count; ++i)
    requests[i] = {far::Operation::read, core_.pages[transfer.run.first + i].load().far_page(), place_of(transfer, i),
                   index << 32 | i};
  // The page that a thread waits for goes first.
  std::swap(requests[0], requests[transfer.demanded.value - transfer.run.first.value]);
  held_count_ += transfer.run.count;
  if (!holds_) send_held();
}

void Fetcher::send_requests() {
  holds_ = false;
  send_held();
}

void Fetcher::send_held() {
  for (std::uint32_t sent = 0; sent < held_count_;) {
    int accepted = channels_->submit(std::span(held_.data() + sent, held_count_ - sent));
    if (accepted < 0) {
      for (; sent < held_count_; ++sent) complete({held_[sent].tag, -accepted});
      break;
    }
    sent += static_cast<std::uint32_t>(accepted);
    if (accepted == 0 && !progress()) wait(1'000'000'000);
  }
  held_count_ = 0;
}

bool Fetcher::progress(unsigned most) {
  bool any = end_lent(), partly = false, all_gathered = false;
  for (unsigned fetched = 0; fetched < most; any = true) {
    if (done_next_ == done_count_) {
      if (all_gathered || !gather()) break;
      all_gathered = done_count_ < done_.size();
    }
    bool last = complete(done_[done_next_++]);
    fetched += last;
    partly |= !last;
  }
  if (partly)
    for (Transfer& transfer : transfers_)
      if (transfer.active && transfer.arrived.any()) map_arrived(transfer);
  return any || take_back();
}

bool Fetcher::gather() {
  done_next_ = 0;
  done_count_ = static_cast<std::size_t>(channels_->poll(done_));
  return done_count_ != 0;
}

// True when it was the last one of its fetch.
bool Fetcher::complete(const far::Completion& completion) {
  Transfer& transfer = transfers_[completion.tag >> 32];
  auto offset = static_cast<std::uint32_t>(completion.tag);
  --transfer.left;
  if (completion.error == 0) {
    transfer.arrived.set(offset);
    count(Counter::device_bytes_in, kPageSize);
  } else {
    give_up(transfer, transfer.run.first + offset, completion.error);
    transfer.done.set(offset);
  }
  if (transfer.left != 0) return false;
  map_arrived(transfer);
  return true;
}

// What was only read ahead is not given up before somebody wants it.
void Fetcher::give_up(const Transfer& transfer, PageIndex page, int error) {
  if (page == transfer.demanded && whom_ == For::faults && !transfer.unasked)
    core_.transitions.lose(page, error);
  else
    core_.transitions.call_off({page, 1});
}

// Maps what has come, in stretches of equal protection. Neighbours of the page that is waited for are held back
// until the last of them is there: one call for all of them costs a quarter a page of one call each.
void Fetcher::map_arrived(Transfer& transfer) {
  auto end_waiting = [](std::uint64_t& since_ns) {
    if (since_ns != 0) stat_page()->fault_latency.add(now_ns() - since_ns);
    since_ns = 0;
  };
  const auto wanted = static_cast<std::uint32_t>(transfer.demanded.value - transfer.run.first.value);
  bool all = transfer.left == 0;
  if (!all) {
    if (transfer.unasked || !transfer.arrived[wanted]) return;
    end_waiting(transfer.demanded_since_ns);
    stat_page()->fetch_latency.add(now_ns() - transfer.started_ns);
    map_part(transfer, wanted, 1, wants_protection(transfer.demanded, transfer.demanded, transfer.write),
             demanded_arrival());
    transfer.arrived.reset(wanted);
    transfer.done.set(wanted);
    return;
  }
  if (transfer.keeps_first && transfer.arrived[0] && !core_.pages[transfer.run.first].load().waiters())
    keep_first(transfer);
  if (transfer.arrived[wanted] && !transfer.unasked) stat_page()->fetch_latency.add(now_ns() - transfer.started_ns);
  end_waiting(transfer.demanded_since_ns);
  end_waiting(transfer.other_since_ns);
  for (std::uint32_t at = 0; at < transfer.run.count;) {
    if (!transfer.arrived[at]) {
      ++at;
      continue;
    }
    PageIndex first = transfer.run.first + at;
    bool protect = wants_protection(first, transfer.demanded, transfer.write);
    std::uint32_t length = 1;
    while (at + length < transfer.run.count && transfer.arrived[at + length] &&
           wants_protection(first + length, transfer.demanded, transfer.write) == protect)
      ++length;
    if (!protect || !lend(transfer, at, length))
      map_part(transfer, at, length, protect, arrival_of(transfer, at, length));
    at += length;
  }
  transfer.arrived.reset();
  if (!transfer.lending) return end(transfer);
  helper_->call();
}

hl_arrival Fetcher::arrival_of(const Transfer& transfer, std::uint32_t offset, std::uint32_t count_of_pages) const {
  std::uint64_t wanted = transfer.demanded.value - transfer.run.first.value;
  bool holds_it = offset <= wanted && wanted < offset + count_of_pages && !transfer.unasked;
  return holds_it ? demanded_arrival() : HL_ARRIVAL_READ_AHEAD;
}

void Fetcher::end(Transfer& transfer) {
  for (std::uint32_t i = 0; i < transfer.run.count; ++i) buffers_used_.reset(transfer.first_buffer + i);
  transfer.active = false;
  --transfers_in_flight_;
}

void Fetcher::map_part(const Transfer& transfer, std::uint32_t offset, std::uint32_t count, bool protect,
                       hl_arrival why) {
  map_run(transfer.run.first + offset, count, place_of(transfer, offset), protect, why, transfer.priority);
}

// I3: a page that may be written without a fault is dirty. Pages that are written every time they are here skip
// the fault, and are looked at again now and then, in case that has changed.
bool Fetcher::wants_protection(PageIndex page, PageIndex demanded, bool write) {
  if (!core_.kernel.features().write_protect) return false;
  if (page == demanded && write) return false;
  return !core_.pages[page].load().writable();
}

const std::byte* Fetcher::direct_page(PageIndex page) const {
  return static_cast<const std::byte*>(core_.devices.direct_page(core_.pages[page].load().far_page()));
}

void Fetcher::start_direct(PageRun run, PageIndex demanded, bool write, std::uint8_t priority) {
  // What a hint fetches nobody waits for in a fault. Of faults one in eight: two looks at the clock, and a count that
  // all handlers share, are a twentieth of what is timed here.
  bool timed = whom_ == For::faults && direct_fetches_++ % 8 == 0;
  std::uint64_t started = timed ? now_ns() : 0;
  map_direct(run, demanded, write, priority);
  count(Counter::device_bytes_in, bytes_of_pages(run.count));
  if (!timed) return;
  std::uint64_t woken_ns = core_.kernel.woken_ns();  // who is woken pushes a handler aside that makes way
  stat_page()->fetch_latency.add((woken_ns > started ? woken_ns : now_ns()) - started);
}

void Fetcher::map_direct(PageRun run, PageIndex demanded, bool write, std::uint8_t priority) {
  if (map_direct_by_two(run, demanded, write, priority)) return;
  for (std::uint32_t at = 0; at < run.count;) {
    PageIndex first = run.first + at;
    bool protect = wants_protection(first, demanded, write);
    const std::byte* source = direct_page(first);
    std::uint32_t length = 1;
    while (at + length < run.count && wants_protection(first + length, demanded, write) == protect &&
           direct_page(first + length) == source + bytes_of_pages(length))
      ++length;
    bool holds_demanded = first <= demanded && demanded < first + length;
    hl_arrival why = holds_demanded ? demanded_arrival() : HL_ARRIVAL_READ_AHEAD;
    map_run(first, length, source, protect, why, priority);
    at += length;
  }
}

// Only a fault by message waits for the call itself; everybody else for the page's busy bit.
std::int64_t Fetcher::copy(PageIndex page, const std::byte* bytes, std::size_t length, bool protect) {
  if (whom_ == For::faults && !core_.faults_by_signal)
    return core_.kernel.copy(core_.address_of(page), bytes, length, protect);
  return core_.kernel.copy_unwaited(core_.address_of(page), bytes, length, protect);
}

void Fetcher::map_run(PageIndex first, std::uint32_t count_of_pages, const void* bytes, bool protect, hl_arrival why,
                      std::uint8_t priority) {
  std::uint32_t at = 0, most = count_of_pages;
  while (at < count_of_pages) {
    std::uint32_t wanted = std::min(most, count_of_pages - at);
    std::int64_t done =
        copy(first + at, static_cast<const std::byte*>(bytes) + bytes_of_pages(at), bytes_of_pages(wanted), protect);
    if (done == -EAGAIN) continue;  // the address space is changing under us: the kernel asks to come again
    if (done == -ENOMEM) {
      timespec nap{0, 1'000'000};
      nanosleep(&nap, nullptr);
      continue;
    }
    if (done < 0 && done != -EEXIST && wanted > 1) {  // maybe it only reaches beyond one of the kernel's mappings
      most = wanted / 2;
      continue;
    }
    most = count_of_pages;
    std::uint32_t mapped = done > 0 ? static_cast<std::uint32_t>(done >> kPageShift) : 0;
    if (mapped == 0) {
      core_.transitions.arrive_changed(first + at, done == -EEXIST);
      core_.kernel.wake(core_.address_of(first + at), kPageSize);
      ++at;
      continue;
    }
    core_.transitions.arrive({first + at, mapped}, protect, why, priority, recheck_);
    at += mapped;
  }
  count(Counter::pages_in, count_of_pages);
}

}  // namespace hinterland
