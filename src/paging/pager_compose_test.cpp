// Copies that stay at the server (offload_writes.hpp) over the real kernel, real servers and the public header: the
// same as over ordinary memory, whatever state the pages are in; and nothing but what was there or is to be there,
// whatever happens meanwhile.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "far/test_support.hpp"
#include "hinterland/offload_writes.hpp"
#include "paging/testing/offload_places.hpp"
#include "paging/testing/offload_twins.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"
#include "server/server_test_support.hpp"

namespace hinterland::testing {
namespace {

template <typename T>
bool same(std::span<const T> a, std::span<const T> b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<std::size_t> any_indices(std::size_t count, std::mt19937_64& random) {
  static constexpr std::array<std::size_t, 6> kOneIn = {1, 2, 3, 20, 60, 900};
  const std::size_t one_in = kOneIn[random() % kOneIn.size()];
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < count; ++i)
    if (random() % one_in == 0) indices.push_back(i);
  return indices;
}

// One array that is read, one that is written, each with its twin.
template <typename T>
class Both {
 public:
  Both(Pager& pager, std::uint64_t seed) : pager_(pager), from_(pager), to_(pager), random_(seed) {
    for (std::size_t i = 0; i < from_.here.size(); ++i) from_.set(i, static_cast<T>(random_()));
    for (std::size_t i = 0; i < to_.here.size(); i += 100) to_.set(i, static_cast<T>(i));
  }
  // "" or what differs.
  std::string step() {
    const std::size_t size = from_.here.size(), first = random_() % size;
    const std::size_t count = random_() % 3 == 0 ? random_() % 3000 : random_() % (size - first);
    const std::size_t n = std::min(count, size - first);
    switch (random_() % 4) {
      case 0:
      case 1: {
        const std::size_t to = random_() % (size - n + 1);
        hl::far::copy(from_.part(first, n), to_.far.subspan(to, n));
        hl::far::copy(from_.part_here(first, n), to_.here.subspan(to, n));
        return look(to, n) ? "" : "copy";
      }
      case 2: {
        const auto indices = any_indices(n, random_);
        const std::size_t to = random_() % (size - indices.size() + 1);
        hl::far::select(from_.part(first, n), indices, to_.far.subspan(to));
        hl::far::select(from_.part_here(first, n), indices, to_.here.subspan(to));
        return look(to, indices.size()) ? "" : "select";
      }
      default:
        disturb(from_);
        disturb(to_);
        return "";
    }
  }
  std::string check() const {
    if (!same<T>(from_.far, from_.here)) return "what was read has changed";
    return same<T>(to_.far, to_.here) ? "" : "what was written differs";
  }

