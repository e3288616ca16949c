// The trace file: a head, then blocks, each with its kind, length and checksum, only ever appended. Whatever ends the
// recorder, all blocks before are readable. docs/tracing.md describes the bytes.
//
// Faults are all there (but for what `Summary` says was lost); stacks are a sample, each with the number of faults
// that it stands for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "paging/page/fault_observer.hpp"
#include "trace/bytes.hpp"
#include "trace/output.hpp"
#include "trace/ring.hpp"

namespace hinterland::trace {

// 2: hints and allocations. 3: expected writes. Files of older versions are read: they have none.
inline constexpr std::uint32_t kTraceVersion = 3;

// How stacks were had.
enum class StackSource : std::uint8_t {
  none = 0,
  kernel_unwound = 1,
  kernel_frame_pointers = 2,
  instruction_only = 3
};

struct ProcessFacts {
  std::string program, far_url, policy;
  std::uint64_t process_id = 0, parent_id = 0;
  std::uint64_t started_ns = 0;   // monotonic: zero of the times below
  std::uint64_t wall_time_s = 0;  // of the same moment, since 1970
  std::uint64_t local_bytes = 0, read_ahead_pages = 0;
  std::uint64_t window_base = 0, window_bytes = 0;
  StackSource source = StackSource::none;
};

struct Module {  // one mapping of code
  std::uint64_t start = 0, end = 0, file_offset = 0;
  std::string build_id;  // bytes
  std::string path;
};

struct FaultRecord {
  std::uint64_t time_ns = 0;  // since started_ns
  std::uint64_t page = 0;     // address / 4096
  std::uint64_t thread_id = 0;
  FaultKind kind = FaultKind::read;
  bool write = false;
  bool expects_write = false;  // a read, but mapped writable: whether it was written, no fault says
};

struct StackSample {
  FaultRecord fault;
  std::uint64_t address = 0;     // to the byte, where the kernel told it
  std::uint64_t stack = 0;       // index into the trace's stacks
  std::uint64_t weight = 1;      // faults that it stands for
  std::uint64_t latency_ns = 0;  // from the look at the fault until the thread goes on (docs/tracing.md); 0: unknown
};

// Innermost first. Callers are given by the byte before their return address, so that it lies in the calling line.
struct Stack {
  std::vector<std::uint64_t> addresses;
  bool whole = true;  // false: cut off before the thread's first function
};

inline constexpr std::uint64_t kNoStack = UINT64_MAX;

// A hint that found pages missing.
struct HintRecord {
  std::uint64_t time_ns = 0;  // since started_ns
  std::uint64_t page = 0;     // of its address
  std::uint64_t thread_id = 0;
  std::uint64_t stack =
      kNoStack;             // index into the trace's stacks; of one in kHintCallersEvery, or all that were only noted
  std::uint64_t pages = 0;  // as HintSeen says
  std::int64_t read_ahead = 0;
  std::uint64_t far = 0, far_ahead = 0, parked = 0, write_protect = 0;
  bool write = false, sequential = false;
  std::uint8_t priority = 0;
  bool operator==(const HintRecord&) const = default;
};

// A hint that found all its pages there. Hardly any such ask the runtime (paging/page/hint_map.hpp): each page's
// first one since reclaim last looked at the page, of these one in kHintCallersEvery. So they show who hints what is
// there anyway, and not how often.
struct HintFoundRecord {
  std::uint64_t time_ns = 0;  // since started_ns
  std::uint64_t page = 0;
  std::uint64_t thread_id = 0;
  std::uint64_t stack = kNoStack;  // index into the trace's stacks
  bool operator==(const HintFoundRecord&) const = default;
};

// That memory was allocated, or given back: see AllocationEvent. Its kinds are those of ring.hpp.
struct AllocationRecord {
  AllocationKind kind = AllocationKind::block;
  std::uint64_t time_ns = 0;  // monotonic, not since started_ns: what lives may be older
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t stands_for = 0;
  std::uint64_t made_ns = 0;  // of a block that ended
  std::uint64_t stack = kNoStack;
  bool operator==(const AllocationRecord&) const = default;
};

// Written every now and then, and at the end; the last one counts.
struct Summary {
  std::uint64_t ended_ns = 0;           // since started_ns, of the last record
  std::uint64_t faults = 0;             // recorded here
  std::uint64_t faults_lost = 0;        // found the ring full
  std::uint64_t samples = 0;            // stacks recorded here
  std::uint64_t samples_lost = 0;       // the kernel's buffer was full
  std::uint64_t samples_unmatched = 0;  // page faults of the kernel's own: not far memory
  std::uint64_t sample_cost_ns = 0;     // of one sample to the program, as measured before the start
  std::uint64_t recorder_cpu_ns = 0;    // on other threads than the program's
  std::uint64_t complete = 0;           // 1: the program ended and the recorder saw all of it
  std::uint64_t samples_dropped = 0;    // of faults recorded here, but more than the rate asked for
  std::uint64_t hints = 0;              // recorded here
  std::uint64_t hints_lost = 0;         // found their ring full
  std::uint64_t hints_only_noted = 0;   // 1: they were not followed
  std::uint64_t allocations = 0;        // records of theirs
  std::uint64_t allocations_lost = 0;   // found no room
  std::uint64_t handler_cost_ns = 0;    // more than a hint (handler_cost.hpp), measured before the start; 0: unknown
  std::uint64_t lost_samples_stand_for = 0;  // faults
  std::uint64_t recorder_away_ns = 0;        // the longest time for which it did not empty the kernel's buffers
  std::uint64_t faults_by_signal = 0;        // 1: threads served their own faults
};

// Appends. Each call buffers; flush() makes blocks of what is there. After a failed write everything is dropped.
class TraceWriter {
 public:
  // Refuses a file that exists, unless `overwrite`. With a thread, which must outlive the writer, blocks are written
  // by it; without one, by the caller.
  static Result<TraceWriter> create(const std::string& path, bool overwrite, OutputThread* thread = nullptr);
  TraceWriter(TraceWriter&& other) = default;
  TraceWriter& operator=(TraceWriter&&) = delete;
  ~TraceWriter();

