// The reading half of trace_file.hpp.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/plain_file.hpp"
#include "base/units.hpp"
#include "trace/trace_file.hpp"
#include "trace/trace_format.hpp"

namespace hinterland::trace {
namespace {

std::unexpected<Error> refuse(const std::string& path, const char* what, const char* remedy) {
  return std::unexpected(Error::make(0, "%s %s", path.c_str(), what).remedy("%s", remedy));
}

bool read_kind(ByteReader& in, FaultRecord* fault) {
  std::uint64_t packed = in.number();
  fault->expects_write = (packed & kExpectsWriteBit) != 0;
  packed &= ~kExpectsWriteBit;
  fault->kind = static_cast<FaultKind>(packed >> 1);
  fault->write = (packed & 1) != 0;
  return packed >> 1 <= static_cast<std::uint64_t>(FaultKind::lost);
}

}  // namespace

TraceFile::TraceFile(TraceFile&& other) noexcept
    : process(std::move(other.process)),
      modules(std::move(other.modules)),
      thread_names(std::move(other.thread_names)),
      stacks(std::move(other.stacks)),
      samples(std::move(other.samples)),
      summary(other.summary),
      has_summary(other.has_summary),
      damaged_bytes(other.damaged_bytes),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      fault_blocks_(std::move(other.fault_blocks_)),
      hint_blocks_(std::move(other.hint_blocks_)),
      found_blocks_(std::move(other.found_blocks_)),
      allocation_blocks_(std::move(other.allocation_blocks_)) {}

TraceFile::~TraceFile() {
  if (data_ != nullptr) munmap(const_cast<std::uint8_t*>(data_), size_);
}

Result<TraceFile> TraceFile::open(const std::string& path) {
  Result<int> file = open_plain_file(path, "the trace");
  if (!file) return std::unexpected(file.error().remedy("hinterland trace -o FILE -- PROGRAM makes one"));
  struct stat status{};
  fstat(*file, &status);
  TraceFile trace;
  trace.size_ = static_cast<std::size_t>(status.st_size);
  void* data = trace.size_ == 0 ? nullptr : mmap(nullptr, trace.size_, PROT_READ, MAP_PRIVATE, *file, 0);
  int problem = errno;
  close(*file);
  if (data == MAP_FAILED) return std::unexpected(Error::make(problem, "the trace %s cannot be read", path.c_str()));
  trace.data_ = static_cast<const std::uint8_t*>(data);
  if (trace.size_ == 0)
    return refuse(path, "is empty: nothing was recorded",
                  "trace the program again; the disk may have been full, or the name is of something else");
  FileHead head{};
  std::memcpy(&head, trace.data_, std::min(trace.size_, sizeof head));
  if (std::memcmp(head.magic, kFileMagic, sizeof head.magic) != 0)
    return refuse(path, "is not a trace of hinterland", "name a file that 'hinterland trace' wrote");
  if (head.version > kTraceVersion)
    return refuse(path, "was written by a newer version of hinterland", "read it with that version, or a later one");
  if (trace.size_ < sizeof head || head.version == 0 || head.head_bytes < sizeof head ||
      head.head_bytes > trace.size_)
    return refuse(path, "is cut off in its first bytes", "trace the program again");
  if (Status read = trace.read_blocks(); !read) return std::unexpected(read.error());
  if (trace.process.program.empty())
    return refuse(path, "ends before its first record: the recorder was stopped at once, or the disk was full",
                  "trace the program again, to a disk with room");
  return trace;
}

Status TraceFile::read_blocks() {
  FileHead file{};
  std::memcpy(&file, data_, sizeof file);
  std::size_t at = file.head_bytes;
  while (at < size_) {
    BlockHead head{};
    damaged_bytes = size_ - at;  // unless the block proves good
    if (size_ - at < sizeof head) return {};
    std::memcpy(&head, data_ + at, sizeof head);
    if (head.bytes > kBlockBytesMax || head.bytes > size_ - at - sizeof head) return {};
    std::span<const std::uint8_t> bytes(data_ + at + sizeof head, head.bytes);
    if (checksum_of(head.kind, bytes.data(), bytes.size()) != head.checksum) return {};
    if (!read_block(head.kind, bytes)) return {};
    at += sizeof head + head.bytes;
    damaged_bytes = 0;
  }
  return {};
}

// False: not what this kind of block holds. A kind that this version does not know is passed over.
bool TraceFile::read_block(std::uint32_t kind, std::span<const std::uint8_t> bytes) {
  ByteReader in(bytes);
  if (kind == kProcessBlock) {
    process.program = in.text();
    process.far_url = in.text();
    process.policy = in.text();
    for (std::uint64_t* value :
         {&process.process_id, &process.parent_id, &process.started_ns, &process.wall_time_s, &process.local_bytes,
          &process.read_ahead_pages, &process.window_base, &process.window_bytes})
      *value = in.number();
    process.source = static_cast<StackSource>(std::min<std::uint64_t>(in.number(), 3));
  } else if (kind == kModuleBlock) {
    Module module;
    for (std::uint64_t* value : {&module.start, &module.end, &module.file_offset}) *value = in.number();
    module.build_id = in.text();
    module.path = in.text();
    if (!in.failed()) modules.push_back(std::move(module));
  } else if (kind == kThreadBlock) {
    std::uint64_t thread_id = in.number();
    thread_names[thread_id] = in.text();
  } else if (kind == kFaultBlock) {
    fault_blocks_.push_back(bytes);
  } else if (kind == kHintBlock) {
    hint_blocks_.push_back(bytes);
  } else if (kind == kHintFoundBlock) {
    found_blocks_.push_back(bytes);
  } else if (kind == kAllocationBlock) {
    allocation_blocks_.push_back(bytes);
  } else if (kind == kStackBlock) {
    return read_stacks(in);
  } else if (kind == kSampleBlock) {
    return read_samples(in);
  } else if (kind == kSummaryBlock) {
    for (std::uint64_t* value : {&summary.ended_ns, &summary.faults, &summary.faults_lost, &summary.samples,
                                 &summary.samples_lost, &summary.samples_unmatched, &summary.sample_cost_ns,
                                 &summary.recorder_cpu_ns, &summary.complete, &summary.samples_dropped})
      *value = in.number();
    // In files of version 1 these are absent, and the last ones in others of before they were measured.
    for (std::uint64_t* value : {&summary.hints, &summary.hints_lost, &summary.hints_only_noted, &summary.allocations,
                                 &summary.allocations_lost, &summary.handler_cost_ns, &summary.lost_samples_stand_for,
                                 &summary.recorder_away_ns, &summary.faults_by_signal})
      *value = in.at_end() ? 0 : in.number();
    has_summary = true;
  }
  return !in.failed();
}

bool TraceFile::read_stacks(ByteReader& in) {
  while (!in.at_end()) {
    std::uint64_t packed = in.number();
    Stack stack;
    stack.whole = (packed & 1) != 0;
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < packed >> 1 && !in.failed(); ++i) {
      last = in.difference(last);
      stack.addresses.push_back(last);
    }
    if (in.failed()) return false;
    stacks.push_back(std::move(stack));
  }
  return true;
}

