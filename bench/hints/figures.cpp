#include "hints/figures.hpp"

#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <thread>

#include "access/memory.hpp"
#include "hinterland/hint.hpp"
#include "hints/fetching.hpp"

namespace hints_bench {
namespace {

using access_bench::kPageBytes;
using access_bench::Memory;
using access_bench::Random;
using Clock = std::chrono::steady_clock;

constexpr int kAccessesBetweenLooks = 128;  // the clock is read seldom enough not to count

bool runtime_is_there() { return hl__runtime()->size != 0; }

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// --- pages that are there -----------------------------------------------------------------------------------------

// Pointers to bytes of a few pages, in no order that a prefetcher knows; what a lookup in a table has, too.
std::vector<char*> pointers_into(Memory& memory) {
  std::vector<char*> pointers(4096);
  Random random(3);
  for (char*& pointer : pointers) pointer = reinterpret_cast<char*>(memory.data()) + random.next() % memory.bytes();
  return pointers;
}

enum class Hinted : std::uint8_t { no, read, write, in_order };

// ns a round of a loop that does nothing but this. noinline: each is compiled as a loop of its own.
template <Hinted kKind>
[[gnu::noinline]] double loop_over(const std::vector<char*>& pointers, std::uint64_t rounds) {
  Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < rounds; ++i)
    for (char* pointer : pointers) {
      if constexpr (kKind == Hinted::read) hl::read(pointer);
      if constexpr (kKind == Hinted::write) hl::write(pointer);
      if constexpr (kKind == Hinted::in_order) hl::seq_read(pointer);
      asm volatile("" : : "r"(pointer));
    }
  return ns_since(start) / static_cast<double>(rounds * pointers.size());
}

template <Hinted kKind>
Measured measure_resident(const Work& work) {
  Memory memory(kKind == Hinted::in_order ? kPageBytes : std::size_t{1} << 20, false);
  memory.fill(access_bench::Content::half, 1);
  std::vector<char*> pointers = pointers_into(memory);
  for (char* pointer : pointers) hl::write(pointer);  // from now on the map knows these pages
  Measured measured;
  measured.with_runtime = runtime_is_there();
  auto rounds = static_cast<std::uint64_t>(work.seconds * 1e9 / 2 / static_cast<double>(pointers.size())) + 1;
  for (int i = 0; i < work.repeat; ++i) {
    double without = loop_over<Hinted::no>(pointers, rounds);
    measured.values.push_back(loop_over<kKind>(pointers, rounds) - without);
    measured.accesses += rounds * pointers.size();
  }
  return measured;
}

// --- pages that are missing ---------------------------------------------------------------------------------------

struct Pattern {
  bool random, write;
  bool skewed = false;  // random by Zipf's law (1.0): a few pages get most of the accesses
};

// One thread's part of the memory, and its loop.
class Loop {
 public:
  Loop(Memory& memory, const Work& work, Pattern pattern, unsigned number)
      : memory_(memory),
        work_(work),
        pattern_(pattern),
        pages_(memory.pages() / work.threads),
        first_(number * pages_),
        random_(number + 1),
        log_pages_(std::log2(static_cast<double>(pages_))) {}

  void run_for(double seconds) {
    Clock::time_point start = Clock::now();
    do {
      for (int i = 0; i < kAccessesBetweenLooks; ++i) touch(next());
      accesses_ += kAccessesBetweenLooks;
    } while (ns_since(start) < seconds * 1e9);
  }
  std::uint64_t accesses() const { return accesses_; }
  std::uint64_t missing() const { return missing_; }

 private:
  std::size_t next() {
    std::uint64_t drawn = random_.next() >> 11;
    if (pattern_.skewed) {
      auto rank = static_cast<std::uint64_t>(std::exp2(static_cast<double>(drawn) * 0x1p-53 * log_pages_));
      return first_ + rank * 0x9E3779B1u % pages_;  // the popular ones lie scattered
    }
    if (pattern_.random) return first_ + drawn % pages_;
    position_ = position_ + 1 == pages_ ? 0 : position_ + 1;
    return first_ + position_;
  }
  void touch(std::size_t page) {
    volatile std::uint64_t* word = memory_.word(page);
    // As the map sees it, which may be out of date. Nothing, where there is no runtime.
    missing_ += hl__is_missing(reinterpret_cast<std::uintptr_t>(word), HL_THERE | HL_ASKED) != 0;
    if (work_.hints) say(word);
    if (word[0] != page) throw std::runtime_error("page " + std::to_string(page) + " came back with other bytes");
    if (pattern_.write) word[1] = word[1] + 1;
  }
  void say(const volatile std::uint64_t* word) {
    if (pattern_.random)
      pattern_.write ? hl::write(word) : hl::read(word);
    else if (work_.read_ahead < 0)
      pattern_.write ? hl::seq_write(word) : hl::seq_read(word);
    else
      hl::hint(word, {.mut = pattern_.write, .rdahead = work_.read_ahead});
  }