 private:
  // Some of it, so that the rest stays far.
  bool look(std::size_t first, std::size_t count) {
    for (int i = 0; i < 20 && count != 0; ++i) {
      const std::size_t at = first + random_() % count;
      if (to_.far[at] != to_.here[at]) return false;
    }
    return true;
  }
  void disturb(Twins<T>& twins) {
    for (int i = 0; i < 100; ++i) {
      const std::size_t at = random_() % twins.here.size();
      if (random_() % 2 == 0)
        twins.set(at, static_cast<T>(random_()));
      else if (*const_cast<const volatile T*>(&twins.far[at]) == T{1})
        twins.set(at, T{2});
    }
    if (random_() % 3 != 0) return;
    const std::size_t page = random_() % (kBytes / kPageSize), on_page = kPageSize / sizeof(T);
    pager_.advise(reinterpret_cast<std::uintptr_t>(twins.far.data()) + page * kPageSize, kPageSize, MADV_DONTNEED);
    std::fill_n(twins.here.begin() + static_cast<std::ptrdiff_t>(page * on_page), on_page, T{});
  }
  Pager& pager_;
  Twins<T> from_, to_;
  std::mt19937_64 random_;
};

class PagerCompose : public OffloadPlaces {};

TEST_P(PagerCompose, ResultsAreThoseOfOrdinaryMemory) {
  auto run = [this]<typename T>(T) {
    run_with_real_pager(options_, [this](Pager& pager) -> std::string {
      Both<T> both(pager, seed_);
      for (int round = 0; round < 2 * kRounds; ++round)
        if (std::string wrong = both.step(); !wrong.empty()) return wrong + ", round " + std::to_string(round);
      const std::string wrong = both.check();
      return wrong.empty() ? audit(pager, true) : wrong;
    });
  };
  run(std::uint32_t{});
  run(std::int64_t{});
}

// Four threads, each with a part of its own, whose first and last pages are others' as well.
TEST_P(PagerCompose, ThreadsCopyAtOnce) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<std::uint64_t> from(pager), to(pager);
    for (std::size_t i = 0; i < from.far.size(); ++i) from.far[i] = i;
    std::array<std::string, 4> wrong;
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < wrong.size(); ++number)
      threads.emplace_back([&, number] {
        std::mt19937_64 random(seed_ + number);
        const std::size_t part = to.far.size() / wrong.size() - 10;
        const auto mine = to.far.subspan(number * part + 5, part);
        for (int round = 0; round < 6 && wrong[number].empty(); ++round) {
          const std::size_t first = random() % (from.far.size() - part);
          hl::far::copy(from.part(first, part), mine);
          for (std::size_t i = 0; i < part; i += 1 + random() % 500)
            if (mine[i] != first + i) wrong[number] = "element " + std::to_string(i);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& each : wrong)
      if (!each.empty()) return each;
    return audit(pager, true);
  });
}

INSTANTIATE_TEST_SUITE_P(Places, PagerCompose,
                         ::testing::Values(OffloadPlace{"server", true, true},
                                           OffloadPlace{"serverBySignal", true, true, true}),
                         name_of);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // loops
INSTANTIATE_TEST_SUITE_P(MorePlaces, PagerCompose,
                         ::testing::Values(OffloadPlace{"serverThatOffersNothing", true, false},
                                           OffloadPlace{"mem", false, false}),
                         name_of);
#endif

// --- at a server only

sigjmp_buf g_lost_here;
void on_bus_here(int) { siglongjmp(g_lost_here, 1); }

class PagerComposeServer : public AtOffloadServer {};

constexpr std::size_t kOnPage = kPageSize / sizeof(std::uint64_t);
constexpr std::uint64_t kOld = 1u << 20;  // added to what is copied: what was there before

// Calls visit(its elements) for each page that is far now.
void each_far_page(Pager& pager, std::span<std::uint64_t> memory, auto&& visit) {
  Pager::Impl& parts = PagerParts::of(pager);
  for (std::size_t at = 0; at < memory.size(); at += kOnPage) {
    const PageIndex page = parts.core.window.index_of(reinterpret_cast<std::uintptr_t>(&memory[at]));
    if (parts.core.pages.is_used(page) && parts.core.pages[page].load().state() == PageState::far)
      visit(memory.subspan(at, std::min(kOnPage, memory.size() - at)));
  }
}
std::size_t far_pages_of(Pager& pager, std::span<std::uint64_t> memory) {
  std::size_t far = 0;
  each_far_page(pager, memory, [&far](std::span<std::uint64_t>) { ++far; });
  return far;
}

