// The figures of one running program, in a page shared with `hinterland stat` and `hinterland tune`.
//
// One file a process below the statistics directory (stats_folder.hpp), mapped shared: the program adds with
// relaxed atomics, readers only look, so watching costs the watched program nothing. The list of counters below is
// the only one: names in the report, in `stat` and here come from it.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hinterland {

// X(name, help). Monotonic counters, since the start of the program.
#define HL_COUNTERS(X)                                                                           \
  X(faults_first_touch, "faults on pages never touched before")                                  \
  X(faults_read, "read faults that fetched a page from far memory")                              \
  X(faults_write, "write faults that fetched a page from far memory")                            \
  X(faults_write_protect, "first writes to clean pages")                                         \
  X(faults_refault, "faults on pages that were unmapped but not yet gone (second chance)")       \
  X(faults_spurious, "faults already served when they were looked at")                           \
  X(faults_crowded, "faults served together with those of a crowd of other threads")             \
  X(crowd_wakes, "wake-ups that these took; each looks at all threads that wait")                \
  X(hint_calls, "hints that had to ask the runtime; one on a page that is there asks nobody")    \
  X(hint_pages_there, "pages that these hints found local")                                      \
  X(hint_pages_in, "pages that hints fetched from far memory")                                   \
  X(hint_refaults, "pages that hints brought back before they were gone (second chance)")        \
  X(hint_protection_cleared, "clean pages that hints made writable")                             \
  X(pages_in, "pages fetched from far memory, read-ahead included")                              \
  X(pages_read_ahead, "pages fetched before they were asked for")                                \
  X(pages_read_ahead_unused, "at most so many of those that faults brought were in vain")        \
  X(pages_offloaded, "pages that the server computed on, in the place of fetching them")         \
  X(pages_out, "pages written to far memory")                                                    \
  X(pages_evicted, "pages taken out of local memory")                                            \
  X(pages_evicted_clean, "of these, pages whose far copy was still good")                        \
  X(pages_evicted_zero, "of these, pages that held only zeros and were not written")             \
  X(pages_discarded, "pages the program freed while they were local or far")                     \
  X(reclaim_background_pages, "pages reclaimed in the background")                               \
  X(handlers_called, "times a spare fault handler went to a second thread that faults")          \
  X(reclaim_helps, "times a second background thread reclaimed as well")                         \
  X(reclaim_handler_pages, "pages reclaimed ahead of need by the fault handler")                 \
  X(reclaim_direct_pages, "pages reclaimed by a fault that found no free memory")                \
  X(reclaim_direct_faults, "faults that had to reclaim")                                         \
  X(reclaim_batches, "reclaim batches")                                                          \
  X(reclaim_refused_pages, "victims the kernel would not give up (pinned or shared)")            \
  X(pages_lost, "pages that could not be had from the device")                                   \
  X(device_bytes_in, "bytes read from the far device")                                           \
  X(device_bytes_out, "bytes written to the far device")                                         \
  X(device_errors, "device requests that failed")                                                \
  X(device_reconnects, "fresh connections after a failure")                                      \
  X(forks, "forks without exec")                                                                 \
  X(object_misses, "far objects that were brought from far memory")                              \
  X(object_bytes_in, "bytes read from far memory for these, neighbours on their pages included") \
  X(object_evacuations, "objects that became far")                                               \
  X(object_cleaned_bytes, "live bytes of far objects that were packed onto other pages")

// X(name, help). Gauges: the figure now, in the unit of the name.
#define HL_GAUGES(X)                                                                                     \
  X(budget_bytes, "local memory the program may keep resident")                                          \
  X(resident_bytes, "far-memory pages resident now")                                                     \
  X(peak_anonymous_bytes,                                                                                \
    "most anonymous memory resident when looked at (every 0.1 to 1 s; rarely before paging begins)")     \
  X(peak_total_bytes, "most of that and of the far pages kept in memory of this machine together")       \
  X(store_at_peak_bytes, "of that, the memory in which mem: or zmem: kept far pages")                    \
  X(stored_at_peak_bytes, "far pages that were in it, before compression")                               \
  X(frames_bytes, "frames held for transfers and second chance")                                         \
  X(reserve_bytes, "of the budget: kept free at most, for faults that come while reclaim wakes up")      \
  X(far_bytes, "bytes in far memory now")                                                                \
  X(mapped_bytes, "bytes mapped in the window")                                                          \
  X(left_local_bytes,                                                                                    \
    "private anonymous mappings left to the kernel (stacks, fixed, 32-bit); no others are counted")      \
  X(device_used_bytes, "space used on the device")                                                       \
  X(device_capacity_bytes, "space the device offers (0: not limited)")                                   \
  X(device_stored_bytes, "bytes really stored (after compression)")                                      \
  X(managed, "1 once the program outgrew its budget and paging began")                                   \
  X(takeover_ns, "how long that took; faults that came meanwhile waited for it")                         \
  X(takeover_resident_bytes, "resident far-memory pages that were taken over then")                      \
  X(device_lost, "1 when the far device is gone")                                                        \
  X(object_local_bytes, "local memory that objects have now")                                            \
  X(object_far_bytes, "far memory that objects have now, in whole pages")                                \
  X(object_live_bytes, "of that, what lives; the rest is of objects that have ended, and ends of pages") \
  X(object_beyond_bytes, "most local memory that objects had beyond their limit")

