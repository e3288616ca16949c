// One process's ring, and the trace that it becomes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trace/ring.hpp"
#include "trace/trace_file.hpp"
#include "trace/unwinder.hpp"

namespace hinterland::trace {

// What the kernel's records, or /proc, tell of a process.
struct KnownProcess {
  std::uint32_t parent_id = 0;
  std::uint64_t exec_ns = 0;  // when it became the program that it runs
  std::vector<Module> modules;
  std::map<std::uint32_t, std::string> names;  // of threads
  std::unique_ptr<Unwinder> unwinder = std::make_unique<Unwinder>();
};

// What is true of all recordings of a recorder, as their summaries state it.
struct RecorderFigures {
  std::uint64_t samples_lost = 0, lost_samples_stand_for = 0, samples_unmatched = 0;
  std::uint64_t away_ns = 0;
  std::uint64_t sample_cost_ns = 0, handler_cost_ns = 0, cpu_ns = 0;
  bool hints_only_noted = false;
  bool complete = false;
};

// For the recorder's thread alone.
class Recording {
 public:
  // The ring in that file; nullptr when it is not ready yet, or is none.
  static std::unique_ptr<Recording> open(const std::string& file);
  // Tells the process to write no more, and removes the file.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void write_to(std::unique_ptr<TraceWriter> writer) { writer_ = std::move(writer); }
  std::int32_t process_id() const { return ring_->header.process_id; }
  std::uint64_t opened_ns() const { return ring_->header.opened_ns; }
  const std::string& path() const { return writer_->path(); }
  const std::string& ring_file() const { return file_; }
  const Summary& summary() const { return summary_; }
  std::shared_ptr<const OutputFile> file() const { return writer_->file(); }

  // Takes what is in the ring. Where stacks are not sampled by the kernel, each fault that has its instruction is a
  // sample that stands for `instruction_every`.
  void take(bool sampled, std::uint64_t instruction_every);
  struct Joined {
    const FaultEvent* fault = nullptr;
    std::uint64_t latency_ns = 0;  // 0: not known
  };
  // The fault that a sample of that time belongs to: the thread's last one before it, where a message is sent before
  // the sample is taken, or the first one behind it, where the thread serves the fault itself, after the sample. None
  // where that was on another page, or long ago.
  Joined fault_of(std::uint32_t thread, std::uint64_t page, std::uint64_t time_ns);
  void forget_faults_before(std::uint64_t time_ns);
  void sample(const FaultEvent& fault, std::uint64_t address, const Stack& stack, std::uint64_t weight,
              std::uint64_t latency_ns);
  void drop_sample() { ++summary_.samples_dropped; }

  // The process had ended when this was asked last: since then its last faults were taken.
  bool has_ended();

  // Code that the process has mapped since, but not of a program that it became later.
  void write_modules(const KnownProcess& process);
  // What was written is another program's: the process's own, from the first, come next.
  void write_modules_anew() { modules_ = 0; }
  // Enough is there, or for long enough, to be written.
  bool is_due(std::uint64_t now) const;
  void write(const KnownProcess& process, StackSource source, const RecorderFigures& figures, std::uint64_t now);

 private:
  Recording(RingFile* ring, const std::string& file)
      : ring_(ring), file_(file), faults_(ring->faults), hints_(ring->hints), allocations_(ring->allocations) {}
  std::uint64_t since_start(std::uint64_t time_ns) const;
  FaultRecord record_of(const FaultEvent& event) const;
  void take_fault(const FaultEvent& event, bool sampled, std::uint64_t instruction_every);
  void take_hint(const HintEvent& event);
  void take_allocation(const AllocationEvent& event);
  void describe(std::uint32_t parent_id, StackSource source);
  void write_names(const KnownProcess& process);

  RingFile* ring_;
  std::string file_;
  bool ended_ = false;
  QueueReader<FaultEvent, 65536> faults_;
  QueueReader<HintEvent, 16384> hints_;
  QueueReader<AllocationEvent, RingFile::kAllocationRoom> allocations_;
  std::unique_ptr<TraceWriter> writer_;
  Summary summary_;
  struct Recent {
    FaultEvent event;
    std::uint64_t served_ns = 0;  // in signal mode
  };
  Joined fault_before(const std::deque<Recent>& faults, std::uint64_t page, std::uint64_t time_ns) const;
  Joined fault_behind(const std::deque<Recent>& faults, std::uint64_t page, std::uint64_t time_ns) const;
  void note_served(const FaultEvent& event);
  std::map<std::uint32_t, std::deque<Recent>> recent_;  // by thread, to be joined with samples
  std::map<std::uint32_t, std::string> names_;          // of threads, as written
  std::uint64_t flushed_ns_ = 0;
  std::size_t modules_ = 0;  // of the process, written so far
  bool described_ = false;
};

}  // namespace hinterland::trace