TEST_F(PagerComposeServer, CopiesOfFarPagesAreFarAndNothingIsFetched) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> from(pager), to(pager);
    for (std::size_t i = 0; i < from.far.size(); ++i) from.far[i] = i;
    const std::size_t count = 4 * kMiB / 8;
    const std::size_t far = far_pages_of(pager, from.far.first(count));
    if (far < 500) return "too little is far: " + std::to_string(far);
    hl::far::copy(from.part(0, count), to.far);
    const std::size_t copied = far_pages_of(pager, to.far.first(count));
    if (copied + 64 < far) return std::to_string(copied) + " copied of " + std::to_string(far);
    if (far_pages_of(pager, from.far.first(count)) + 64 < far) return "they were fetched";
    // Every third, from the middle of a page on.
    std::vector<std::size_t> indices;
    for (std::size_t i = 100; i < count; i += 3) indices.push_back(i);
    hl::far::select(from.part(0, count), indices, to.far.subspan(count + 7));
    const std::size_t selected = far_pages_of(pager, to.far.subspan(count + 7, indices.size()));
    if (selected + 64 < far / 3) return std::to_string(selected) + " selected of " + std::to_string(far / 3);
    for (std::size_t i = 0; i < count; ++i)
      if (to.far[i] != i) return "copied element " + std::to_string(i);
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (to.far[count + 7 + i] != indices[i]) return "selected element " + std::to_string(i);
    return audit(pager, true);
  });
}

// A thread reads and writes what is copied over, all the while: each element is what was there, what is copied, or
// what it wrote itself.
TEST_F(PagerComposeServer, WhoTouchesTheTargetMeanwhileSeesOldOrNew) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the race is the program's own, and what this test is about";
#endif
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> from(pager), to(pager);
    for (std::size_t i = 0; i < from.far.size(); ++i) from.far[i] = i;
    for (std::size_t i = 0; i < to.far.size(); ++i) to.far[i] = i + kOld;
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> seen{0};
    std::thread other([&] {
      std::mt19937_64 random(1);
      while (!stop.load()) {
        const std::size_t at = random() % to.far.size();
        const std::uint64_t value = *const_cast<const volatile std::uint64_t*>(&to.far[at]);
        if (value != at && value != at + kOld && value != at + 2 * kOld) seen.store(value + 1);
        if (random() % 4 == 0) *const_cast<volatile std::uint64_t*>(&to.far[at]) = at + 2 * kOld;
      }
    });
    for (int round = 0; round < 10; ++round) hl::far::copy(from.part(0, from.far.size()), to.far);
    stop.store(true);
    other.join();
    if (seen.load() != 0) return "it has seen " + std::to_string(seen.load() - 1);
    for (std::size_t i = 0; i < to.far.size(); ++i)
      if (to.far[i] != i && to.far[i] != i + 2 * kOld) return "element " + std::to_string(i);
    return audit(pager, true);
  });
}

// Children read all of it, while another thread of the parent goes on copying.
TEST_F(PagerComposeServer, ForksMeanwhileHaveOldOrNew) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's allocator stays locked in a child that is forked while another thread allocates";
#endif
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> from(pager), to(pager);
    for (std::size_t i = 0; i < from.far.size(); ++i) from.far[i] = i;
    for (std::size_t i = 0; i < to.far.size(); ++i) to.far[i] = i + kOld;
    auto right = [&] {
      for (std::size_t i = 0; i < from.far.size(); i += 100)
        if (from.far[i] != i || (to.far[i] != i && to.far[i] != i + kOld)) return false;
      return true;
    };
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop.load()) hl::far::copy(from.part(0, from.far.size()), to.far);
    });
    std::string wrong;
    for (int round = 0; round < 5 && wrong.empty(); ++round) {
      if (int error = pager.before_fork(); error != 0) wrong = "before_fork: " + std::to_string(error);
      pid_t child = fork();
      if (child == 0) {
        pager.after_fork_in_child();
        bool fine = right();
        hl::far::copy(from.part(0, 200 * kOnPage), to.far);
        fine = fine && to.far[7 * kOnPage] == 7 * kOnPage && right();
        _exit(fine ? 0 : 1);
      }
      pager.after_fork_in_parent(child > 0);
      int status = -1;
      waitpid(child, &status, 0);
      if (status != 0) wrong = "the child: " + std::to_string(status);
    }
    stop.store(true);
    other.join();
    if (wrong.empty() && !right()) wrong = "the parent";
    return wrong.empty() ? audit(pager, false) : wrong;
  });
}

