#include "trace/recorder.hpp"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "trace/debug_files.hpp"
#include "trace/handler_cost.hpp"

namespace hinterland::trace {
namespace {

constexpr int kCycleMs = 10;
constexpr int kNice = -10;
constexpr std::uint64_t kShareForNs = 20'000'000;
// Each change of how many are sampled leaves out the first faults of each thread after it, some dozen.
constexpr std::uint64_t kSparseForNs = 200'000'000;
constexpr std::size_t kUnwoundBetweenLooks = 128;       // about 1 ms
constexpr std::size_t kPendingMax = 20'000;             // samples, of up to 16 KiB each
constexpr std::uint64_t kJoinWithinNs = 2'000'000'000;  // a fault is served, or its sample stays without one
constexpr std::uint64_t kSignalWithinNs = 50'000'000;   // a thread that has to wait for a CPU
constexpr std::uint64_t kLookForDeadNs = 200'000'000;
constexpr std::uint64_t kInstructionEvery = 16;  // where stacks cannot be had: 2 us for one in 16 faults

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(const RecorderOptions& options) {
  auto recorder = std::unique_ptr<Recorder>(new Recorder(options));
  if (mkdir(options.directory.c_str(), 0700) < 0) {
    Error error = Error::make(errno, "the directory %s cannot be made", options.directory.c_str());
    recorder->options_.directory.clear();
    return std::unexpected(error.remedy("name a directory of your own in memory with --stat-dir"));
  }
  Result<TraceWriter> first = TraceWriter::create(options.output, options.overwrite, &recorder->output_);
  if (!first) return std::unexpected(first.error());
  recorder->first_ = std::make_unique<TraceWriter>(std::move(*first));
  // Tried on ourselves, so that it is known before the program starts. Large buffers take the kernel milliseconds
  // each.
  PerfSampler::Options on_trial = options.sampling;
  on_trial.buffer_bytes = PerfSampler::kBufferLeast;
  Result<std::unique_ptr<PerfSampler>> trial = PerfSampler::open(getpid(), on_trial);
  if (!trial) {
    recorder->note_failed_sampling(trial.error());
  } else {
    recorder->user_only_ = (*trial)->user_only();
    recorder->sample_cost_ns_ = measure_sample_cost_ns(options.sampling);
  }
  recorder->measure_handler_cost();
  return recorder;
}

void Recorder::measure_handler_cost() {
  handler_cost_ns_ = measure_handler_cost_ns(
      real_kernel(), options_.sampling.by_signal ? FaultDelivery::signals : FaultDelivery::messages);
}

Recorder::Recorder(const RecorderOptions& options) : options_(options), stop_file_(eventfd(0, EFD_CLOEXEC)) {}

void Recorder::note_failed_sampling(const Error& error) {
  sampling_error_ = error;
  sampling_error_.remedy(
      "only the innermost address of one fault in %d is recorded. For stacks: sysctl kernel.perf_event_paranoid=1 "
      "(it is %d), or run as root or with CAP_PERFMON",
      static_cast<int>(kInstructionEvery), perf_event_paranoid());
}

std::uint64_t Recorder::instruction_every() const {
  return sampling_error_.what()[0] == '\0' ? 0 : kInstructionEvery;
}

Recorder::~Recorder() {
  if (thread_.joinable()) finish();
  if (stop_file_ >= 0) close(stop_file_);
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
  std::vector<std::pair<std::string, std::string>> all = {
      {kDirectoryVariable, options_.directory}, {kInstructionVariable, std::to_string(instruction_every())}};
  if (options_.only_note_hints) all.emplace_back(kNoteHintsVariable, "1");
  return all;
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

void Recorder::attach(pid_t process, bool faults_by_signal) {
  std::vector<Module> modules = mapped_code(process);
  if (faults_by_signal != options_.sampling.by_signal) {  // only now is it known
    options_.sampling.by_signal = faults_by_signal;
    measure_handler_cost();
  }
  if (instruction_every() == 0) {
    options_.sampling.running = true;
    Result<std::unique_ptr<PerfSampler>> sampler = PerfSampler::open(process, options_.sampling);
    if (sampler)
      sampler_ = std::move(*sampler);
    else
      note_failed_sampling(sampler.error());
  }
  KnownProcess& known = process_of(static_cast<std::uint32_t>(process));
  known.modules = std::move(modules);
  for (const Module& module : known.modules) known.unwinder->add(module);
  for (const auto& [thread, name] : thread_names(process)) known.names[thread] = name;
  thread_ = std::thread([this] { run(); });
}

// On a busy machine it must have a CPU before the kernel's buffers are full of stacks: some 40 ms of a program that
// does nothing but fault. It needs little of it.
void Recorder::run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // without the permission it stays as it is
  while (!stop_.load()) {
    if (sampler_) {
      sampler_->wait(kCycleMs, stop_file_);
    } else {
      pollfd stopped{stop_file_, POLLIN, 0};
      poll(&stopped, 1, kCycleMs);
    }
    cycle(false);
  }
  cycle(true);
}

// Samples first: the fault record of each was written before it, so it is there when the rings are read next. In
// signal mode it comes behind, as soon as the thread has got its signal.
void Recorder::cycle(bool last) {
  std::uint64_t now = now_ns();
  set_kept_share(now);
  drain_sampler();
  look_for_rings();
  take_rings();
  take_records(last ? ~std::uint64_t{0} : now - (options_.sampling.by_signal ? kSignalWithinNs : 0));
  for (auto& recording : recordings_) {
    recording->forget_faults_before(now - kJoinWithinNs);
    if (last || recording->is_due(now)) write(*recording, last, now);
  }
  if (!last && now - looked_for_dead_ns_ > kLookForDeadNs) let_go_of_the_dead(now);
}

// Their rings are megabytes of memory each, and a program may have any number of children.
void Recorder::let_go_of_the_dead(std::uint64_t now) {
  looked_for_dead_ns_ = now;
  std::erase_if(recordings_, [&](const std::unique_ptr<Recording>& recording) {
    if (!recording->has_ended()) return false;
    write(*recording, true, now);
    finished_.push_back({recording->path(), recording->summary(), recording->file()});
    known_files_.erase(recording->ring_file());  // a process of the same number may come
    return true;
  });
}

// Stacks are lost where this comes too late.
void Recorder::drain_sampler() {
  if (!sampler_) return;
  std::uint64_t now = now_ns();
  if (drained_ns_ != 0) away_ns_ = std::max(away_ns_, now - drained_ns_);
  drained_ns_ = now;
  sampler_->drain(pending_);
}

void Recorder::take_rings() {
  for (auto& recording : recordings_) recording->take(sampler_ != nullptr, kInstructionEvery);
}

void Recorder::look_for_rings() {
  DIR* directory = opendir(options_.directory.c_str());
  if (directory == nullptr) return;
  std::vector<std::string> fresh;
  while (const dirent* entry = readdir(directory))
    if (entry->d_name[0] != '.') fresh.push_back(options_.directory + "/" + entry->d_name);
  closedir(directory);
  for (const std::string& file : fresh)
    if (!known_files_.contains(file)) open_ring(file);
}

void Recorder::open_ring(const std::string& file) {
  std::unique_ptr<Recording> recording = Recording::open(file);
  if (!recording) return;  // not ready yet: next time
  known_files_.insert(file);
  if (first_) {
    recording->write_to(std::move(first_));
  } else {
    Result<TraceWriter> writer = TraceWriter::create(trace_path(*recording), options_.overwrite, &output_);
    if (!writer) return;
    recording->write_to(std::make_unique<TraceWriter>(std::move(*writer)));
  }
  if (!sampler_) read_mappings(recording->process_id());  // at once: the process may end soon
  recordings_.push_back(std::move(recording));
}

std::string Recorder::trace_path(const Recording& recording) {
  std::string base = options_.output + "." + std::to_string(recording.process_id()), path = base;
  auto taken = [&](const auto& other) { return other->path() == path; };
  auto finished = [&](const Finished& other) { return other.path == path; };
  for (int number = 1; std::any_of(recordings_.begin(), recordings_.end(), taken) ||
                       std::any_of(finished_.begin(), finished_.end(), finished);
       ++number)
    path = base + "." + std::to_string(number);
  return path;
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
    drain_sampler();
    take_rings();
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
      KnownProcess& parent = process_of(record.parent_id);
      KnownProcess& child = process_of(record.process_id);
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
      lost_stand_for_ += static_cast<double>(record.lost) * record.weight;
      return;
  }
}

KnownProcess& Recorder::process_of(std::uint32_t id) {
  std::unique_ptr<KnownProcess>& process = processes_[id];
  if (!process) process = std::make_unique<KnownProcess>();
  return *process;
}

void Recorder::take_sample(PerfRecord& sample) {
  auto id = static_cast<std::int32_t>(sample.process_id);
  for (auto at = recordings_.rbegin(); at != recordings_.rend(); ++at) {
    Recording& recording = **at;
    if (recording.process_id() != id) continue;
    auto [fault, latency_ns] = recording.fault_of(sample.thread_id, sample.address >> kPageShift, sample.time_ns);
    if (fault == nullptr || !sample.has_registers) continue;
    ++matched_;
    std::uint64_t weight = thinning_.faults_of_next(sample.weight);
    if (weight == 0) return recording.drop_sample();
    std::span<const std::uint64_t, kSampledRegisters> registers(sample.registers);
    Stack stack = process_of(sample.process_id).unwinder->unwind(registers, sample.stack);
    return recording.sample(*fault, sample.address, stack, weight, latency_ns);
  }
  ++samples_unmatched_;
}

// From how many came since it was set last. Not with each batch, which can be of a few samples: what they stand for
// would vary by chance.
void Recorder::set_kept_share(std::uint64_t now) {
  if (options_.rate == 0 || now - looked_ns_ < kShareForNs) return;
  double wanted = static_cast<double>(options_.rate) * static_cast<double>(now - looked_ns_) / 1e9;
  thinning_.set_share(std::clamp(wanted / std::max(static_cast<double>(matched_), 1.0), 1e-3, 1.0));
  choose_density(static_cast<double>(matched_) / wanted, now);
  matched_ = 0;
  looked_ns_ = now;
}

// A stack costs the program one to two microseconds, also one that is not kept. As long as few faults are sampled the
// rate is still kept, or nearly.
void Recorder::choose_density(double of_wanted, std::uint64_t now) {
  if (!sampler_ || now - switched_ns_ < kSparseForNs) return;
  bool sparse = sampler_->is_sparse(), wanted = sparse ? of_wanted > 0.75 : of_wanted > PerfSampler::kSparseFewer;
  if (wanted == sparse) return;
  sampler_->sample_sparsely(wanted);
  switched_ns_ = now;
}

void Recorder::take_mapping(const PerfRecord& record) {
  if (record.text.empty() || record.text[0] != '/' || record.text.starts_with("//")) return;  // no file
  Module module{record.start, record.start + record.length, record.file_offset, record.build_id, record.text};
  if (module.build_id.empty()) module.build_id = build_id_of(module.path);
  KnownProcess& process = process_of(record.process_id);
  process.modules.push_back(module);
  process.unwinder->add(module);
}

void Recorder::take_name(const PerfRecord& record) {
  KnownProcess& process = process_of(record.process_id);
  if (record.by_exec) {  // another program from here on
    for (auto& recording : recordings_) {
      if (recording->process_id() != static_cast<std::int32_t>(record.process_id)) continue;
      // The new program's may be known before its exec is: what was written for it is its parent's.
      if (recording->opened_ns() > record.time_ns)
        recording->write_modules_anew();
      else
        recording->write_modules(process);
    }
    process.modules.clear();
    process.unwinder = std::make_unique<Unwinder>();
    process.names.clear();
    process.exec_ns = record.time_ns;
  }
  process.names[record.thread_id] = record.text;
}

// Where the kernel does not tell of mappings.
void Recorder::read_mappings(std::int32_t process) {
  std::vector<Module>& known = process_of(static_cast<std::uint32_t>(process)).modules;
  for (Module& module : mapped_code(process))
    if (std::none_of(known.begin(), known.end(),
                     [&](const Module& old) { return old.start == module.start && old.path == module.path; }))
      known.push_back(std::move(module));
}

void Recorder::write(Recording& recording, bool last, std::uint64_t now) {
  if (!sampler_) read_mappings(recording.process_id());
  StackSource source = sampler_ ? StackSource::kernel_unwound : StackSource::instruction_only;
  recording.write(process_of(static_cast<std::uint32_t>(recording.process_id())), source,
                  {.samples_lost = samples_lost_,
                   .lost_samples_stand_for = static_cast<std::uint64_t>(lost_stand_for_),
                   .samples_unmatched = samples_unmatched_,
                   .away_ns = away_ns_,
                   .sample_cost_ns = sample_cost_ns_,
                   .handler_cost_ns = handler_cost_ns_,
                   .cpu_ns = thread_cpu_ns(),
                   .hints_only_noted = options_.only_note_hints,
                   .complete = last},
                  now);
}

std::vector<RecordedTrace> Recorder::finish() {
  stop_.store(true);
  eventfd_write(stop_file_, 1);  // without such a file it notices at its next look
  if (thread_.joinable()) thread_.join();
  for (auto& recording : recordings_)
    finished_.push_back({recording->path(), recording->summary(), recording->file()});
  recordings_.clear();
  output_.drain();
  std::vector<RecordedTrace> traces;
  for (const Finished& each : finished_) traces.push_back({each.path, each.summary, each.file->error()});
  std::stable_partition(traces.begin(), traces.end(),
                        [&](const RecordedTrace& trace) { return trace.path == options_.output; });
  return traces;
}

}  // namespace hinterland::trace
