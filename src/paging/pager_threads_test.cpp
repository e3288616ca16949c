// The pager with the real kernel: threads that shadow every byte, under a budget that holds a third of them, while
// memory is mapped, moved, protected, freed and taken again.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "far/test_support.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::uint64_t kRunNs = 2'500'000'000;
constexpr std::uint32_t kThreads = 4;

// One thread's memory and its shadow. Mapping calls come from the same thread, so what must be there is known.
class Worker {
 public:
  Worker(Pager& pager, std::uint64_t seed, std::uint32_t pages) : pager_(pager), random_(seed), pages_(pages) {
    base_ = static_cast<std::uintptr_t>(pager_.map(bytes_of_pages(pages), kPageSize, kReadWrite));
    shadow_.resize(bytes_of_pages(pages));
  }

  void step() {
    switch (random_() % 64) {
      case 0:
        return drop();
      case 1:
        return decommit_and_commit();
      case 2:
        return map_again();
      case 3:
        return move();
      case 4:
        return protect();
      case 5:
        return through_system_call();
      case 6:
        return stream();
      case 7:
      case 8:
      case 9:
      case 10:
        return hint();
      default:
        return access();
    }
  }
  std::string verify() {
    for (std::uint32_t page = 0; page < pages_; ++page) compare(page);
    return wrong_;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  char* at(std::uint32_t page) { return reinterpret_cast<char*>(base_ + bytes_of_pages(page)); }
  char* shadow_at(std::uint32_t page) { return shadow_.data() + bytes_of_pages(page); }
  void zero(std::uint32_t first, std::uint32_t count) { std::memset(shadow_at(first), 0, bytes_of_pages(count)); }
  void compare(std::uint32_t page) {
    if (!wrong_.empty() || std::memcmp(at(page), shadow_at(page), kPageSize) == 0) return;
    std::size_t byte = 0;
    while (at(page)[byte] == shadow_at(page)[byte] && byte < kPageSize - 1) ++byte;
    char text[160];
    std::snprintf(text, sizeof text, "page %u of %u, byte %zu: %02x, should be %02x, after %s", page, pages_, byte,
                  static_cast<unsigned char>(at(page)[byte]), static_cast<unsigned char>(shadow_at(page)[byte]),
                  last_);
    wrong_ = text;
  }
  // Of its own memory, or of what others map and unmap at this moment.
  void hint() {
    last_ = "hint";
    Hint wanted{.address = base_ + bytes_of_pages(below(pages_)) + below(kPageSize)};
    if (below(4) == 0) wanted.address = pager_.window_base() + random_() % bytes_of_pages(8 * pages_);
    wanted.size = below(2) == 0 ? 8 : bytes_of_pages(below(64));
    wanted.read_ahead = below(4) == 0 ? static_cast<std::int32_t>(below(64)) - 32 : 0;
    wanted.write = below(2) == 0;
    if (below(8) == 0) return pager_.cold(wanted.address, wanted.size);
    below(2) == 0 ? pager_.hint(wanted) : static_cast<void>(pager_.begin_hint(wanted));
  }
  void access() {
    std::uint32_t page = below(pages_);
    if (random_() % 2 == 0) return compare(page);
    std::uint64_t word = random_();
    std::size_t offset = below(kPageSize / 8) * sizeof word;
    std::memcpy(at(page) + offset, &word, sizeof word);
    std::memcpy(shadow_at(page) + offset, &word, sizeof word);
  }
  void stream() {
    std::uint32_t count = 1 + below(100), first = below(pages_ - count + 1);
    for (std::uint32_t page = first; page < first + count; ++page) compare(page);
  }
  std::pair<std::uint32_t, std::uint32_t> range(const char* what, std::uint32_t most) {
    last_ = what;
    std::uint32_t count = 1 + below(most);
    return {below(pages_ - count + 1), count};
  }
  void check(std::intptr_t result, const char* what) {
    if (result < 0 && wrong_.empty()) wrong_ = std::string(what) + " failed: " + std::to_string(result);
  }
  std::uintptr_t address(std::uint32_t page) const { return base_ + bytes_of_pages(page); }

  void drop() {
    auto [first, count] = range("drop", 40);
    check(pager_.advise(address(first), bytes_of_pages(count), MADV_DONTNEED), "advise");
    zero(first, count);
  }
  void decommit_and_commit() {
    auto [first, count] = range("decommit and commit", 40);
    pager_.decommit(address(first), bytes_of_pages(count));
    if (random_() % 2 == 0) usleep(500);
    if (random_() % 2 == 0) {
      pager_.commit(address(first), bytes_of_pages(count));
      return zero(first, count);
    }
    pager_.commit_uncleared(address(first), bytes_of_pages(count));
    std::memcpy(shadow_at(first), at(first), bytes_of_pages(count));
  }
  void map_again() {
    auto [first, count] = range("unmap and map", 60);
    check(pager_.unmap(address(first), bytes_of_pages(count)), "unmap");
    std::intptr_t result = pager_.map_at(address(first), bytes_of_pages(count), kReadWrite, 0, true);
    // Another thread's map() may have taken the hole: then all of it is mapped elsewhere.
    if (result == -EEXIST) return relocate(first, count);
    check(result, "map_at");
    zero(first, count);
  }
  void relocate(std::uint32_t first, std::uint32_t count) {
    if (first > 0) pager_.unmap(base_, bytes_of_pages(first));
    if (first + count < pages_) pager_.unmap(address(first + count), bytes_of_pages(pages_ - first - count));
    std::intptr_t result = pager_.map(bytes_of_pages(pages_), kPageSize, kReadWrite);
    check(result, "map");
    base_ = static_cast<std::uintptr_t>(result);
    zero(0, pages_);
  }
  void move() {
    last_ = "remap";
    std::uint32_t pages = pages_ / 2 + below(pages_);
    std::intptr_t result = pager_.remap(base_, bytes_of_pages(pages_), bytes_of_pages(pages), MREMAP_MAYMOVE, 0);
    if (result == -EFAULT) return;  // unlike pieces, as Linux says
    check(result, "remap");
    if (result < 0) return;
    base_ = static_cast<std::uintptr_t>(result);
    shadow_.resize(bytes_of_pages(pages));
    pages_ = pages;
    if (pages_ < 300 || pages_ > 1500) back_to_size();
  }
  void back_to_size() {
    std::intptr_t result = pager_.remap(base_, bytes_of_pages(pages_), bytes_of_pages(768), MREMAP_MAYMOVE, 0);
    shadow_.resize(bytes_of_pages(768));
    if (result < 0) {  // in pieces: begin anew
      pager_.unmap(base_, bytes_of_pages(pages_));
      pages_ = 768;
      return relocate(0, pages_);
    }
    base_ = static_cast<std::uintptr_t>(result);
    pages_ = 768;
  }
  void protect() {
    auto [first, count] = range("protect", 40);
    check(pager_.protect(address(first), bytes_of_pages(count), random_() % 2 == 0 ? PROT_READ : PROT_NONE),
          "protect");
    usleep(300);
    check(pager_.protect(address(first), bytes_of_pages(count), PROT_READ), "protect");
    compare(first);
    check(pager_.protect(address(first), bytes_of_pages(count), kReadWrite), "protect");
  }
  // A fault taken by the kernel on our behalf, which it does not do in signal mode.
  void through_system_call() {
    auto [first, count] = range("system call", 16);
    int file = memfd_create("hinterland-test", MFD_CLOEXEC);
    std::uint32_t target = below(pages_ - count + 1);
    const bool holds = pager_.faults_by_signal();
    if (holds) pager_.hold_for_call(address(first), bytes_of_pages(count), false);
    if (holds) pager_.hold_for_call(address(target), bytes_of_pages(count), true);
    check(
        pwrite(file, at(first), bytes_of_pages(count), 0) == static_cast<ssize_t>(bytes_of_pages(count)) ? 0 : -errno,
        "pwrite");
    check(
        pread(file, at(target), bytes_of_pages(count), 0) == static_cast<ssize_t>(bytes_of_pages(count)) ? 0 : -errno,
        "pread");
    if (holds) pager_.let_go_after_call(address(first), bytes_of_pages(count));
    if (holds) pager_.let_go_after_call(address(target), bytes_of_pages(count));
    std::memmove(shadow_at(target), shadow_at(first), bytes_of_pages(count));
    close(file);
  }

  Pager& pager_;
  std::mt19937_64 random_;
  std::uint32_t pages_;
  std::uintptr_t base_ = 0;
  std::vector<char> shadow_;
  std::string wrong_;
  const char* last_ = "start";
};

// All threads add to counters in one area: a lost write shows in the sum. And an area that is dropped and replaced
// under the threads: every word there is zero or what belongs there.
struct SharedAreas {
  static constexpr std::uint32_t kCounterPages = 512, kRacyPages = 64;
  std::atomic<std::uint64_t>* counters = nullptr;
  std::uintptr_t racy = 0;
  std::atomic<std::uint64_t> added{0};

