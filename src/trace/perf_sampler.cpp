#include "trace/perf_sampler.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace hinterland::trace {
namespace {

// Registers 0 to 8 and 16 to 23 of arch/x86/include/uapi/asm/perf_regs.h: what unwinding needs.
constexpr std::uint64_t kRegisterMask = 0xff01ff;
// Two at a time, without a common divisor: a program whose faults come in cycles is not always caught at one place.
constexpr std::uint64_t kPeriods[] = {13, 17}, kSparsePeriods[] = {101, 127};
// A sample stands for so many, as both events sample independently.
constexpr double faults_each(const std::uint64_t (&periods)[2]) {
  return 1 / (1.0 / static_cast<double>(periods[0]) + 1.0 / static_cast<double>(periods[1]));
}
constexpr std::uint16_t kBuildIdInRecord = 1 << 14;  // PERF_RECORD_MISC_MMAP_BUILD_ID

perf_event_attr attributes(const PerfSampler::Options& options) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
  // Without PERF_SAMPLE_PERIOD: a software event that has it is sampled at each fault, whatever its period
  // (perf_swevent_event() of kernel/events/core.c). Two events would then sample each fault twice.
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER |
                     PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = kRegisterMask;
  attr.sample_stack_user = options.stack_bytes;
  attr.sample_period = options.every_fault ? 1 : kPeriods[0];
  attr.disabled = 1;
  attr.sample_id_all = 1;
  attr.exclude_hv = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

long open_event(perf_event_attr& attr, pid_t process, int cpu) {
  return syscall(SYS_perf_event_open, &attr, process, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

template <typename T>
T take(const std::uint8_t*& at, const std::uint8_t* end) {
  T value{};
  if (static_cast<std::size_t>(end - at) < sizeof value) {
    at = end;
    return value;
  }
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

std::string text_up_to(const std::uint8_t* at, const std::uint8_t* end) {
  const char* text = reinterpret_cast<const char*>(at);
  return {text, strnlen(text, static_cast<std::size_t>(end - at))};
}

void parse_sample(PerfRecord& record, const std::uint8_t* at, const std::uint8_t* end) {
  record.kind = PerfRecord::Kind::sample;
  take<std::uint64_t>(at, end);  // the kernel's instruction where it faulted itself: the user's is in the registers
  record.process_id = take<std::uint32_t>(at, end);
  record.thread_id = take<std::uint32_t>(at, end);
  record.time_ns = take<std::uint64_t>(at, end);
  record.address = take<std::uint64_t>(at, end);
  record.has_registers = take<std::uint64_t>(at, end) == PERF_SAMPLE_REGS_ABI_64;
  if (!record.has_registers) return;
  for (std::uint64_t& value : record.registers) value = take<std::uint64_t>(at, end);
  auto size = take<std::uint64_t>(at, end);
  if (size == 0 || size > static_cast<std::size_t>(end - at)) return;
  const std::uint8_t* stack = at;
  at += size;
  std::uint64_t used = std::min(take<std::uint64_t>(at, end), size);
  record.stack.assign(stack, stack + used);
}

void parse_mapping(PerfRecord& record, std::uint16_t misc, const std::uint8_t* at, const std::uint8_t* end) {
  record.kind = PerfRecord::Kind::mapping;
  record.process_id = take<std::uint32_t>(at, end);
  record.thread_id = take<std::uint32_t>(at, end);
  record.start = take<std::uint64_t>(at, end);
  record.length = take<std::uint64_t>(at, end);
  record.file_offset = take<std::uint64_t>(at, end);
  auto identity = take<std::array<std::uint8_t, 24>>(at, end);
  if ((misc & kBuildIdInRecord) != 0 && identity[0] <= 20)
    record.build_id.assign(reinterpret_cast<const char*>(&identity[4]), identity[0]);
  take<std::uint64_t>(at, end);  // protection and flags
  record.text = text_up_to(at, end);
}

bool parse(PerfRecord& record, const perf_event_header& head, const std::uint8_t* at, const std::uint8_t* end) {
  if (head.type == PERF_RECORD_SAMPLE) {
    parse_sample(record, at, end);
    return true;
  }
  if (end - at < 16) return false;
  std::memcpy(&record.time_ns, end - 8, 8);  // sample_id_all: thread and time behind every record
  end -= 16;
  switch (head.type) {
    case PERF_RECORD_MMAP2:
      parse_mapping(record, head.misc, at, end);
      return true;
    case PERF_RECORD_COMM:
      record.kind = PerfRecord::Kind::name;
      record.by_exec = (head.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      record.process_id = take<std::uint32_t>(at, end);
      record.thread_id = take<std::uint32_t>(at, end);
      record.text = text_up_to(at, end);
      return true;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      record.kind = head.type == PERF_RECORD_FORK ? PerfRecord::Kind::fork : PerfRecord::Kind::exit;
      record.process_id = take<std::uint32_t>(at, end);
      record.parent_id = take<std::uint32_t>(at, end);
      record.thread_id = take<std::uint32_t>(at, end);
      return true;
    case PERF_RECORD_LOST:
      record.kind = PerfRecord::Kind::lost;
      take<std::uint64_t>(at, end);
      record.lost = take<std::uint64_t>(at, end);
      return true;
    default:
      return false;
  }
}

}  // namespace

namespace {

// Of a process that does not run yet, its one thread, whose children inherit the events.
std::vector<pid_t> threads_of(pid_t process, bool running) {
  if (!running) return {process};
  std::vector<pid_t> threads;
  std::error_code ignored;  // it has ended: none
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", ignored))
    threads.push_back(static_cast<pid_t>(std::atoi(entry.path().filename().c_str())));
  return threads;
}

// An event is a file for each thread, CPU and kind.
void allow_many_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

Result<std::unique_ptr<PerfSampler>> PerfSampler::open(pid_t process, const Options& options) {
  auto sampler = std::unique_ptr<PerfSampler>(new PerfSampler);
  sampler->every_fault_ = options.every_fault;
  sampler->data_bytes_most_ = options.buffer_bytes;
  if (options.running) allow_many_files();
  long cpus = sysconf(_SC_NPROCESSORS_CONF);
  // A thread that starts while we look is a child of one that we have, or will be found in the next round.
  std::set<pid_t> known;
  for (bool fresh = true; std::exchange(fresh, false);)
    for (pid_t thread : threads_of(process, options.running)) {
      if (!known.insert(thread).second) continue;
      fresh = options.running;
      for (int cpu = 0; cpu < cpus; ++cpu)
        if (Status opened = sampler->open_cpu(thread, cpu, options); !opened) return std::unexpected(opened.error());
    }
  if (known.empty()) return std::unexpected(Error::make(ESRCH, "process %d", static_cast<int>(process)));
  if (sampler->buffers_.empty())
    return std::unexpected(Error::make(ENODEV, "no CPU lets its page faults be sampled"));
  return sampler;
}

Status PerfSampler::open_cpu(pid_t thread, int cpu, const Options& options) {
  perf_event_attr attr = attributes(options);
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.inherit = 1;
  attr.disabled = attr.enable_on_exec = options.running ? 0 : 1;
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
  attr.build_id = build_ids_ ? 1 : 0;
  attr.exclude_kernel = user_only_ ? 1 : 0;
  attr.watermark = 1;
  attr.wakeup_watermark = 128 * 1024;
  long file = open_event(attr, thread, cpu);
  if (file < 0 && errno == EINVAL && build_ids_) {  // before Linux 5.12: the files are asked for theirs
    build_ids_ = false;
    return open_cpu(thread, cpu, options);
  }
  if (file < 0 && errno == EACCES && !user_only_) {
    user_only_ = true;
    return open_cpu(thread, cpu, options);
  }
  if (file < 0 && (errno == ENODEV || (errno == ESRCH && options.running))) return {};  // CPU off, or thread ended
  if (file < 0) return std::unexpected(Error::make(errno, "the kernel does not let page faults be sampled"));
  auto buffer = std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& one) { return one.cpu == cpu; });
  if (buffer == buffers_.end()) {
    if (Status made = add_buffer(cpu, static_cast<int>(file)); !made) return made;
    buffer = buffers_.end() - 1;
  } else {
    ioctl(static_cast<int>(file), PERF_EVENT_IOC_SET_OUTPUT, buffer->file);
    buffer->others.push_back(static_cast<int>(file));
  }
  return open_samples(attr, thread, cpu, *buffer, options);
}

// Takes the file.
Status PerfSampler::add_buffer(int cpu, int file) {
  // As much as the user may lock: 8 MiB as root, else 512 KiB (kernel.perf_event_mlock_kb).
  std::size_t most = data_bytes_ != 0 ? data_bytes_ : data_bytes_most_,
              least = data_bytes_ != 0 ? data_bytes_ : kBufferLeast;
  void* memory = MAP_FAILED;
  for (std::size_t bytes = most; memory == MAP_FAILED && bytes >= least; bytes /= 2) {
    memory = mmap(nullptr, kPageSize + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) data_bytes_ = bytes;
  }
  if (memory == MAP_FAILED) {
    Error error = Error::make(errno, "the kernel gives no buffer for sampled page faults");
    close(file);
    return std::unexpected(error);
  }
  buffers_.push_back({cpu, file, static_cast<std::uint8_t*>(memory), {}});
  return {};
}

// A fault that was tried again is minor or major to the kernel, depending on which of its locks it was tried under
// (mm_account_fault). So both are sampled, into one buffer. Both come when the fault is over; the event of all page
// faults comes when it begins, and could not tell how long it took. A fault that ends in a signal is neither.
Status PerfSampler::open_samples(perf_event_attr attr, pid_t thread, int cpu, Buffer& buffer,
                                 const Options& options) {
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.build_id = 0;
  auto open_one = [&](std::uint64_t event, std::uint64_t period, std::vector<int>& events) {
    attr.config = event;
    attr.sample_period = period;
    long file = open_event(attr, thread, cpu);
    if (file < 0) return false;
    ioctl(static_cast<int>(file), PERF_EVENT_IOC_SET_OUTPUT, buffer.file);
    buffer.others.push_back(static_cast<int>(file));
    events.push_back(static_cast<int>(file));
    return true;
  };
  std::vector<std::uint64_t> faults{PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MAJ};
  if (options.by_signal) faults = {PERF_COUNT_SW_PAGE_FAULTS};
  std::size_t periods = options.every_fault ? 1 : std::size(kPeriods);
  for (std::size_t i = 0; i < periods; ++i)
    for (std::uint64_t event : faults)
      if (!open_one(event, options.every_fault ? 1 : kPeriods[i], dense_events_) && event == faults[0] &&
          errno != ESRCH)
        return std::unexpected(Error::make(errno, "the kernel does not let page faults be sampled"));
  if (options.every_fault) return {};
  attr.disabled = 1;
  attr.enable_on_exec = 0;
  for (std::uint64_t event : faults)
    for (std::uint64_t period : kSparsePeriods) has_sparse_ = has_sparse_ && open_one(event, period, sparse_events_);
  return {};
}

const double PerfSampler::kSparseFewer = faults_each(kSparsePeriods) / faults_each(kPeriods);

// An event's file stands for those that threads inherited, too.
bool PerfSampler::sample_sparsely(bool sparsely) {
  if (every_fault_ || !has_sparse_) return false;
  if (sparsely == sparse_) return true;
  for (int file : sparsely ? dense_events_ : sparse_events_) ioctl(file, PERF_EVENT_IOC_DISABLE, 0);
  for (int file : sparsely ? sparse_events_ : dense_events_) ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
  sparse_ = sparsely;
  switched_ns_ = now_ns();
  return true;
}

// Of what is in the buffers: the recorder empties them more often than it switches.
double PerfSampler::weight_at(std::uint64_t time_ns) const {
  if (every_fault_) return 1;
  bool sparse = time_ns < switched_ns_ ? !sparse_ : sparse_;
  return sparse ? faults_each(kSparsePeriods) : faults_each(kPeriods);
}

PerfSampler::~PerfSampler() {
  for (const Buffer& buffer : buffers_) {
    munmap(buffer.memory, kPageSize + data_bytes_);
    for (int other : buffer.others) close(other);
    close(buffer.file);
  }
}

void PerfSampler::wait(int milliseconds, int or_readable) const {
  std::vector<pollfd> files = {{or_readable, POLLIN, 0}};
  for (const Buffer& buffer : buffers_) files.push_back({buffer.file, POLLIN, 0});
  // A buffer whose process is gone is ready at once and always: then this is a plain sleep.
  if (poll(files.data(), files.size(), milliseconds) <= 0) return;
  for (const pollfd& file : files)
    if ((file.revents & POLLIN) != 0 && (file.revents & POLLHUP) == 0) return;
  poll(files.data(), 1, milliseconds);
}

void PerfSampler::drain(std::vector<PerfRecord>& out) {
  for (const Buffer& buffer : buffers_) drain_one(buffer, out);
}

void PerfSampler::drain_one(const Buffer& buffer, std::vector<PerfRecord>& out) {
  auto* page = reinterpret_cast<perf_event_mmap_page*>(buffer.memory);
  const std::uint8_t* data = buffer.memory + kPageSize;
  // acquire and release: as perf_event_open(2) asks of readers of data_head and writers of data_tail
  std::uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  std::uint64_t tail = page->data_tail;
  std::vector<std::uint8_t> bytes;
  while (head - tail >= sizeof(perf_event_header)) {
    perf_event_header header;
    auto copy = [&](void* to, std::uint64_t from, std::size_t size) {
      std::size_t at = from % data_bytes_, first = std::min(size, data_bytes_ - at);
      std::memcpy(to, data + at, first);
      std::memcpy(static_cast<std::uint8_t*>(to) + first, data, size - first);
    };
    copy(&header, tail, sizeof header);
    if (header.size < sizeof header || header.size > head - tail) break;
    bytes.resize(header.size);
    copy(bytes.data(), tail, header.size);
    tail += header.size;
    PerfRecord record;
    if (!parse(record, header, bytes.data() + sizeof header, bytes.data() + bytes.size())) continue;
    record.weight = weight_at(record.time_ns);
    out.push_back(std::move(record));
  }
  std::atomic_ref(page->data_tail).store(tail, std::memory_order_release);
}

namespace {

// Faults on fresh pages of our own, ns of CPU each: what other threads run in between does not count.
std::uint64_t fault_cost_ns(std::size_t pages) {
  void* memory = mmap(nullptr, bytes_of_pages(pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, bytes_of_pages(pages), MADV_NOHUGEPAGE);
  std::uint64_t start = thread_cpu_ns();
  for (std::size_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[bytes_of_pages(i)] = 1;
  std::uint64_t cost = (thread_cpu_ns() - start) / pages;
  munmap(memory, bytes_of_pages(pages));
  return cost;
}

}  // namespace

std::uint64_t measure_sample_cost_ns(const PerfSampler::Options& options) {
  constexpr std::size_t kPages = 50, kBuffer = 1 * kMiB;  // room for all of a round
  constexpr int kRounds = 20;                             // many short ones: some are disturbed by nothing
  perf_event_attr attr = attributes(options);
  attr.sample_period = 1;
  attr.exclude_kernel = 1;
  long file = open_event(attr, 0, -1);
  if (file < 0) return 0;
  void* memory = mmap(nullptr, kPageSize + kBuffer, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(file), 0);
  std::uint64_t with = 0, without = 0;
  for (int round = 0; round < kRounds; ++round) {
    ioctl(static_cast<int>(file), PERF_EVENT_IOC_DISABLE, 0);
    std::uint64_t plain = fault_cost_ns(kPages);
    if (memory != MAP_FAILED) {
      auto* page = static_cast<perf_event_mmap_page*>(memory);
      std::atomic_ref(page->data_tail).store(page->data_head);
    }
    ioctl(static_cast<int>(file), PERF_EVENT_IOC_ENABLE, 0);
    std::uint64_t sampled = fault_cost_ns(kPages);
    with = round == 0 ? sampled : std::min(with, sampled);
    without = round == 0 ? plain : std::min(without, plain);
  }
  if (memory != MAP_FAILED) munmap(memory, kPageSize + kBuffer);
  close(static_cast<int>(file));
  return memory != MAP_FAILED && with > without ? with - without : 0;
}

int perf_event_paranoid() {
  int value = -1;
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> value;
  return value;
}

}  // namespace hinterland::trace
