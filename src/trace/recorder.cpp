#include "trace/recorder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "trace/debug_files.hpp"

namespace hinterland::trace {
namespace {

constexpr int kCycleMs = 10;
constexpr std::uint64_t kShareForNs = 20'000'000;
constexpr std::uint64_t kFlushEveryNs = 250'000'000;  // what a killed recorder loses at most
constexpr std::size_t kFlushBytes = 256 * 1024;
constexpr std::size_t kUnwoundBetweenLooks = 128;       // about 1 ms
constexpr std::size_t kPendingMax = 20'000;             // samples, of up to 16 KiB each
constexpr std::uint64_t kJoinWithinNs = 2'000'000'000;  // a fault is served, or its sample stays without one
constexpr std::uint64_t kInstructionEvery = 16;         // where stacks cannot be had: 2 us for one in 16 faults

std::uint64_t thread_cpu_ns() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace

// What the kernel's records tell of a process.
struct Recorder::Process {
  std::uint32_t parent_id = 0;
  std::uint64_t exec_ns = 0;  // when it became the program that it runs
  std::vector<Module> modules;
  std::map<std::uint32_t, std::string> names;  // of threads
  std::unique_ptr<Unwinder> unwinder = std::make_unique<Unwinder>();
};

// One ring, and the trace that it becomes.
struct Recorder::Ring {
  RingHeader* header = nullptr;
  const RingRecord* records = nullptr;
  std::uint64_t taken = 0;
  std::unique_ptr<TraceWriter> writer;
  Summary summary;
  std::map<std::uint32_t, std::deque<RingRecord>> recent;  // by thread, to be joined with samples
  std::map<std::uint32_t, std::string> names;              // of threads, as written
  std::uint64_t flushed_ns = 0;
  std::size_t modules = 0;  // of the process, written so far
  bool described = false;
  int error = 0;

  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (header != nullptr) munmap(header, kRingBytes);
  }
  std::uint64_t since_start(std::uint64_t time_ns) const {
    return time_ns > header->opened_ns ? time_ns - header->opened_ns : 0;
  }
  const RingRecord* fault_before(std::uint32_t thread, std::uint64_t page, std::uint64_t time_ns);
};

// The thread's last fault before `time_ns`, if it was on that page. Of several in a row on one page (missing, then
// protected) the first says why the thread came here.
const RingRecord* Recorder::Ring::fault_before(std::uint32_t thread, std::uint64_t page, std::uint64_t time_ns) {
  auto found = recent.find(thread);
  if (found == recent.end()) return nullptr;
  std::deque<RingRecord>& faults = found->second;
  auto after = std::partition_point(faults.begin(), faults.end(),
                                    [&](const RingRecord& fault) { return fault.time_ns <= time_ns; });
  const RingRecord* result = nullptr;
  while (after != faults.begin()) {
    --after;
    if (after->address >> kPageShift != page) break;
    result = &*after;
    if (result->kind == FaultKind::first_touch || result->kind == FaultKind::read ||
        result->kind == FaultKind::write || result->kind == FaultKind::refault)
      break;
  }
  return result;
}

Result<std::unique_ptr<Recorder>> Recorder::create(const RecorderOptions& options) {
  auto recorder = std::unique_ptr<Recorder>(new Recorder(options));
  if (mkdir(options.directory.c_str(), 0700) < 0) {
    Error error = Error::make(errno, "the directory %s cannot be made", options.directory.c_str());
    recorder->options_.directory.clear();
    return std::unexpected(error.remedy("name a directory of your own in memory with --stat-dir"));
  }
  Result<TraceWriter> first = TraceWriter::create(options.output, options.overwrite);
  if (!first) return std::unexpected(first.error());
  recorder->first_ = std::make_unique<TraceWriter>(std::move(*first));
  // Tried on ourselves, so that it is known before the program starts.
  Result<std::unique_ptr<PerfSampler>> trial = PerfSampler::open(getpid(), options.sampling);
  if (!trial) {
    Error error = trial.error();
    recorder->sampling_error_ = error.remedy(
        "only the innermost address of one fault in %d is recorded. For stacks: sysctl kernel.perf_event_paranoid=1 "
        "(it is %d), or run as root or with CAP_PERFMON",
        static_cast<int>(kInstructionEvery), perf_event_paranoid());
  } else {
    recorder->user_only_ = (*trial)->user_only();
    recorder->sample_cost_ns_ = measure_sample_cost_ns(options.sampling);
  }
  return recorder;
}

Recorder::Recorder(const RecorderOptions& options) : options_(options) {}

Recorder::~Recorder() {
  if (thread_.joinable()) finish();
  if (options_.directory.empty()) return;
  if (DIR* directory = opendir(options_.directory.c_str())) {
    while (const dirent* entry = readdir(directory))
      if (entry->d_name[0] != '.') unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
  }
  rmdir(options_.directory.c_str());
  if (first_) {  // nothing was recorded, and an empty trace helps nobody
    unlink(first_->path().c_str());
  }
}

std::vector<std::pair<std::string, std::string>> Recorder::variables() const {
  bool sampled = sampling_error_.what()[0] == '\0';
  return {{kDirectoryVariable, options_.directory},
          {kInstructionVariable, std::to_string(sampled ? 0 : kInstructionEvery)}};
}

Status Recorder::start(pid_t process) {
  if (sampling_error_.what()[0] == '\0') {
    Result<std::unique_ptr<PerfSampler>> sampler = PerfSampler::open(process, options_.sampling);
    if (!sampler) return std::unexpected(sampler.error());
    sampler_ = std::move(*sampler);
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

void Recorder::run() {
  while (!stop_.load()) {
    if (sampler_)
      sampler_->wait(kCycleMs);
    else
      usleep(kCycleMs * 1000);
    cycle(false);
  }
  cycle(true);
}

// Samples first: the fault record of each was written before it, so it is there when the rings are read next.
void Recorder::cycle(bool last) {
  std::uint64_t now = now_ns();
  set_kept_share(now);
  if (sampler_) sampler_->drain(pending_);
  look_for_rings();
  for (auto& ring : rings_) take_faults(*ring);
  take_records(last ? ~std::uint64_t{0} : now);
  for (auto& ring : rings_) {
    for (auto& [thread, faults] : ring->recent)
      while (!faults.empty() && faults.front().time_ns + kJoinWithinNs < now) faults.pop_front();
    if (!last && ring->writer->buffered() < kFlushBytes && now - ring->flushed_ns < kFlushEveryNs) continue;
    ring->flushed_ns = now;
    write_summary(*ring, last);
  }
}

void Recorder::look_for_rings() {
  DIR* directory = opendir(options_.directory.c_str());
  if (directory == nullptr) return;
  std::vector<std::string> fresh;
  while (const dirent* entry = readdir(directory))
    if (entry->d_name[0] != '.' && !known_names_.contains(entry->d_name)) fresh.emplace_back(entry->d_name);
  closedir(directory);
  for (const std::string& name : fresh) open_ring(name);
}

void Recorder::open_ring(const std::string& name) {
  int file = open((options_.directory + "/" + name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return;
  struct stat status{};
  void* memory = MAP_FAILED;
  if (fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) >= kRingBytes)
    memory = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return;  // not ready yet: next time
  auto ring = std::make_unique<Ring>();
  ring->header = static_cast<RingHeader*>(memory);
  ring->records = reinterpret_cast<const RingRecord*>(static_cast<const char*>(memory) + kRingRecordsAt);
  // pairs with the release in the process
  if (ring->header->magic.load(std::memory_order_acquire) != RingHeader::kMagic) return;
  known_names_[name] = true;
  if (first_) {
    ring->writer = std::move(first_);
  } else {
    Result<TraceWriter> writer = TraceWriter::create(trace_path(*ring), options_.overwrite);
    if (!writer) return;
    ring->writer = std::make_unique<TraceWriter>(std::move(*writer));
  }
  if (!sampler_) read_mappings(*ring);  // at once: the process may end soon
  rings_.push_back(std::move(ring));
}

std::string Recorder::trace_path(const Ring& ring) {
  std::string base = options_.output + "." + std::to_string(ring.header->process_id), path = base;
  for (int number = 1; std::any_of(rings_.begin(), rings_.end(), [&](auto& r) { return r->writer->path() == path; });
       ++number)
    path = base + "." + std::to_string(number);
  return path;
}

void Recorder::take_faults(Ring& ring) {
  std::uint64_t written = ring.header->written.load(std::memory_order_acquire);  // pairs with the process's release
  if (written - ring.taken > RingHeader::kRecords) return;  // nonsense: somebody else wrote there
  for (; ring.taken != written; ++ring.taken) take_fault(ring, ring.records[ring.taken % RingHeader::kRecords]);
  ring.header->taken.store(ring.taken, std::memory_order_release);  // pairs with the process's look for room
}

void Recorder::take_fault(Ring& ring, const RingRecord& record) {
  FaultRecord fault{ring.since_start(record.time_ns), record.address >> kPageShift, record.thread_id, record.kind,
                    record.write != 0};
  if (record.kind > FaultKind::lost) return;
  ring.writer->fault(fault);
  ++ring.summary.faults;
  ring.summary.ended_ns = fault.time_ns;
  if (sampler_) {
    ring.recent[record.thread_id].push_back(record);
  } else if (record.instruction != 0) {
    Stack stack{{record.instruction}, false};
    ring.writer->sample({fault, record.address, ring.writer->stack(stack), kInstructionEvery, 0});
    ++ring.summary.samples;
  }
}

void Recorder::take_records(std::uint64_t until_ns) {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const PerfRecord& a, const PerfRecord& b) { return a.time_ns < b.time_ns; });
  auto end = static_cast<std::size_t>(
      std::partition_point(pending_.begin(), pending_.end(),
                           [&](const PerfRecord& record) { return record.time_ns < until_ns; }) -
      pending_.begin());
  for (std::size_t at = 0; at < end; ++at) {
    take_record(pending_[at]);
    pending_[at].stack = {};
    // Unwinding takes its time: meanwhile the kernel's buffers and the rings must not fill. What comes goes behind.
    if (at % kUnwoundBetweenLooks != 0 || pending_.size() - at > kPendingMax) continue;
    if (sampler_) sampler_->drain(pending_);
    for (auto& ring : rings_) take_faults(*ring);
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(end));
}

void Recorder::take_record(PerfRecord& record) {
  switch (record.kind) {
    case PerfRecord::Kind::sample:
      return take_sample(record);
    case PerfRecord::Kind::mapping:
      return take_mapping(record);
    case PerfRecord::Kind::name:
      return take_name(record);
    case PerfRecord::Kind::fork: {
      if (record.process_id == record.parent_id) return;  // a thread
      Process& parent = process_of(record.parent_id);
      Process& child = process_of(record.process_id);
      child.parent_id = record.parent_id;
      child.modules = parent.modules;
      child.names = {};
      for (const Module& module : child.modules) child.unwinder->add(module);
      return;
    }
    case PerfRecord::Kind::exit:
      return;
    case PerfRecord::Kind::lost:
      samples_lost_ += record.lost;
      return;
  }
}

Recorder::Process& Recorder::process_of(std::uint32_t id) {
  std::unique_ptr<Process>& process = processes_[id];
  if (!process) process = std::make_unique<Process>();
  return *process;
}

void Recorder::take_sample(PerfRecord& sample) {
  auto id = static_cast<std::int32_t>(sample.process_id);
  for (auto ring = rings_.rbegin(); ring != rings_.rend(); ++ring) {
    if ((*ring)->header->process_id != id || !(*ring)->writer) continue;
    const RingRecord* fault = (*ring)->fault_before(sample.thread_id, sample.address >> kPageShift, sample.time_ns);
    if (fault == nullptr || !sample.has_registers) continue;
    ++matched_;
    std::uint64_t weight = thinning_.faults_of_next(sample.weight);
    if (weight == 0) {
      ++(*ring)->summary.samples_dropped;
      return;
    }
    Stack stack =
        process_of(sample.process_id)
            .unwinder->unwind(std::span<const std::uint64_t, kSampledRegisters>(sample.registers), sample.stack);
    FaultRecord joined{(*ring)->since_start(fault->time_ns), fault->address >> kPageShift, fault->thread_id,
                       fault->kind, fault->write != 0};
    (*ring)->writer->sample(
        {joined, sample.address, (*ring)->writer->stack(stack), weight, sample.time_ns - fault->time_ns});
    ++(*ring)->summary.samples;
    return;
  }
  ++samples_unmatched_;
}

// From how many came since it was set last. Not with each batch, which can be of a few samples: what they stand for
// would vary by chance.
void Recorder::set_kept_share(std::uint64_t now) {
  if (options_.rate == 0 || now - looked_ns_ < kShareForNs) return;
  double wanted = static_cast<double>(options_.rate) * static_cast<double>(now - looked_ns_) / 1e9;
  thinning_.set_share(std::clamp(wanted / std::max(static_cast<double>(matched_), 1.0), 1e-3, 1.0));
  matched_ = 0;
  looked_ns_ = now;
}

void Recorder::take_mapping(const PerfRecord& record) {
  if (record.text.empty() || record.text[0] != '/' || record.text.starts_with("//")) return;  // no file
  Module module{record.start, record.start + record.length, record.file_offset, record.build_id, record.text};
  if (module.build_id.empty()) module.build_id = build_id_of(module.path);
  Process& process = process_of(record.process_id);
  process.modules.push_back(module);
  process.unwinder->add(module);
}

void Recorder::take_name(const PerfRecord& record) {
  Process& process = process_of(record.process_id);
  if (record.by_exec) {  // another program from here on
    for (auto& ring : rings_) {
      if (ring->header->process_id != static_cast<std::int32_t>(record.process_id)) continue;
      // The new program's may be known before its exec is: what was written for it is its parent's.
      if (ring->header->opened_ns > record.time_ns)
        ring->modules = 0;
      else
        write_modules(*ring);
    }
    process.modules.clear();
    process.unwinder = std::make_unique<Unwinder>();
    process.names.clear();
    process.exec_ns = record.time_ns;
  }
  process.names[record.thread_id] = record.text;
}

void Recorder::describe(Ring& ring) {
  const RingHeader& header = *ring.header;
  std::uint64_t age_s = (now_ns() - header.opened_ns) / 1'000'000'000;
  StackSource source = sampler_ ? StackSource::kernel_unwound : StackSource::instruction_only;
  auto text = [](const auto& chars) { return std::string(chars, strnlen(chars, sizeof chars)); };
  ring.writer->process({text(header.program), text(header.far_url), text(header.policy),
                        static_cast<std::uint64_t>(header.process_id),
                        process_of(static_cast<std::uint32_t>(header.process_id)).parent_id, header.opened_ns,
                        static_cast<std::uint64_t>(time(nullptr)) - age_s, header.local_bytes,
                        header.read_ahead_pages, header.window_base, header.window_bytes, source});
  ring.described = true;
}

// What the process has mapped since; not what a program has that it became later.
void Recorder::write_modules(Ring& ring) {
  const Process& process = process_of(static_cast<std::uint32_t>(ring.header->process_id));
  if (process.exec_ns > ring.header->opened_ns) return;
  for (; ring.modules < process.modules.size(); ++ring.modules) ring.writer->module(process.modules[ring.modules]);
}

// Where the kernel does not tell of mappings.
void Recorder::read_mappings(Ring& ring) {
  auto id = static_cast<std::uint32_t>(ring.header->process_id);
  std::vector<Module>& known = process_of(id).modules;
  for (Module& module : mapped_code(static_cast<pid_t>(id)))
    if (std::none_of(known.begin(), known.end(),
                     [&](const Module& old) { return old.start == module.start && old.path == module.path; }))
      known.push_back(std::move(module));
}

void Recorder::write_summary(Ring& ring, bool last) {
  if (!ring.described) describe(ring);
  if (!sampler_) read_mappings(ring);
  write_modules(ring);
  Summary& summary = ring.summary;
  // What cannot be told apart by process is shared: stated in every trace.
  summary.faults_lost = ring.header->lost.load(std::memory_order_relaxed);
  summary.samples_lost = samples_lost_;
  summary.samples_unmatched = samples_unmatched_;
  summary.sample_cost_ns = sample_cost_ns_;
  summary.recorder_cpu_ns = thread_cpu_ns();
  summary.complete = last ? 1 : 0;
  for (auto& [thread, name] : process_of(static_cast<std::uint32_t>(ring.header->process_id)).names) {
    std::string& written = ring.names[thread];
    if (written == name) continue;
    ring.writer->thread_name(thread, name);
    written = name;
  }
  ring.writer->summary(summary);
  ring.error = ring.writer->flush();
}

std::vector<RecordedTrace> Recorder::finish() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
  std::vector<RecordedTrace> traces;
  for (auto& ring : rings_) traces.push_back({ring->writer->path(), ring->summary, ring->error});
  rings_.clear();
  return traces;
}

}  // namespace hinterland::trace