  explicit SharedAreas(Pager& pager) {
    counters = reinterpret_cast<std::atomic<std::uint64_t>*>(
        pager.map(bytes_of_pages(kCounterPages), kPageSize, kReadWrite));
    racy = static_cast<std::uintptr_t>(pager.map(bytes_of_pages(kRacyPages), kPageSize, kReadWrite));
  }
  std::atomic<std::uint64_t>& counter(std::uint64_t number) {
    return counters[number % kCounterPages * (kPageSize / 8) + number / 7 % (kPageSize / 8)];
  }
  // Others fault on pages that a hint is bringing at this moment: who is not woken then hangs.
  bool touch(Pager& pager, std::uint64_t random) {
    if (random % 4 == 0) pager.hint({.address = reinterpret_cast<std::uintptr_t>(&counter(random))});
    counter(random).fetch_add(1);
    added.fetch_add(1);
    std::uint64_t index = random % kRacyPages;
    auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(racy + bytes_of_pages(index));
    std::uint64_t seen = word.load();
    if (random % 3 == 0) word.store(index + 0x1234567);
    return seen == 0 || seen == index + 0x1234567;
  }
  std::uint64_t sum() const {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < kCounterPages * (kPageSize / 8); ++i) all += counters[i].load();
    return all;
  }
};