// In the midst of copying. Each element that can still be read is what was there or what was copied. Some of what is
// copied is local each time, and so is its copy: these pages outlive the server.
TEST_F(PagerComposeServer, AServerThatDiesMeanwhileLeavesOldOrNewOrTheSignal) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<std::uint64_t> from(pager), to(pager);
    for (std::size_t i = 0; i < from.far.size(); ++i) from.far[i] = i;
    for (std::size_t i = 0; i < to.far.size(); ++i) to.far[i] = i + kOld;
    signal(SIGBUS, on_bus_here);
    std::atomic<int> copies{0};
    std::thread killer([&] {
      while (copies.load() < 3) std::this_thread::yield();
      kill(server_->pid(), SIGKILL);
    });
    if (sigsetjmp(g_lost_here, 1) == 0)
      for (;; copies.fetch_add(1)) {
        for (std::size_t i = 0; i < 20 * kOnPage; ++i) from.far[i] = i;
        hl::far::copy(from.part(0, from.far.size()), to.far);
      }
    copies.store(3);
    killer.join();
    static std::atomic<std::size_t> page;  // not in registers, which the jump brings back
    static std::atomic<int> readable, lost;
    for (; page.load() < kBytes / kPageSize; page.fetch_add(1)) {
      if (sigsetjmp(g_lost_here, 1) != 0) {
        lost.fetch_add(1);
        continue;
      }
      const std::size_t at = page.load() * kOnPage;
      for (std::size_t i = at; i < at + kOnPage; ++i)
        if (to.far[i] != i && to.far[i] != i + kOld) return "element " + std::to_string(i);
      readable.fetch_add(1);
    }
    signal(SIGBUS, SIG_DFL);
    return lost.load() > 0 && readable.load() > 0
               ? ""
               : std::to_string(lost.load()) + " lost, readable " + std::to_string(readable.load());
  });
}