  Memory& memory_;
  const Work& work_;
  Pattern pattern_;
  std::size_t pages_, first_, position_ = 0;
  Random random_;
  double log_pages_;
  std::uint64_t accesses_ = 0, missing_ = 0;
};

std::uint64_t major_faults() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_majflt);
}

// Of all threads, user and kernel.
double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Pages paged in between two moments. In order, each page has left when it is reached again. At random, it is what
// the hints' map missed, and, under Linux swap, what the kernel counts.
class PagesIn {
 public:
  PagesIn(const std::vector<Loop>& loops, Pattern pattern) : loops_(loops), pattern_(pattern) {}
  std::uint64_t so_far() const {
    std::uint64_t sum = 0;
    for (const Loop& loop : loops_) sum += pattern_.random ? loop.missing() : loop.accesses();
    return pattern_.random && !runtime_is_there() ? major_faults() : sum;
  }

 private:
  const std::vector<Loop>& loops_;
  Pattern pattern_;
};

std::uint64_t accesses_of(const std::vector<Loop>& loops) {
  std::uint64_t sum = 0;
  for (const Loop& loop : loops) sum += loop.accesses();
  return sum;
}

Measured measure_paging(const Work& work, Pattern pattern) {
  Memory memory(work.size_bytes, false);
  memory.fill(access_bench::Content::half, 1);
  hl::read(memory.data());  // the map is kept from the first hint on
  std::vector<Loop> loops;
  for (unsigned i = 0; i < work.threads; ++i) loops.emplace_back(memory, work, pattern, i);
  PagesIn pages_in(loops, pattern);
  std::vector<std::exception_ptr> failures(work.threads);
  std::barrier together(static_cast<std::ptrdiff_t>(work.threads) + 1);
  std::atomic<bool> failed{false};
  auto run = [&](unsigned number) {
    for (int i = 0; i <= work.repeat; ++i) {
      together.arrive_and_wait();
      try {
        if (!failed) loops[number].run_for(work.seconds);
      } catch (...) {
        failures[number] = std::current_exception();
        failed = true;
      }
      together.arrive_and_wait();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < work.threads; ++i) threads.emplace_back(run, i);
  Measured measured;
  for (int i = 0; i <= work.repeat; ++i) {
    std::uint64_t before = pages_in.so_far(), accesses_before = accesses_of(loops);
    together.arrive_and_wait();
    Clock::time_point start = Clock::now();
    double cpu_before = cpu_ns();
    together.arrive_and_wait();
    double ns = ns_since(start), cpu = cpu_ns() - cpu_before;
    std::uint64_t pages = pages_in.so_far() - before;
    if (i == 0) continue;  // until everything is in its place
    measured.pages_in += pages;
    double of = static_cast<double>(pattern.skewed ? accesses_of(loops) - accesses_before : pages);
    if (pages == 0) throw std::runtime_error("nothing was paged in: run it with less local memory than --size");
    measured.values.push_back(ns / of);
    measured.cpu_values.push_back(cpu / of);
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  measured.accesses = accesses_of(loops);
  measured.with_runtime = runtime_is_there();
  return measured;
}

}  // namespace

const std::vector<Figure>& figures() {
  static const std::vector<Figure> list = {
      {"resident-read", "ns/hint", "a read hint on a page that is there"},
      {"resident-write", "ns/hint", "a write hint on a page that is there"},
      {"resident-in-order", "ns/hint", "a sequential hint on the page of last time"},
      {"random-read", "ns/page", "hint and read a random page; clean pages leave"},
      {"random-write", "ns/page", "hint and change a random page; dirty pages leave"},
      {"skewed-read", "ns/access", "hint and read a random page, by Zipf's law; what the policies are for"},
      {"sequential-read", "ns/page", "hint and read page after page"},
      {"sequential-write", "ns/page", "hint and change page after page"},
      {"fetch-in-order", "ns/page", "hint and read far pages in order, with room for all"},
      {"fetch-random", "ns/page", "hint and read far pages at random, with room for all"},
  };
  return list;
}

Measured measure(const Work& work) {
  if (work.figure == "resident-read") return measure_resident<Hinted::read>(work);
  if (work.figure == "resident-write") return measure_resident<Hinted::write>(work);
  if (work.figure == "resident-in-order") return measure_resident<Hinted::in_order>(work);
  if (work.figure.starts_with("fetch")) return measure_fetching(work);
  bool random = work.figure.starts_with("random"), write = work.figure.ends_with("write");
  if (work.figure == "skewed-read") return measure_paging(work, {.random = true, .write = false, .skewed = true});
  return measure_paging(work, {random, write});
}

}  // namespace hints_bench
