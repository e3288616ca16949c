// Records the faults of a program and of all it starts, from outside: fault records come out of each process's ring
// (ring.hpp), stacks out of the kernel's samples (perf_sampler.hpp), and each sample is joined to the fault it
// belongs to by thread, page and time. One trace file a process. Nothing that fails here reaches the program.
//
// One thread does all of it, from start() to finish(), but for writing traces to their files, which may have to wait
// for a disk (output.hpp).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "trace/perf_sampler.hpp"
#include "trace/recording.hpp"
#include "trace/thinning.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

struct RecorderOptions {
  std::string directory;  // of the rings: made, and removed with what is in it
  std::string output;  // the first process's trace; others get NAME.PID, and NAME.PID.N for further programs of one
  bool overwrite = false;
  std::uint64_t rate = 1000;  // stacks a second; 0: with every fault
  bool only_note_hints = false;
  PerfSampler::Options sampling;
};

struct RecordedTrace {
  std::string path;
  Summary summary;
  int write_error = 0;  // errno: the trace ends early
};

class Recorder {
 public:
  // Makes the directory and the first trace, so that what is wrong with either is known before the program starts.
  static Result<std::unique_ptr<Recorder>> create(const RecorderOptions& options);
  ~Recorder();

  // Variables for the program's environment.
  std::vector<std::pair<std::string, std::string>> variables() const;
  // `process` has not called exec yet, and waits. Sampling by the kernel that is not permitted is no failure: see
  // sampling_error().
  Status start(pid_t process);
  // Of a process that runs already. The process must be told after this: see instruction_every().
  void attach(pid_t process, bool faults_by_signal);
  // The program has ended: takes what is left, closes all traces. Once.
  std::vector<RecordedTrace> finish();

  // Why the kernel does not sample stacks; code 0 when it does. Known after create().
  const Error& sampling_error() const { return sampling_error_; }
  bool user_only() const { return user_only_; }
  // One in so many faults comes with its instruction: 0 where the kernel samples stacks.
  std::uint64_t instruction_every() const;

 private:
  explicit Recorder(const RecorderOptions& options);

  void note_failed_sampling(const Error& error);
  void run();
  void cycle(bool last);
  void look_for_rings();
  void open_ring(const std::string& file);
  std::string trace_path(const Recording& recording);
  void drain_sampler();
  void take_rings();
  void let_go_of_the_dead(std::uint64_t now);
  void take_records(std::uint64_t until_ns);
  void take_record(PerfRecord& record);
  void take_sample(PerfRecord& sample);
  void take_mapping(const PerfRecord& record);
  void take_name(const PerfRecord& record);
  KnownProcess& process_of(std::uint32_t id);
  void read_mappings(std::int32_t process);
  void measure_handler_cost();
  void set_kept_share(std::uint64_t now);
  void choose_density(double of_wanted, std::uint64_t now);
  void write(Recording& recording, bool last, std::uint64_t now);

  RecorderOptions options_;
  Error sampling_error_;
  bool user_only_ = false;
  std::uint64_t sample_cost_ns_ = 0, handler_cost_ns_ = 0;
  std::unique_ptr<PerfSampler> sampler_;
  OutputThread output_;                 // of all traces
  std::unique_ptr<TraceWriter> first_;  // made in create(), taken by the first ring
  std::vector<PerfRecord> pending_;
  std::map<std::uint32_t, std::unique_ptr<KnownProcess>> processes_;
  std::vector<std::unique_ptr<Recording>> recordings_;
  struct Finished {
    std::string path;
    Summary summary;
    std::shared_ptr<const OutputFile> file;
  };
  std::vector<Finished> finished_;  // of processes that ended before the recorder
  std::uint64_t looked_for_dead_ns_ = 0;
  std::set<std::string> known_files_;  // rings
  std::uint64_t samples_lost_ = 0, samples_unmatched_ = 0;
  double lost_stand_for_ = 0;                   // faults
  std::uint64_t drained_ns_ = 0, away_ns_ = 0;  // when the kernel's buffers were emptied; the longest time between
  Thinning thinning_;                           // of the samples that belong to faults
  std::uint64_t matched_ = 0, looked_ns_ = 0;   // since its share was set
  std::uint64_t switched_ns_ = 0;               // between many samples and few
  std::atomic<bool> stop_{false};
  int stop_file_ = -1;  // eventfd: wakes the thread when it shall stop
  std::thread thread_;
};

}  // namespace hinterland::trace