enum class Counter : std::uint32_t {
#define X(name, help) name,
  HL_COUNTERS(X)
#undef X
      count
};
enum class Gauge : std::uint32_t {
#define X(name, help) name,
  HL_GAUGES(X)
#undef X
      count
};

// Names and one-line explanations, in enum order.
struct StatName {
  const char* name;
  const char* help;
};
extern const std::array<StatName, static_cast<std::size_t>(Counter::count)> kCounterNames;
extern const std::array<StatName, static_cast<std::size_t>(Gauge::count)> kGaugeNames;

// Latencies in buckets of 1/8 power of two: at most 12.5 % wide, from 64 ns to beyond a minute.
class LatencyHistogram {
 public:
  static constexpr std::size_t kBuckets = 256;
  void add(std::uint64_t ns, std::uint64_t times = 1) {
    buckets_[bucket_of(ns)].fetch_add(times, std::memory_order_relaxed);
  }
  std::uint64_t count() const;
  // Upper edge, in ns, of the bucket in which the given share (0..1) of samples is reached; 0 when empty.
  std::uint64_t percentile_ns(double share) const;
  // Of all samples together, at most an eighth too much.
  std::uint64_t sum_ns() const;
  // Adds another's samples (the report's totals), or becomes its copy.
  void merge(const LatencyHistogram& other);
  void copy_from(const LatencyHistogram& other);
  // What was added since `earlier`, an earlier copy of this one.
  void subtract(const LatencyHistogram& earlier);
  void clear();
  static std::size_t bucket_of(std::uint64_t ns);
  static std::uint64_t upper_edge_ns(std::size_t bucket);

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets> buckets_{};
};

