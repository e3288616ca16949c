// The evictor's way to the devices: space for what was taken, one submission, what the devices say to it, and what
// becomes of the pages then.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "paging/out/evictor.hpp"

namespace hinterland {
namespace {

// A full device is tried again this much later: the program frees memory, a server may have got room.
constexpr std::uint64_t kFullPauseNs = 50'000'000;

bool all_zero(const void* page) {
  const auto* words = static_cast<const std::uint64_t*>(page);
  for (std::size_t i = 0; i < kPageSize / sizeof *words; i += 8) {
    std::uint64_t any = 0;
    for (std::size_t j = 0; j < 8; ++j) any |= words[i + j];
    if (any != 0) return false;
  }
  return true;
}

}  // namespace

void Evictor::settle() {
  Victims taken(taken_.data(), taken_count_);
  taken_count_ = 0;
  has_taken_.store(false, std::memory_order_relaxed);  // the mutex is held
  if (taken.empty()) return;
  std::size_t zeros = 0;
  for (Victim& victim : taken) {
    if (!victim.word.dirty()) {
      victim.far = victim.word.far_page();
      continue;
    }
    victim.write = !all_zero(core_.frames.memory_of(victim.frame));
    if (victim.write) {
      core_.transitions.begin_write_back(victim.page, victim.word, victim.frame);
      continue;
    }
    ++zeros;
    core_.transitions.drop_zero(victim.page, victim.frame);
  }
  count(Counter::pages_evicted_zero, zeros);
  count(Counter::pages_evicted, taken.size());
  write_back(taken);
  let_go(taken);
}

void Evictor::let_go(Victims taken) {
  std::array<std::uint32_t, kBatchMax> frames;
  std::size_t left = 0;
  for (Victim& victim : taken) {
    if (victim.word.dirty() && !victim.write) {  // zero: done
      if (victim.worth_a_frame != PolicyHost::WorthAFrame::as_usual) frames[left++] = victim.frame;
      continue;
    }
    if (victim.error != 0) {
      restore(victim);
      continue;
    }
    note_written(victim);
    if (!leaves_at_once(victim)) {
      core_.transitions.park(victim.page, victim.word, victim.frame, victim.far, victim.write);
      continue;
    }
    core_.transitions.leave(victim.page, victim.word, victim.frame, victim.far, victim.write);
    frames[left++] = victim.frame;
  }
  if (left == 0) return;
  freed_aside_ += free_now(core_.frames.give_back_dropped(core_.kernel, std::span(frames.data(), left)));
}

// On a device that is lost by now there is no copy (I4): its frame is the only one.
bool Evictor::leaves_at_once(const Victim& victim) const {
  return victim.worth_a_frame == PolicyHost::WorthAFrame::no && core_.devices.lost(victim.far.device()) == 0;
}

void Evictor::note_written(const Victim& victim) {
  if (victim.write) {
    count(Counter::pages_out);
    count(Counter::device_bytes_out, kPageSize);
  } else {
    count(Counter::pages_evicted_clean);
  }
}

void Evictor::restore(const Victim& victim) {
  report_device_error(device_of(victim), victim.error);
  if (victim.allocated) core_.devices.release({&victim.far, 1});
  freed_aside_ -= core_.transitions.restore(victim.page, victim.word, victim.frame);
}

void Evictor::write_back(Victims taken) {
  std::uint32_t devices = 0;  // a bit each
  for (const Victim& victim : taken)
    if (victim.write) devices |= 1u << device_of(victim);
  if (devices == 0) return;
  std::array<far::Request, kBatchMax> requests;
  std::size_t used = 0;
  for (std::uint32_t left = devices; left != 0; left &= left - 1)
    used += take_space(taken, static_cast<std::uint32_t>(std::countr_zero(left)), std::span(requests).subspan(used));
  send(taken, std::span(requests).first(used));
  note_whether_full(taken, devices);
}

// Far pages for the victims that go to this device, and requests that write them there. How many; the others' error
// is set.
std::size_t Evictor::take_space(Victims taken, std::uint32_t device, std::span<far::Request> requests) {
  std::array<far::FarPage, kBatchMax> space;
  auto goes_there = [&](const Victim& victim) { return victim.write && device_of(victim) == device; };
  auto writes = static_cast<std::size_t>(std::count_if(taken.begin(), taken.end(), goes_there));
  int error = ENOSPC;
  std::size_t got = 0;
  while (got < writes) {
    std::size_t more = core_.devices.allocate(device, std::span(space.data() + got, writes - got), &error);
    if (more == 0) break;
    got += more;
  }
  full_until_ns_[device] = got < writes && error == ENOSPC ? now_ns() + kFullPauseNs : 0;
  std::size_t used = 0;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!goes_there(taken[i])) continue;
    if (used == got) {
      taken[i].error = error;
      continue;
    }
    taken[i].far = space[used];
    taken[i].allocated = true;
    // A device only reads what it is to write.
    requests[used++] = {far::Operation::write, taken[i].far,
                        const_cast<void*>(core_.frames.memory_of(taken[i].frame)), i};
  }
  return used;
}

void Evictor::send(Victims taken, std::span<const far::Request> requests) {
  std::size_t sent = 0;
  while (sent < requests.size()) {
    int accepted = channels_->submit(requests.subspan(sent));
    if (accepted < 0) break;
    sent += static_cast<std::size_t>(accepted);
    if (sent < requests.size()) gather(taken, channels_->in_flight() > 0 ? channels_->in_flight() - 1 : 0);
  }
  for (const far::Request& request : requests.subspan(sent)) taken[request.tag].error = EIO;
  gather(taken, 0);
}

// A device that takes nothing at all (a disk that was filled up by others) is as good as a full one.
void Evictor::note_whether_full(Victims taken, std::uint32_t devices) {
  std::uint32_t takes = 0;
  for (const Victim& victim : taken)
    if (victim.write && victim.error == 0) takes |= 1u << device_of(victim);
  for (std::uint32_t left = devices & ~takes; left != 0; left &= left - 1)
    full_until_ns_[static_cast<std::size_t>(std::countr_zero(left))] = now_ns() + kFullPauseNs;
}

// Takes completions until at most `outstanding` requests are left.
void Evictor::gather(Victims taken, std::size_t outstanding) {
  std::array<far::Completion, 64> done;
  for (;;) {
    int n = channels_->poll(done);
    for (int i = 0; i < n; ++i)
      taken[done[static_cast<std::size_t>(i)].tag].error = done[static_cast<std::size_t>(i)].error;
    if (channels_->in_flight() <= outstanding && n < static_cast<int>(done.size())) return;
    if (n == 0) channels_->wait(1'000'000'000);
  }
}

void Evictor::report_device_error(std::uint32_t device, int error) {
  count(Counter::device_errors);
  if (core_.devices.lost(device) != 0) return core_.report_loss(device);
  if ((core_.refusals_reported.fetch_or(1u << device) >> device & 1) != 0) return;
  log::error(
      "%s",
      Error::make(error, "the far device %s does not take more pages; they stay in local memory, beyond the budget",
                  core_.devices.info(device).url.c_str())
          .what());
}

}  // namespace hinterland