// Past the header: what other languages may call.
TEST_F(PagerComposeServer, WhatMakesNoSenseIsRefused) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> from(pager), to(pager);
    for (std::size_t i = 0; i < from.far.size(); ++i) from.far[i] = i;
    const std::span<std::uint64_t> out = to.far.subspan(100 * kOnPage);  // nobody has touched it
    unsigned char* const target = reinterpret_cast<unsigned char*>(out.data());
    std::span<std::uint64_t> far;
    each_far_page(pager, from.far, [&far](std::span<std::uint64_t> page) { far = page; });
    if (far.empty()) return "nothing is far";
    const std::uint64_t value = static_cast<std::uint64_t>(far.data() - from.far.data());  // of its first element
    const hl_composed_part whole{far.data(), nullptr, kPageSize, 0};
    std::array<unsigned char, 2> done{};
    auto ask = [&](std::uint32_t element, hl_composed_page page, std::vector<hl_composed_part> parts) {
      done = {};
      return pager.compose(element, {&page, 1}, parts, done.data());
    };
    if (int error = ask(0, {target, 0, 1}, {whole}); error != 0) return "a page: " + std::to_string(error);
    if (done[0] != 1) return "a page is not done";
    if (out[5] != value + 5) return "a page: " + std::to_string(out[5]);
    if (ask(0, {target + 8, 0, 1}, {whole}) != EINVAL) return "no page begins there";
    if (ask(0, {target, 0, 0}, {whole}) != EINVAL) return "of nothing";
    if (ask(0, {target, 0, 2}, {whole}) != EINVAL) return "more parts than there are";
    if (ask(0, {target, UINT32_MAX, 1}, {whole}) != EINVAL) return "parts beyond all";
    if (ask(0, {target, 0, 2}, {whole, whole}) != EINVAL) return "more than a page";
    if (ask(0, {target, 0, 1}, {{far.data() + 1, nullptr, kPageSize, 0}}) != EINVAL) return "on two pages";
    if (ask(0, {target, 0, 1}, {{far.data(), nullptr, 8, 0}}) != EINVAL) return "less than a page";
    if (ask(8, {target, 0, 1}, {whole}) != EINVAL) return "without a mask";
    if (ask(2, {target, 0, 1}, {whole}) != EINVAL) return "elements of two bytes";
    std::array<unsigned char, 64> mask;
    mask.fill(255);
    if (ask(0, {target, 0, 1}, {{far.data(), mask.data(), kPageSize, 0}}) != EINVAL) return "with a mask";
    if (ask(8, {target, 0, 1}, {{far.data() + 1, mask.data(), kPageSize - 8, 0}}) != EINVAL) return "a bit more";
    // Where nobody has been either.
    unsigned char *const other = target + 10 * kPageSize, *const second = target + 20 * kPageSize;
    if (ask(8, {other, 0, 1}, {{far.data(), mask.data(), kPageSize, 0}}) != 0 || done[0] != 1) return "a mask";
    const std::vector<hl_composed_page> many(HL_COMPUTE_MAX + 1, {target, 0, 1});
    if (pager.compose(0, many, {&whole, 1}, done.data()) != EINVAL) return "too many";
    // Not far memory: nothing is done, and nothing touched.
    alignas(kPageSize) static std::array<unsigned char, kPageSize> here;
    if (ask(0, {here.data(), 0, 1}, {whole}) != 0 || done[0] != 0) return "to ordinary memory";
    if (ask(0, {target, 0, 1}, {{here.data(), nullptr, kPageSize, 0}}) != 0 || done[0] != 0) return "from there";
    // Memory that must not be written, or must not leave.
    const auto address = reinterpret_cast<std::uintptr_t>(second);
    pager.protect(address, kPageSize, PROT_READ);
    if (ask(0, {second, 0, 1}, {whole}) != 0 || done[0] != 0) return "read-only";
    pager.protect(address, kPageSize, PROT_READ | PROT_WRITE);
    if (int error = pager.lock(address, kPageSize, MLOCK_ONFAULT); error != 0)
      return "lock: " + std::to_string(error);
    if (ask(0, {second, 0, 1}, {whole}) != 0 || done[0] != 0) return "locked";
    pager.unlock(address, kPageSize);
    if (out[20 * kOnPage] != 0) return "it was written all the same";
    return audit(pager, true);
  });
}

TEST_F(PagerComposeServer, BadArgumentsAreExceptionsAndNothingIsWritten) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> from(pager), to(pager);
    const auto all = from.part(0, 10'000);
    auto refuses = []<typename Error>(Error*, auto&& call) {
      try {
        call();
      } catch (const Error&) {
        return true;
      }
      return false;
    };
    std::invalid_argument* const invalid = nullptr;
    std::out_of_range* const outside = nullptr;
    std::vector<std::size_t> indices = {1, 2, 10'000};
    to.far[0] = 7;
    if (!refuses(invalid, [&] { hl::far::copy(all, to.far.first(9'999)); })) return "no room";
    if (!refuses(invalid, [&] { hl::far::copy(all, from.far.subspan(9'999)); })) return "overlap";
    if (!refuses(outside, [&] { hl::far::select(all, indices, to.far); })) return "an element beyond the end";
    indices = {1, 1};
    if (!refuses(invalid, [&] { hl::far::select(all, indices, to.far); })) return "twice";
    indices = {2, 1};
    if (!refuses(invalid, [&] { hl::far::select(all, indices, to.far); })) return "descending";
    if (!refuses(invalid, [&] { hl::far::select(all, indices, to.far.first(1)); })) return "no room for those";
    if (!refuses(invalid, [&] { hl::far::select(all, indices, from.far.subspan(1)); })) return "into itself";
    hl::far::copy(all.first(0), to.far.first(0));
    hl::far::select(all, {}, to.far);
    return to.far[0] == 7 ? "" : "something was written";
  });
}

}  // namespace
}  // namespace hinterland::testing