bool TraceFile::read_samples(ByteReader& in) {
  StackSample last{};
  while (!in.at_end()) {
    StackSample sample;
    if (!read_kind(in, &sample.fault)) return false;
    sample.fault.time_ns = in.difference(last.fault.time_ns);
    sample.address = in.difference(last.address);
    sample.fault.page = sample.address >> kPageShift;
    sample.fault.thread_id = in.difference(last.fault.thread_id);
    sample.stack = in.difference(last.stack);
    sample.weight = in.number();
    sample.latency_ns = in.number();
    if (in.failed() || sample.stack >= stacks.size()) return false;
    samples.push_back(sample);
    last = sample;
  }
  return true;
}

void TraceFile::for_each_fault(const std::function<void(const FaultRecord&)>& visit) const {
  for (std::span<const std::uint8_t> block : fault_blocks_) {
    ByteReader in(block);
    FaultRecord record{};
    while (!in.at_end()) {
      if (!read_kind(in, &record)) break;
      record.time_ns = in.difference(record.time_ns);
      record.page = in.difference(record.page);
      record.thread_id = in.difference(record.thread_id);
      if (in.failed()) break;
      visit(record);
    }
  }
}

void TraceFile::for_each_hint(const std::function<void(const HintRecord&)>& visit) const {
  for (std::span<const std::uint8_t> block : hint_blocks_) {
    ByteReader in(block);
    HintRecord record;
    while (!in.at_end()) {
      std::uint64_t packed = in.number();
      record.write = (packed & 1) != 0;
      record.sequential = (packed & 2) != 0;
      record.priority = static_cast<std::uint8_t>(packed >> 2 & 15);
      record.time_ns = in.difference(record.time_ns);
      record.page = in.difference(record.page);
      record.thread_id = in.difference(record.thread_id);
      record.stack = in.number() - 1;  // 0 becomes kNoStack
      record.read_ahead = static_cast<std::int64_t>(in.difference(0));
      for (std::uint64_t* value :
           {&record.pages, &record.far, &record.far_ahead, &record.parked, &record.write_protect})
        *value = in.number();
      bool known = record.stack == kNoStack || record.stack < stacks.size();
      if (in.failed() || !known) break;
      visit(record);
    }
  }
}

void TraceFile::for_each_hint_found(const std::function<void(const HintFoundRecord&)>& visit) const {
  for (std::span<const std::uint8_t> block : found_blocks_) {
    ByteReader in(block);
    HintFoundRecord record;
    while (!in.at_end()) {
      record.time_ns = in.difference(record.time_ns);
      record.page = in.difference(record.page);
      record.thread_id = in.difference(record.thread_id);
      record.stack = in.number() - 1;  // 0 becomes kNoStack
      bool known = record.stack == kNoStack || record.stack < stacks.size();
      if (in.failed() || !known) break;
      visit(record);
    }
  }
}

void TraceFile::for_each_allocation(const std::function<void(const AllocationRecord&)>& visit) const {
  for (std::span<const std::uint8_t> block : allocation_blocks_) {
    ByteReader in(block);
    AllocationRecord record;
    while (!in.at_end()) {
      std::uint64_t kind = in.number();
      record.kind = static_cast<AllocationKind>(kind);
      record.time_ns = in.difference(record.time_ns);
      record.address = in.difference(record.address);
      record.bytes = in.number();
      record.stands_for = in.difference(record.bytes);
      record.made_ns = in.difference(record.time_ns);
      if (record.kind != AllocationKind::block_ended) record.made_ns = 0;
      record.stack = in.number() - 1;  // 0 becomes kNoStack
      bool known = record.stack == kNoStack || record.stack < stacks.size();
      if (in.failed() || !known || kind > static_cast<std::uint64_t>(AllocationKind::range_ended)) break;
      visit(record);
    }
  }
}

}  // namespace hinterland::trace
