// The fault handler: reads messages and waits for what they asked for.
#include "paging/serve/fault_handler.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/inside.hpp"

namespace hinterland {
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

void FaultHandler::wait_until_it_runs() {
  while (runs_.load() == 0) futex_wait(&runs_, 0);
}

void FaultHandler::run() {
  InsideRuntime inside;
  note_runtime_thread();
  placement_.start();
  runs_.store(1);
  futex_wake(&runs_, 1);
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
  std::uint64_t read_ns = now_ns();
  fetcher_->hold_requests();
  for (const FaultMessage& message : messages) {
    core_.kernel.watch_for_wake(message.address);
    serve(message);
    if (!in_crowd_) note_latency(message, read_ns);
  }
  fetcher_->send_requests();
  spin_.start(now_ns());
}

// Until the thread was woken, not until this one has the CPU again: it makes way for that thread. What is fetched the
// fetcher counts when it arrives. When a page will be there that others have in their hands nobody here knows.
void FaultHandler::note_latency(const FaultMessage& message, std::uint64_t read_ns) {
  std::uint64_t woken_ns = core_.kernel.woken_ns();
  if (woken_ns == 0) {
    if (fetcher_->note_waiting(core_.window.index_of(message.address), read_ns) || left_waiting_) return;
    woken_ns = now_ns();  // by the helper that maps a part of a run
  }
  stat_page()->fault_latency.add(woken_ns - read_ns);
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

}  // namespace hinterland
