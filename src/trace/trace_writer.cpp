// The writing half of trace_file.hpp.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "trace/trace_file.hpp"
#include "trace/trace_format.hpp"

namespace hinterland::trace {
namespace {

std::uint64_t packed_kind(const FaultRecord& record) {
  return (record.expects_write ? kExpectsWriteBit : 0) | static_cast<std::uint64_t>(record.kind) << 1 |
         (record.write ? 1 : 0);
}

}  // namespace

Result<TraceWriter> TraceWriter::create(const std::string& path, bool overwrite, OutputThread* thread) {
  TraceWriter writer;
  writer.path_ = path;
  writer.thread_ = thread;
  if (overwrite) unlink(path.c_str());
  // For its owner only: addresses and names of a program are nobody else's business.
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0600);
  if (file < 0) {
    Error error = Error::make(errno, "the trace %s cannot be made", path.c_str());
    if (errno == EEXIST) error.remedy("name another file with -o, or use --force");
    return std::unexpected(error);
  }
  FileHead head{{}, kTraceVersion, sizeof(FileHead)};
  std::memcpy(head.magic, kFileMagic, sizeof head.magic);
  writer.file_ = std::make_shared<OutputFile>(file);
  writer.file_->write({reinterpret_cast<const char*>(&head), sizeof head});
  if (int problem = writer.file_->error(); problem != 0)
    return std::unexpected(Error::make(problem, "the trace %s cannot be written", path.c_str()));
  return writer;
}

TraceWriter::~TraceWriter() {
  if (file_) flush();
}

void TraceWriter::block(std::uint32_t kind, ByteWriter& bytes) {
  std::string_view payload = bytes.view();
  BlockHead head{kind, static_cast<std::uint32_t>(payload.size()), checksum_of(kind, payload.data(), payload.size())};
  std::string whole(reinterpret_cast<const char*>(&head), sizeof head);
  whole += payload;
  bytes.clear();
  if (thread_ != nullptr)
    thread_->put(file_, std::move(whole));
  else
    file_->write(whole);
}

void TraceWriter::process(const ProcessFacts& facts) {
  ByteWriter out;
  out.text(facts.program);
  out.text(facts.far_url);
  out.text(facts.policy);
  for (std::uint64_t value :
       {facts.process_id, facts.parent_id, facts.started_ns, facts.wall_time_s, facts.local_bytes,
        facts.read_ahead_pages, facts.window_base, facts.window_bytes, static_cast<std::uint64_t>(facts.source)})
    out.number(value);
  block(kProcessBlock, out);
}

void TraceWriter::module(const Module& module) {
  ByteWriter out;
  out.number(module.start);
  out.number(module.end);
  out.number(module.file_offset);
  out.text(module.build_id);
  out.text(module.path);
  block(kModuleBlock, out);
}

void TraceWriter::thread_name(std::uint64_t thread_id, const std::string& name) {
  ByteWriter out;
  out.number(thread_id);
  out.text(name);
  block(kThreadBlock, out);
}

// Each block starts from zero differences, so that one that is damaged takes no other with it.
void TraceWriter::fault(const FaultRecord& record) {
  if (faults_.empty()) last_fault_ = {};
  faults_.number(packed_kind(record));
  faults_.difference(last_fault_.time_ns, record.time_ns);
  faults_.difference(last_fault_.page, record.page);
  faults_.difference(last_fault_.thread_id, record.thread_id);
  last_fault_ = record;
}

std::uint64_t TraceWriter::stack(const Stack& stack) {
  std::vector<std::uint64_t> key = stack.addresses;
  key.push_back(stack.whole ? 1 : 0);
  auto [at, fresh] = known_stacks_.try_emplace(std::move(key), known_stacks_.size());
  if (!fresh) return at->second;
  stacks_.number((stack.addresses.size() << 1) | (stack.whole ? 1 : 0));
  std::uint64_t last = 0;
  for (std::uint64_t address : stack.addresses) {
    stacks_.difference(last, address);
    last = address;
  }
  return at->second;
}

void TraceWriter::sample(const StackSample& sample) {
  if (samples_.empty()) last_sample_ = {};
  samples_.number(packed_kind(sample.fault));
  samples_.difference(last_sample_.fault.time_ns, sample.fault.time_ns);
  samples_.difference(last_sample_.address, sample.address);
  samples_.difference(last_sample_.fault.thread_id, sample.fault.thread_id);
  samples_.difference(last_sample_.stack, sample.stack);
  samples_.number(sample.weight);
  samples_.number(sample.latency_ns);
  last_sample_ = sample;
}

void TraceWriter::hint(const HintRecord& record) {
  if (hints_.empty()) last_hint_ = {};
  hints_.number((static_cast<std::uint64_t>(record.priority) << 2) | (record.sequential ? 2 : 0) |
                (record.write ? 1 : 0));
  hints_.difference(last_hint_.time_ns, record.time_ns);
  hints_.difference(last_hint_.page, record.page);
  hints_.difference(last_hint_.thread_id, record.thread_id);
  hints_.number(record.stack == kNoStack ? 0 : record.stack + 1);
  hints_.difference(0, static_cast<std::uint64_t>(record.read_ahead));
  for (std::uint64_t value : {record.pages, record.far, record.far_ahead, record.parked, record.write_protect})
    hints_.number(value);
  last_hint_ = record;
}

void TraceWriter::hint_found(const HintFoundRecord& record) {
  if (hints_found_.empty()) last_found_ = {};
  hints_found_.difference(last_found_.time_ns, record.time_ns);
  hints_found_.difference(last_found_.page, record.page);
  hints_found_.difference(last_found_.thread_id, record.thread_id);
  hints_found_.number(record.stack == kNoStack ? 0 : record.stack + 1);
  last_found_ = record;
}

void TraceWriter::allocation(const AllocationRecord& record) {
  if (allocations_.empty()) last_allocation_ = {};
  allocations_.number(static_cast<std::uint64_t>(record.kind));
  allocations_.difference(last_allocation_.time_ns, record.time_ns);
  allocations_.difference(last_allocation_.address, record.address);
  allocations_.number(record.bytes);
  allocations_.difference(record.bytes, record.stands_for);
  allocations_.difference(record.time_ns, record.made_ns != 0 ? record.made_ns : record.time_ns);
  allocations_.number(record.stack == kNoStack ? 0 : record.stack + 1);
  last_allocation_ = record;
}

void TraceWriter::summary(const Summary& summary) {
  flush();
  ByteWriter out;
  for (std::uint64_t value :
       {summary.ended_ns, summary.faults, summary.faults_lost, summary.samples, summary.samples_lost,
        summary.samples_unmatched, summary.sample_cost_ns, summary.recorder_cpu_ns, summary.complete,
        summary.samples_dropped, summary.hints, summary.hints_lost, summary.hints_only_noted, summary.allocations,
        summary.allocations_lost, summary.handler_cost_ns, summary.lost_samples_stand_for, summary.recorder_away_ns,
        summary.faults_by_signal})
    out.number(value);
  block(kSummaryBlock, out);
}

int TraceWriter::flush() {
  // A file that ends here has what samples refer to: stacks, and the faults that they are weighed by.
  if (!stacks_.empty()) block(kStackBlock, stacks_);
  if (!faults_.empty()) block(kFaultBlock, faults_);
  if (!samples_.empty()) block(kSampleBlock, samples_);
  if (!hints_.empty()) block(kHintBlock, hints_);
  if (!hints_found_.empty()) block(kHintFoundBlock, hints_found_);
  if (!allocations_.empty()) block(kAllocationBlock, allocations_);
  return file_->error();
}

}  // namespace hinterland::trace
