#include "floor/primitives.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "floor/calls.hpp"

namespace hinterland::bench {
namespace {

// A registered range, and memory to fill it from.
struct Ground {
  explicit Ground(const Settings& settings, bool write_protect = false)
      : target(settings.primitive_bytes), source(settings.primitive_bytes) {
    std::memset(source.data(), 0x5a, source.bytes());
    faults.add(target, write_protect);
  }
  void fill() { faults.copy(target.data(), source.data(), target.bytes()); }
  void empty() { discard(target.data(), target.bytes()); }

  Faults faults;
  Mapping target, source;
};

// `prepare` (not timed) and `run` (timed) again and again; nanoseconds of `run` over `units`.
template <typename Prepare, typename Run>
std::vector<double> repeated(const Settings& settings, double units, Prepare prepare, Run run) {
  std::vector<double> values;
  for (int i = 0; i < settings.repeat + 1; ++i) {
    prepare();
    double started = now_ns();
    run();
    double spent = now_ns() - started;
    if (i > 0) values.push_back(spent / units);  // the first one warms up
  }
  return values;
}

std::vector<double> null_call(const Settings& settings) {
  constexpr int kCalls = 100'000;
  return repeated(
      settings, kCalls, [] {},
      [] {
        for (int i = 0; i < kCalls; ++i) syscall(SYS_getppid);
      });
}

// Pages in random order out of memory larger than the caches, into one that stays warm.
std::vector<double> cold_copy(const Settings& settings) {
  Mapping source(settings.total_bytes), target(kPageSize);
  for (std::size_t i = 0; i < source.pages(); ++i) std::memset(source.page(i), static_cast<int>(i | 1), kPageSize);
  constexpr std::size_t kCopies = 20'000;
  Random random(1);
  return repeated(
      settings, kCopies, [] {},
      [&] {
        for (std::size_t i = 0; i < kCopies; ++i) {
          std::memcpy(target.data(), source.page(random.below(source.pages())), kPageSize);
          asm volatile("" : : "r"(target.data()) : "memory");
        }
      });
}

std::vector<double> copy(const Settings& settings, std::size_t run) {
  Ground ground(settings);
  return repeated(
      settings, static_cast<double>(ground.target.pages()), [&] { ground.empty(); },
      [&] {
        for (std::size_t i = 0; i < ground.target.pages(); i += run)
          ground.faults.copy(ground.target.page(i), ground.source.page(i), bytes_of_pages(run));
      });
}

std::vector<double> zero(const Settings& settings, std::size_t run) {
  Ground ground(settings);
  return repeated(
      settings, static_cast<double>(ground.target.pages()), [&] { ground.empty(); },
      [&] {
        for (std::size_t i = 0; i < ground.target.pages(); i += run)
          ground.faults.zero(ground.target.page(i), bytes_of_pages(run));
      });
}

// There and back again, so that no repetition has to fill memory anew.
std::vector<double> move(const Settings& settings, std::size_t run) {
  Ground ground(settings);
  if (!ground.faults.can_move()) throw Unavailable("this kernel has no UFFDIO_MOVE (Linux 6.8)");
  Mapping other(settings.primitive_bytes);
  ground.faults.add(other);
  ground.fill();
  const Mapping *from = &ground.target, *to = &other;
  return repeated(
      settings, static_cast<double>(other.pages()), [&] {},
      [&] {
        for (std::size_t i = 0; i < other.pages(); i += run)
          ground.faults.move(to->page(i), from->page(i), bytes_of_pages(run));
        std::swap(from, to);
      });
}

// Out of memory fresh from the kernel, which nobody else can have held (ADR 0036): taken, filled and given away.
std::vector<double> move_fresh(const Settings& settings, std::size_t run) {
  Ground ground(settings);
  if (!ground.faults.can_move()) throw Unavailable("this kernel has no UFFDIO_MOVE (Linux 6.8)");
  std::size_t bytes = bytes_of_pages(run);
  Mapping fresh(bytes);
  return repeated(
      settings, static_cast<double>(ground.target.pages()), [&] { ground.empty(); },
      [&] {
        for (std::size_t i = 0; i < ground.target.pages(); i += run) {
          if (madvise(fresh.data(), bytes, MADV_POPULATE_WRITE) != 0)
            throw Unavailable("this kernel has no MADV_POPULATE_WRITE (Linux 5.14)");
          std::memcpy(fresh.data(), ground.source.page(i), bytes);
          ground.faults.move(ground.target.page(i), fresh.data(), bytes);
        }
      });
}

std::vector<double> protect(const Settings& settings, bool on, std::size_t run) {
  Ground ground(settings, true);
  ground.fill();
  std::size_t pages = ground.target.pages();
  return repeated(
      settings, static_cast<double>(pages),
      [&] { ground.faults.protect(ground.target.data(), ground.target.bytes(), !on); },
      [&] {
        for (std::size_t i = 0; i < pages; i += run)
          ground.faults.protect(ground.target.page(i), bytes_of_pages(std::min(run, pages - i)), on);
      });
}

std::vector<double> discard_runs(const Settings& settings, std::size_t run) {
  Ground ground(settings);
  return repeated(
      settings, static_cast<double>(ground.target.pages()), [&] { ground.fill(); },
      [&] {
        for (std::size_t i = 0; i < ground.target.pages(); i += run)
          discard(ground.target.page(i), bytes_of_pages(run));
      });
}

// Scattered pages, `batch` of them a call.
std::vector<double> discard_scattered(const Settings& settings, std::size_t batch) {
  if (!can_discard_vectors()) throw Unavailable("process_madvise on oneself takes no DONTNEED here (Linux 6.13)");
  Ground ground(settings);
  std::size_t pages = ground.target.pages();
  std::vector<iovec> ranges;
  for (std::size_t i = 0; i < pages; ++i)
    ranges.push_back({ground.target.page(i * 4093 % pages), kPageSize});  // 4093 is prime: every page once
  return repeated(
      settings, static_cast<double>(pages), [&] { ground.fill(); },
      [&] {
        for (std::size_t i = 0; i < pages; i += batch)
          discard(std::span(ranges).subspan(i, std::min(batch, pages - i)));
      });
}

// A thread that runs on another CPU, so that unmapping has to interrupt it.
class Neighbour {
 public:
  Neighbour() {
    if (processors().size() < 2) throw Unavailable("there is only one CPU");
    thread_ = std::thread([this] {
      pin_to(processors()[1]);
      while (!end_.load(std::memory_order_relaxed)) asm volatile("pause");
    });
  }
  ~Neighbour() {
    end_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

std::vector<double> discard_beside_thread(const Settings& settings, std::size_t batch) {
  Neighbour neighbour;
  return batch == 1 ? discard_runs(settings, 1) : discard_scattered(settings, batch);
}

std::vector<double> pagemap(const Settings& settings) {
  Ground ground(settings);
  ground.fill();
  int descriptor = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("/proc/self/pagemap", errno);
  std::size_t pages = ground.target.pages();
  std::size_t first = reinterpret_cast<std::uintptr_t>(ground.target.data()) / kPageSize;
  auto values = repeated(
      settings, static_cast<double>(pages), [] {},
      [&] {
        std::uint64_t entry = 0;
        for (std::size_t i = 0; i < pages; ++i)
          if (pread(descriptor, &entry, sizeof entry, static_cast<off_t>((first + i) * sizeof entry)) != sizeof entry)
            fail("reading pagemap", errno);
      });
  close(descriptor);
  return values;
}

using Measure = std::vector<double> (*)(const Settings&, std::size_t);

void add_sizes(std::vector<Measurement>& list, const std::string& name, Measure measure,
               std::initializer_list<std::size_t> sizes) {
  for (std::size_t size : sizes)
    list.push_back({"primitive/" + name + "/" + std::to_string(size), "ns/page",
                    [measure, size](const Settings& settings) { return measure(settings, size); }});
}

}  // namespace

std::vector<Measurement> primitive_measurements() {
  std::vector<Measurement> list = {{"primitive/null-call", "ns/call", null_call},
                                   {"primitive/memcpy-cold-page", "ns/page", cold_copy}};
  add_sizes(list, "uffdio-copy", copy, {1, 4, 16, 64});
  add_sizes(list, "uffdio-move", move, {1, 4, 16, 64});
  add_sizes(list, "uffdio-move-fresh", move_fresh, {4, 16, 64});
  add_sizes(list, "uffdio-zeropage", zero, {1, 16});
  for (bool on : {true, false}) {
    std::string name = on ? "primitive/write-protect-set/" : "primitive/write-protect-clear/";
    list.push_back({name + "1", "ns/page", [on](const Settings& settings) { return protect(settings, on, 1); }});
    list.push_back({name + "range", "ns/page",
                    [on](const Settings& settings) { return protect(settings, on, ~std::size_t{0}); }});
  }
  add_sizes(list, "madvise-dontneed", discard_runs, {1, 16, 64});
  add_sizes(list, "process-madvise-dontneed", discard_scattered, {1, 16, 64, 256});
  add_sizes(list, "dontneed-beside-a-running-thread", discard_beside_thread, {1, 64, 256});
  list.push_back({"primitive/pagemap-read", "ns/page", pagemap});
  return list;
}

}  // namespace hinterland::bench