// What is counted, several times over: threads that count the same thing at the same moment do so on cache lines of
// their own, as far as that goes, because each transfer of a line costs what a hundred instructions cost. Relaxed
// throughout: statistics, ordered with nothing.
class CounterTable {
 public:
  static constexpr std::size_t kColumns = 8;
  void add(Counter counter, std::uint64_t n) {
    columns_[own_column()].values[static_cast<std::size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
  }
  std::uint64_t operator[](Counter counter) const {
    std::uint64_t sum = 0;
    for (const Column& column : columns_)
      sum += column.values[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
    return sum;
  }
  // Nobody else counts meanwhile.
  void set(Counter counter, std::uint64_t value) {
    for (Column& column : columns_)
      column.values[static_cast<std::size_t>(counter)].store(std::exchange(value, 0), std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Column {
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Counter::count)> values;
  };
  // A thread's block lies on pages of its own, and those of threads started one after the other are an odd number of
  // pages apart.
  static std::size_t own_column() {
    return (reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) >> 12) % kColumns;
  }
  std::array<Column, kColumns> columns_;
};

// Where things lie in the process, for `hinterland core`, which reads its memory from outside. Addresses there.
struct InsideView {
  std::atomic<std::uint64_t> window_base, window_bytes;
  std::atomic<std::uint64_t> places_base, places_bytes;  // addresses whose pages have words (paging/page/window.hpp)
  std::atomic<std::uint64_t> outside_chunks,
      outside_bits;  // of mappings outside of the window (address_set.hpp); or 0
  std::atomic<std::uint64_t> page_words, page_directory, page_chunks;  // paging/page/page_table.hpp
  std::atomic<std::uint64_t> page_marks;                               // paging/page/page_marks.hpp
  // Of t_inside_runtime (base/inside.hpp), from a thread's pointer (FS): a thread that is stopped while it is not 0
  // may hold what the runtime needs to serve faults.
  std::atomic<std::int64_t> inside_offset;
  // Threads of ours: they serve faults, and must not be stopped. At most ten exist: four handlers, who writes back,
  // who helps to map, two that reclaim, who gathers hints, the housekeeper; with --reclaim hermit 24, of which 16
  // reclaim.
  std::array<std::atomic<std::int32_t>, 32> runtime_threads;
};

// What the policy says of itself. Laid out as hl_policy_report (policy_host_aside.cpp holds it to that), which is not
// included here: nearly all of the runtime would be compiled again for each change of policy.h.
struct PolicyReport {
  static constexpr std::uint32_t kFiguresMax = 8;
  struct Figure {
    char name[24];
    std::uint64_t value;
  };
  char text[128];
  std::uint32_t count;  // of the figures
  Figure figures[kFiguresMax];
};

struct StatPage {
  static constexpr std::uint64_t kMagic = 0x31544154534c4e48;  // "HNLSTAT1"

  std::atomic<std::uint64_t> magic;  // written last: a page without it is not ready
  std::uint32_t version;
  std::int32_t pid;
  std::uint64_t start_time_ticks;       // field 22 of /proc/PID/stat: tells a reused PID
  std::uint64_t namespaces;             // own_namespaces(): where pid and start_time_ticks mean anything
  std::uint64_t started_ns;             // monotonic
  std::atomic<std::uint64_t> ended_ns;  // monotonic; 0 while it runs
  char program[64];
  char far_url[256];  // without secrets
  char policy[32];
  std::uint32_t faults_by_signal;  // 1: threads serve their own faults
  PolicyReport policy_report;      // of a policy that has one
  InsideView inside;

  CounterTable counters;
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Gauge::count)> gauges;
  // From reading the message until its thread is woken. Not of faults on pages that another thread of the runtime has
  // in its hands.
  LatencyHistogram fault_latency;
  LatencyHistogram fetch_latency;  // device requests of the fault path

  // `hinterland tune`: the budget asked for, in bytes, and a futex to wake whoever applies it.
  std::atomic<std::uint64_t> budget_request_bytes;
  std::atomic<std::uint32_t> request_sequence;  // process-shared futex; the writer adds 1 and wakes
  std::atomic<std::uint32_t> request_answer;    // sequence last applied
  std::atomic<std::int32_t> request_error;      // 0, or errno of the last request (written before request_answer)

  // `hinterland trace --attach`, by the same sequence and answer: where the process is to make its ring
  // (trace/ring.hpp), and its kInstructionVariable. Read once `trace_requested` is 1 (release, acquire), which the
  // process takes back.
  char trace_directory[256];
  std::uint64_t trace_instruction_every;
  std::atomic<std::uint32_t> trace_requested;
};

// Made of what the layout is made of, so that no change of it is read as what it was before.
constexpr std::uint32_t stat_page_version() {
  std::uint32_t hash = 2166136261;  // FNV-1a
  auto add = [&hash](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 16777619; };
#define X(name, help) \
  for (char c : #name) add(c);
  HL_COUNTERS(X)
  HL_GAUGES(X)
#undef X
  for (std::size_t place :
       {sizeof(StatPage), offsetof(StatPage, inside), offsetof(StatPage, counters), offsetof(StatPage, gauges),
        offsetof(StatPage, budget_request_bytes), offsetof(StatPage, trace_requested)})
    for (unsigned byte = 0; byte < 4; ++byte) add(static_cast<char>(place >> 8 * byte));
  return hash;
}
inline constexpr std::uint32_t kStatPageVersion = stat_page_version();

// The page of this process: shared once open_stat_page() succeeded, before that a private one. Never null.
StatPage* stat_page();

inline void count(Counter counter, std::uint64_t n = 1) { stat_page()->counters.add(counter, n); }
inline void set_gauge(Gauge gauge, std::uint64_t value) {
  stat_page()->gauges[static_cast<std::size_t>(gauge)].store(value, std::memory_order_relaxed);
}
inline void add_gauge(Gauge gauge, std::int64_t delta) {
  stat_page()->gauges[static_cast<std::size_t>(gauge)].fetch_add(static_cast<std::uint64_t>(delta),
                                                                 std::memory_order_relaxed);
}

// The calling thread is one of the runtime's.
void note_runtime_thread();

// When the process was started, in clock ticks since boot (field 22 of /proc/PID/stat); 0 when there is none.
std::uint64_t process_start_ticks(pid_t pid);

// Which PID and time namespaces this process is in: numbers and times of processes compare between processes for
// which it is the same. 0 where /proc does not tell.
std::uint64_t own_namespaces();

// Creates the shared page of this process (directory mode 0700, file PID-NAMESPACE mode 0600) and makes it current;
// what was counted so far is carried over. On failure the private page stays in use. Not thread-safe: call at start
// and in a forked child before other threads run (it then starts with the gauges of its parent, and counters of
// zero). A file left by an earlier program of the same PID is replaced, or, with HINTERLAND_STAT_KEEP, given .N at
// its end. Allocates nothing.
int open_stat_page(const char* program);  // 0 or -errno
// At exit: marks the end; removes the file unless HINTERLAND_STAT_KEEP is set (then `run --report` removes it).
void close_stat_page();

}  // namespace hinterland
