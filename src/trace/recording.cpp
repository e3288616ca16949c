#include "trace/recording.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace hinterland::trace {
namespace {

constexpr std::uint64_t kFlushEveryNs = 250'000'000;  // what a killed recorder loses at most
constexpr std::size_t kFlushBytes = 256 * 1024;

template <std::size_t N>
std::string text_of(const char (&text)[N]) {
  return {text, strnlen(text, N)};
}

template <std::size_t N>
std::uint64_t stack_of(const std::uint64_t (&callers)[N], TraceWriter& writer) {
  Stack stack{{}, false};
  for (std::uint64_t address : callers)
    if (address != 0) stack.addresses.push_back(address);
  return stack.addresses.empty() ? kNoStack : writer.stack(stack);
}

// Of several faults in a row on one page (missing, then protected) the first says why the thread came here.
bool says_why(FaultKind kind) {
  return kind == FaultKind::first_touch || kind == FaultKind::read || kind == FaultKind::write ||
         kind == FaultKind::refault;
}

}  // namespace

std::unique_ptr<Recording> Recording::open(const std::string& name) {
  int file = ::open(name.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status{};
  void* memory = MAP_FAILED;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && static_cast<std::size_t>(status.st_size) >= kRingBytes)
    memory = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return nullptr;
  auto* ring = static_cast<RingFile*>(memory);
  // pairs with the release in the process
  if (ring->header.magic.load(std::memory_order_acquire) != RingHeader::kMagic) {
    munmap(memory, kRingBytes);
    return nullptr;
  }
  return std::unique_ptr<Recording>(new Recording(ring, name));
}

Recording::~Recording() {
  ring_->header.closed.store(1, std::memory_order_relaxed);
  munmap(ring_, kRingBytes);
  unlink(file_.c_str());
}

bool Recording::has_ended() { return std::exchange(ended_, kill(process_id(), 0) < 0 && errno == ESRCH) && ended_; }

std::uint64_t Recording::since_start(std::uint64_t time_ns) const {
  return time_ns > opened_ns() ? time_ns - opened_ns() : 0;
}

FaultRecord Recording::record_of(const FaultEvent& event) const {
  return {since_start(event.time_ns), event.address >> kPageShift, event.thread_id, event.kind,
          event.write != 0,           event.expects_write != 0};
}

void Recording::take(bool sampled, std::uint64_t instruction_every) {
  ring_->header.looked_ns.store(now_ns(), std::memory_order_relaxed);
  faults_.take([&](const FaultEvent& event) { take_fault(event, sampled, instruction_every); });
  hints_.take([&](const HintEvent& event) { take_hint(event); });
  allocations_.take([&](const AllocationEvent& event) { take_allocation(event); });
}

void Recording::take_fault(const FaultEvent& event, bool sampled, std::uint64_t instruction_every) {
  if (event.kind == kServed) return note_served(event);
  if (event.kind > FaultKind::lost) return;
  FaultRecord fault = record_of(event);
  writer_->fault(fault);
  ++summary_.faults;
  summary_.ended_ns = std::max(summary_.ended_ns, fault.time_ns);
  if (sampled) {
    recent_[event.thread_id].push_back({event});
  } else if (event.instruction != 0) {
    writer_->sample({fault, event.address, writer_->stack({{event.instruction}, false}), instruction_every, 0});
    ++summary_.samples;
  }
}

void Recording::take_hint(const HintEvent& event) {
  if (event.found_all != 0) {
    writer_->hint_found({since_start(event.time_ns), event.address >> kPageShift, event.thread_id,
                         stack_of(event.callers, *writer_)});
    return;
  }
  HintRecord hint{.time_ns = since_start(event.time_ns),
                  .page = event.address >> kPageShift,
                  .thread_id = event.thread_id,
                  .stack = kNoStack,
                  .pages = event.pages,
                  .read_ahead = event.read_ahead,
                  .far = event.far,
                  .far_ahead = event.far_ahead,
                  .parked = event.parked,
                  .write_protect = event.write_protect,
                  .write = event.write != 0,
                  .sequential = event.sequential != 0,
                  .priority = static_cast<std::uint8_t>(event.priority & 15)};
  hint.stack = stack_of(event.callers, *writer_);
  writer_->hint(hint);
  ++summary_.hints;
  summary_.ended_ns = std::max(summary_.ended_ns, hint.time_ns);
}

void Recording::take_allocation(const AllocationEvent& event) {
  if (event.kind > AllocationKind::range_ended) return;
  writer_->allocation({.kind = event.kind,
                       .time_ns = event.time_ns,
                       .address = event.address,
                       .bytes = event.bytes,
                       .stands_for = event.stands_for,
                       .made_ns = event.made_ns,
                       .stack = stack_of(event.callers, *writer_)});
  ++summary_.allocations;
}