void disturb(Pager& pager, SharedAreas& shared, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uint64_t until = now_ns() + kRunNs;
  while (now_ns() < until) {
    std::uint64_t first = random() % SharedAreas::kRacyPages;
    std::uint64_t count = 1 + random() % (SharedAreas::kRacyPages - first);
    std::uintptr_t address = shared.racy + bytes_of_pages(first);
    if (random() % 2 == 0)
      pager.advise(address, bytes_of_pages(count), MADV_DONTNEED);
    else
      pager.map_at(address, bytes_of_pages(count), kReadWrite, 0, false);
    if (random() % 16 == 0) pager.set_budget((4 + random() % 4) * kMiB);
    usleep(200);
  }
  pager.set_budget(4 * kMiB);
}

std::string hammer(Pager& pager, std::uint64_t seed) {
  SharedAreas shared(pager);
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Worker worker(pager, seed + i, 768);
      std::mt19937_64 random(seed * 31 + i);
      std::uint64_t until = now_ns() + kRunNs;
      while (now_ns() < until && worker.wrong().empty()) {
        worker.step();
        if (!shared.touch(pager, random())) wrong[i] = "a word in the shared area was never written there";
      }
      std::string own = worker.verify();
      if (!own.empty()) wrong[i] = own;
    });
  threads.emplace_back([&] { disturb(pager, shared, seed); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong)
    if (!text.empty()) return text;
  if (shared.sum() != shared.added.load())
    return "lost writes: " + std::to_string(shared.added.load() - shared.sum()) + " of " +
           std::to_string(shared.added.load());
  return audit(pager, true);
}

struct Variant {
  const char* name;
  RealPagerOptions options;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class PagerThreadsTest : public ::testing::TestWithParam<Variant> {};

TEST_P(PagerThreadsTest, EveryByteIsWhatWasWritten) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  std::uint64_t seed = far::testing::test_seed();
  std::fprintf(stderr, "HINTERLAND_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  run_with_real_pager(GetParam().options, [seed](Pager& pager) { return hammer(pager, seed); });
}

INSTANTIATE_TEST_SUITE_P(Variants, PagerThreadsTest,
                         ::testing::Values(Variant{"MemMove", {"mem:", true}}, Variant{"MemCopy", {"mem:", false}},
                                           Variant{"ZmemMove", {"zmem:", true}},
                                           Variant{"ZmemCopy", {"zmem:", false}},
                                           Variant{"SlowMove", {"sim:latency=50us,inner=mem:", true}},
                                           Variant{"SignalMem", {"mem:", true, true}},
                                           Variant{"SignalCopy", {"mem:", false, true}},
                                           Variant{"SignalSlow", {"sim:latency=50us,inner=mem:", true, true}}),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace hinterland::testing
