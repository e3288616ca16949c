// Stacks of page faults, sampled by the kernel: one event and one buffer a CPU, for a process and all it starts.
//
// The kernel copies the registers and the top of the user's stack at the end of a fault (the page is there, the
// thread about to go on), or at its beginning where threads serve their own. Either each fault is sampled, or one in
// 13 and one in 17, by two events: a program whose faults come in cycles is not always caught at the same place. (The
// kernel's own adaptation to a rate would be spoiled by the program's many faults on local memory, and leave hardly a
// sample to a program that then pages slowly.)
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace hinterland::trace {

inline constexpr std::size_t kSampledRegisters = 17;  // ax bx cx dx si di bp sp ip r8..r15, as perf numbers them

struct PerfRecord {
  enum class Kind : std::uint8_t { sample, mapping, name, fork, exit, lost } kind = Kind::sample;
  std::uint64_t time_ns = 0;  // monotonic
  std::uint32_t process_id = 0, thread_id = 0;
  // sample
  std::uint64_t address = 0;
  double weight = 1;  // faults that it stands for
  bool has_registers = false;
  std::array<std::uint64_t, kSampledRegisters> registers{};
  std::vector<std::uint8_t> stack;  // from the stack pointer upwards
  // mapping of code
  std::uint64_t start = 0, length = 0, file_offset = 0;
  std::string build_id;
  std::string text;             // path of a mapping, or name of a thread
  bool by_exec = false;         // the name came with a new program
  std::uint32_t parent_id = 0;  // fork: the parent process
  std::uint64_t lost = 0;
};

class PerfSampler {
 public:
  static constexpr std::size_t kBufferLeast = 64 * kKiB;
  struct Options {
    bool every_fault = false;
    std::uint32_t stack_bytes = 16 * 1024;  // of each sample; a multiple of 8 below 64 KiB
    bool running = false;                   // the process runs already
    bool by_signal = false;                 // faults on far memory end in a signal, and not with the page there
    // For each CPU; less where the user may not lock so much. A power of two, kBufferLeast or more.
    std::size_t buffer_bytes = 8 * kMiB;
  };
  // Follows `process`, which must not have called exec yet: sampling begins there. Or, if it runs already, each of
  // its threads, from now on. EACCES or EPERM when the kernel does not let this user sample; ESRCH when it has ended.
  static Result<std::unique_ptr<PerfSampler>> open(pid_t process, const Options& options);
  ~PerfSampler();

  // Moves what the kernel has written so far behind `out`. Not in order of time across CPUs.
  void drain(std::vector<PerfRecord>& out);
  // Waits for records, or for that file to be readable (-1: none), at most so long.
  void wait(int milliseconds, int or_readable = -1) const;
  // Whether fewer faults are sampled from now on, one in kSparseFewer of those at first: for a program whose stacks
  // would mostly be left out anyway, after each has cost it microseconds. False: the kernel did not give the events
  // for that, and nothing changes.
  bool sample_sparsely(bool sparsely);
  bool is_sparse() const { return sparse_; }
  static const double kSparseFewer;
  bool user_only() const { return user_only_; }  // faults inside system calls are not sampled: not permitted

 private:
  struct Buffer {
    int cpu = 0;
    int file = -1;                   // an event that samples nothing, and tells of mappings, threads and names
    std::uint8_t* memory = nullptr;  // the kernel's page, then the data
    std::vector<int> others;         // further events with the same buffer, of other kinds or threads
  };
  PerfSampler() = default;
  Status open_cpu(pid_t thread, int cpu, const Options& options);
  Status add_buffer(int cpu, int file);
  Status open_samples(perf_event_attr attr, pid_t thread, int cpu, Buffer& buffer, const Options& options);
  void drain_one(const Buffer& buffer, std::vector<PerfRecord>& out);
  double weight_at(std::uint64_t time_ns) const;

  std::vector<Buffer> buffers_;
  std::size_t data_bytes_ = 0, data_bytes_most_ = 0;
  std::vector<int> dense_events_, sparse_events_;  // files of which the buffers are the owners
  bool has_sparse_ = true, sparse_ = false, every_fault_ = false;
  std::uint64_t switched_ns_ = 0;  // when one took the place of the other
  bool user_only_ = false;
  bool build_ids_ = true;
};

// What one sample costs the thread that faults, in ns of CPU: a thousand faults of our own with and without. 0 when
// it cannot be measured. Takes about 5 ms.
std::uint64_t measure_sample_cost_ns(const PerfSampler::Options& options);

// kernel.perf_event_paranoid; -1 when there is none.
int perf_event_paranoid();

}  // namespace hinterland::trace