  void process(const ProcessFacts& facts);
  void module(const Module& module);
  void thread_name(std::uint64_t thread_id, const std::string& name);
  void fault(const FaultRecord& record);
  void sample(const StackSample& sample);
  void hint(const HintRecord& record);
  void hint_found(const HintFoundRecord& record);
  void allocation(const AllocationRecord& record);
  std::uint64_t stack(const Stack& stack);  // its index: the same for equal stacks
  void summary(const Summary& summary);
  // 0, or the errno of the write that failed, once and for all. A thread may find that out later: see file().
  int flush();
  std::shared_ptr<const OutputFile> file() const { return file_; }
  const std::string& path() const { return path_; }
  std::size_t buffered() const {
    return faults_.size() + samples_.size() + hints_.size() + hints_found_.size() + allocations_.size();
  }

 private:
  TraceWriter() = default;
  void block(std::uint32_t kind, ByteWriter& bytes);

  std::string path_;
  std::shared_ptr<OutputFile> file_;
  OutputThread* thread_ = nullptr;
  ByteWriter faults_, samples_, stacks_, hints_, hints_found_, allocations_;
  FaultRecord last_fault_;
  StackSample last_sample_;
  HintRecord last_hint_;
  HintFoundRecord last_found_;
  AllocationRecord last_allocation_;
  std::map<std::vector<std::uint64_t>, std::uint64_t> known_stacks_;  // with `whole` as their last word
};

// Everything but faults, hints and allocations, which may be many: see for_each_fault().
class TraceFile {
 public:
  static Result<TraceFile> open(const std::string& path);
  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&&) = delete;
  ~TraceFile();

  ProcessFacts process;
  std::vector<Module> modules;
  std::map<std::uint64_t, std::string> thread_names;
  std::vector<Stack> stacks;
  std::vector<StackSample> samples;
  Summary summary;
  bool has_summary = false;
  std::uint64_t damaged_bytes = 0;  // at the end: not a complete block (the recorder was killed, the disk was full)

  void for_each_fault(const std::function<void(const FaultRecord&)>& visit) const;
  void for_each_hint(const std::function<void(const HintRecord&)>& visit) const;
  void for_each_hint_found(const std::function<void(const HintFoundRecord&)>& visit) const;
  void for_each_allocation(const std::function<void(const AllocationRecord&)>& visit) const;

 private:
  TraceFile() = default;
  Status read_blocks();
  bool read_block(std::uint32_t kind, std::span<const std::uint8_t> bytes);
  bool read_stacks(ByteReader& in);
  bool read_samples(ByteReader& in);

  const std::uint8_t* data_ = nullptr;  // mapped
  std::size_t size_ = 0;
  std::vector<std::span<const std::uint8_t>> fault_blocks_, hint_blocks_, found_blocks_, allocation_blocks_;
};

}  // namespace hinterland::trace