void Recording::note_served(const FaultEvent& event) {
  auto found = recent_.find(event.thread_id);
  if (found == recent_.end() || found->second.empty()) return;
  Recent& last = found->second.back();
  if (last.event.address == event.address) last.served_ns = event.time_ns;
}

Recording::Joined Recording::fault_of(std::uint32_t thread, std::uint64_t page, std::uint64_t time_ns) {
  auto found = recent_.find(thread);
  if (found == recent_.end()) return {};
  return ring_->header.faults_by_signal != 0 ? fault_behind(found->second, page, time_ns)
                                             : fault_before(found->second, page, time_ns);
}

Recording::Joined Recording::fault_before(const std::deque<Recent>& faults, std::uint64_t page,
                                          std::uint64_t time_ns) const {
  auto after = std::partition_point(faults.begin(), faults.end(),
                                    [&](const Recent& fault) { return fault.event.time_ns <= time_ns; });
  Joined result;
  while (after != faults.begin()) {
    --after;
    if (after->event.address >> kPageShift != page) break;
    result = {&after->event, time_ns - after->event.time_ns};
    if (says_why(after->event.kind)) break;
  }
  return result;
}

Recording::Joined Recording::fault_behind(const std::deque<Recent>& faults, std::uint64_t page,
                                          std::uint64_t time_ns) const {
  auto found = std::partition_point(faults.begin(), faults.end(),
                                    [&](const Recent& fault) { return fault.event.time_ns < time_ns; });
  if (found == faults.end() || found->event.address >> kPageShift != page) return {};
  // Since the thread looked at its fault: what is before has the time in it that the kernel took for the stack.
  return {&found->event, found->served_ns != 0 ? found->served_ns - found->event.time_ns : 0};
}

void Recording::forget_faults_before(std::uint64_t time_ns) {
  for (auto& [thread, faults] : recent_)
    while (!faults.empty() && faults.front().event.time_ns < time_ns) faults.pop_front();
}

void Recording::sample(const FaultEvent& fault, std::uint64_t address, const Stack& stack, std::uint64_t weight,
                       std::uint64_t latency_ns) {
  writer_->sample({record_of(fault), address, writer_->stack(stack), weight, latency_ns});
  ++summary_.samples;
}

void Recording::describe(std::uint32_t parent_id, StackSource source) {
  const RingHeader& header = ring_->header;
  std::uint64_t age_s = (now_ns() - header.opened_ns) / 1'000'000'000;
  writer_->process({text_of(header.program), text_of(header.far_url), text_of(header.policy),
                    static_cast<std::uint64_t>(header.process_id), parent_id, header.opened_ns,
                    static_cast<std::uint64_t>(time(nullptr)) - age_s, header.local_bytes, header.read_ahead_pages,
                    header.window_base, header.window_bytes, source});
  described_ = true;
}

void Recording::write_modules(const KnownProcess& process) {
  if (process.exec_ns > opened_ns()) return;
  for (; modules_ < process.modules.size(); ++modules_) writer_->module(process.modules[modules_]);
}

void Recording::write_names(const KnownProcess& process) {
  for (auto& [thread, name] : process.names) {
    std::string& written = names_[thread];
    if (written == name) continue;
    writer_->thread_name(thread, name);
    written = name;
  }
}

bool Recording::is_due(std::uint64_t now) const {
  return writer_->buffered() >= kFlushBytes || now - flushed_ns_ >= kFlushEveryNs;
}

void Recording::write(const KnownProcess& process, StackSource source, const RecorderFigures& figures,
                      std::uint64_t now) {
  flushed_ns_ = now;
  if (!described_) describe(process.parent_id, source);
  write_modules(process);
  // What cannot be told apart by process is shared: stated in every trace.
  summary_.faults_lost = faults_.lost();
  summary_.samples_lost = figures.samples_lost;
  summary_.lost_samples_stand_for = figures.lost_samples_stand_for;
  summary_.recorder_away_ns = figures.away_ns;
  summary_.samples_unmatched = figures.samples_unmatched;
  summary_.sample_cost_ns = figures.sample_cost_ns;
  summary_.handler_cost_ns = figures.handler_cost_ns;
  summary_.faults_by_signal = ring_->header.faults_by_signal != 0 ? 1 : 0;
  summary_.recorder_cpu_ns = figures.cpu_ns;
  summary_.complete = figures.complete ? 1 : 0;
  summary_.hints_lost = hints_.lost();
  summary_.allocations_lost = allocations_.lost();
  summary_.hints_only_noted = figures.hints_only_noted ? 1 : 0;
  write_names(process);
  writer_->summary(summary_);
  writer_->flush();
}

}  // namespace hinterland::trace
