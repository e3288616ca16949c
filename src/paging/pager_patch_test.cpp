// Elements that are scattered, and arrays that are filled, at the server (offload_scatter.hpp), over the real kernel,
// real servers and the public header: the same as over ordinary memory, whatever state the pages are in; nothing that
// others write to the same pages is lost, and nothing is there but what was or is to be, whatever happens meanwhile.
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
#include "hinterland/offload_scatter.hpp"
#include "paging/testing/offload_places.hpp"
#include "paging/testing/offload_twins.hpp"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"
#include "server/server_test_support.hpp"

namespace hinterland::testing {
namespace {

constexpr std::size_t kOnPage = kPageSize / sizeof(std::uint64_t);

template <typename T>
class Scattered {
 public:
  Scattered(Pager& pager, std::uint64_t seed) : pager_(pager), twins_(pager), random_(seed) {
    for (std::size_t i = 0; i < twins_.here.size(); ++i) twins_.set(i, static_cast<T>(random_()));
  }
  // "" or what differs.
  std::string step() {
    const std::size_t size = twins_.here.size(), first = random_() % size;
    const std::size_t n = random_() % 3 == 0 ? random_() % 3000 : random_() % (size - first);
    const std::size_t count = std::min(n, size - first);
    const auto far = twins_.far.subspan(first, count), here = twins_.here.subspan(first, count);
    switch (random_() % 4) {
      case 0:
      case 1:
        if (count == 0) return "";
        scatter(far, here);
        return look(far, here) ? "" : "scatter";
      case 2: {
        const T value = random_() % 3 == 0 ? T{} : static_cast<T>(random_());
        hl::far::fill(far, value);
        std::fill(here.begin(), here.end(), value);
        return look(far, here) ? "" : "fill";
      }
      default:
        disturb();
        return "";
    }
  }
  std::string check() const {
    return std::memcmp(twins_.far.data(), twins_.here.data(), twins_.here.size_bytes()) == 0 ? "" : "it differs";
  }

 private:
  // Few or many, anywhere or close together, so that many are on one page and some are written twice.
  void scatter(std::span<T> far, std::span<T> here) {
    static constexpr std::array<std::size_t, 4> kMost = {10, 1000, 20'000, 100'000};
    std::vector<std::size_t> indices(random_() % kMost[random_() % kMost.size()]);
    const std::size_t within = random_() % 3 == 0 ? std::min<std::size_t>(far.size(), 20'000) : far.size();
    std::vector<T> values(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      indices[i] = random_() % within;
      values[i] = static_cast<T>(random_());
      here[indices[i]] = values[i];
    }
    hl::far::scatter(values, indices, far);
  }
  // Some of it, so that the rest stays far.
  bool look(std::span<T> far, std::span<T> here) {
    for (int i = 0; i < 20 && !here.empty(); ++i) {
      const std::size_t at = random_() % here.size();
      if (far[at] != here[at]) return false;
    }
    return true;
  }
  void disturb() {
    for (int i = 0; i < 100; ++i) {
      const std::size_t at = random_() % twins_.here.size();
      if (random_() % 2 == 0)
        twins_.set(at, static_cast<T>(random_()));
      else if (*const_cast<const volatile T*>(&twins_.far[at]) != twins_.here[at])
        twins_.set(at, T{2});
    }
    if (random_() % 3 != 0) return;
    const std::size_t page = random_() % (kBytes / kPageSize), on_page = kPageSize / sizeof(T);
    pager_.advise(reinterpret_cast<std::uintptr_t>(twins_.far.data()) + page * kPageSize, kPageSize, MADV_DONTNEED);
    std::fill_n(twins_.here.begin() + static_cast<std::ptrdiff_t>(page * on_page), on_page, T{});
  }
  Pager& pager_;
  Twins<T> twins_;
  std::mt19937_64 random_;
};

class PagerPatch : public OffloadPlaces {};

TEST_P(PagerPatch, ResultsAreThoseOfOrdinaryMemory) {
  auto run = [this]<typename T>(T) {
    run_with_real_pager(options_, [this](Pager& pager) -> std::string {
      Scattered<T> scattered(pager, seed_);
      for (int round = 0; round < 2 * kRounds; ++round)
        if (std::string wrong = scattered.step(); !wrong.empty()) return wrong + ", round " + std::to_string(round);
      const std::string wrong = scattered.check();
      return wrong.empty() ? audit(pager, true) : wrong;
    });
  };
  run(std::uint32_t{});
  run(std::int64_t{});
}

// Four threads; of each page a quarter of the elements is each one's own. Two scatter theirs, two write theirs by
// loops: whoever comes second must not undo what the first has done.
TEST_P(PagerPatch, WhatOthersWriteToTheSamePagesStays) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    constexpr std::size_t kThreads = 4, kOwn = 4000;
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < kThreads; ++number)
      threads.emplace_back([&, number] {
        std::mt19937_64 random(seed_ + number);
        for (int round = 0; round < 1 + kRounds / 8; ++round) {
          std::vector<std::size_t> indices;
          std::vector<std::uint64_t> values;
          for (std::size_t i = 0; i < kOwn; ++i) {
            indices.push_back(random() % (twins.far.size() / kThreads) * kThreads + number);
            values.push_back(random());
          }
          for (std::size_t i = 0; i < kOwn; ++i) twins.here[indices[i]] = values[i];
          if (number % 2 == 0)
            hl::far::scatter(values, indices, twins.far);
          else
            for (std::size_t i = 0; i < kOwn; ++i) twins.far[indices[i]] = values[i];
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < twins.far.size(); ++i)
      if (twins.far[i] != twins.here[i]) return "element " + std::to_string(i);
    return audit(pager, true);
  });
}

INSTANTIATE_TEST_SUITE_P(Places, PagerPatch,
                         ::testing::Values(OffloadPlace{"server", true, true},
                                           OffloadPlace{"serverBySignal", true, true, true}),
                         name_of);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // loops
INSTANTIATE_TEST_SUITE_P(MorePlaces, PagerPatch,
                         ::testing::Values(OffloadPlace{"serverThatOffersNothing", true, false},
                                           OffloadPlace{"mem", false, false}),
                         name_of);
#endif

// --- at a server only

sigjmp_buf g_lost_in_patch;
void on_bus_in_patch(int) { siglongjmp(g_lost_in_patch, 1); }

class PagerPatchServer : public AtOffloadServer {};

PageState state_of(Pager& pager, const void* address) {
  Pager::Impl& parts = PagerParts::of(pager);
  const PageIndex page = parts.core.window.index_of(reinterpret_cast<std::uintptr_t>(address));
  return parts.core.pages.is_used(page) ? parts.core.pages[page].load().state() : PageState::untouched;
}
std::vector<std::uint64_t*> far_pages_of(Pager& pager, std::span<std::uint64_t> memory) {
  std::vector<std::uint64_t*> far;
  for (std::size_t at = 0; at < memory.size(); at += kOnPage)
    if (state_of(pager, &memory[at]) == PageState::far) far.push_back(&memory[at]);
  return far;
}

TEST_F(PagerPatchServer, PagesStayFarAndNothingIsFetched) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.set(i, i);
    const auto far = far_pages_of(pager, twins.far);
    if (far.size() < 1000) return "too little is far: " + std::to_string(far.size());
    std::vector<std::size_t> indices;
    for (const std::uint64_t* page : far)
      for (std::size_t i : {3u, 500u, 511u}) indices.push_back(static_cast<std::size_t>(page - twins.far.data()) + i);
    const std::vector<std::uint64_t> values(indices.size(), 77);
    hl::far::scatter(values, indices, twins.far);
    for (const std::size_t index : indices) twins.here[index] = 77;
    const std::size_t still = far_pages_of(pager, twins.far).size();
    if (still + 64 < far.size()) return std::to_string(still) + " of " + std::to_string(far.size()) + " stay far";
    for (std::size_t i = 0; i < twins.far.size(); ++i)
      if (twins.far[i] != twins.here[i]) return "element " + std::to_string(i);
    return audit(pager, true);
  });
}

TEST_F(PagerPatchServer, WhatIsFilledIsFarAndWhatIsZeroIsNowhere) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    const auto half = twins.far.first(twins.far.size() / 2);
    hl::far::fill(half, 5);  // nobody has been there
    if (far_pages_of(pager, half).size() + 2 < half.size() / kOnPage) return "it is not far";
    hl::far::fill(twins.far, 7);
    for (std::size_t i = 0; i < twins.far.size(); ++i)
      if (twins.far[i] != 7) return "element " + std::to_string(i);
    const std::size_t far = far_pages_of(pager, twins.far).size();
    hl::far::fill(twins.far, 0);
    if (const auto still = far_pages_of(pager, twins.far).size(); still > far / 10)
      return std::to_string(still) + " of " + std::to_string(far) + " are still far";
    for (std::size_t i = 0; i < twins.far.size(); ++i)
      if (twins.far[i] != 0) return "zero " + std::to_string(i);
    return audit(pager, true);
  });
}

// Each round, all elements of a page get the round's number. Children see each page as it was before or after.
TEST_F(PagerPatchServer, ForksMeanwhileHaveOldOrNew) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's allocator stays locked in a child that is forked while another thread allocates";
#endif
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    std::vector<std::size_t> indices;
    for (std::size_t at = 0; at < twins.far.size(); at += kOnPage)
      for (std::size_t i : {1u, 200u, 400u}) indices.push_back(at + i);
    auto right = [&](std::span<std::uint64_t> memory) {
      for (std::size_t at = 0; at < memory.size(); at += kOnPage)
        if (memory[at + 1] > 1'000'000 || memory[at + 2] != 0 || memory[at + 199] != 0) return false;
      return true;
    };
    std::atomic<bool> stop{false};
    std::thread other([&] {
      for (std::uint64_t round = 1; !stop.load(); ++round) {
        const std::vector<std::uint64_t> values(indices.size(), round);
        hl::far::scatter(values, indices, twins.far);
      }
    });
    std::string wrong;
    for (int round = 0; round < 3 && wrong.empty(); ++round) {
      if (int error = pager.before_fork(); error != 0) wrong = "before_fork: " + std::to_string(error);
      pid_t child = fork();
      if (child == 0) {
        pager.after_fork_in_child();
        bool fine = right(twins.far);
        const std::vector<std::uint64_t> values(indices.size(), 123'456);
        hl::far::scatter(values, indices, twins.far);
        for (const std::size_t index : indices) fine = fine && twins.far[index] == 123'456;
        _exit(fine && right(twins.far) ? 0 : 1);
      }
      pager.after_fork_in_parent(child > 0);
      int status = -1;
      waitpid(child, &status, 0);
      if (status != 0) wrong = "the child: " + std::to_string(status);
    }
    stop.store(true);
    other.join();
    for (const std::size_t index : indices)
      if (wrong.empty() && (twins.far[index] == 123'456 || twins.far[index] != twins.far[1]))
        wrong = "the parent, element " + std::to_string(index);
    return wrong.empty() ? audit(pager, false) : wrong;
  });
}

// In the midst of it. What can still be read is what was there before, or what was scattered.
TEST_F(PagerPatchServer, AServerThatDiesMeanwhileLeavesOldOrNewOrTheSignal) {
  run_with_real_pager(options_, [this](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.far[i] = i;
    std::vector<std::size_t> indices;
    for (std::size_t at = 0; at < twins.far.size(); at += kOnPage) indices.push_back(at + 9);
    signal(SIGBUS, on_bus_in_patch);
    std::atomic<int> times{0};
    std::thread killer([&] {
      while (times.load() < 3) std::this_thread::yield();
      kill(server_->pid(), SIGKILL);
    });
    if (sigsetjmp(g_lost_in_patch, 1) == 0)
      for (;; times.fetch_add(1)) {
        for (std::size_t i = 0; i < 20 * kOnPage; ++i)  // some of it is local
          if (i % kOnPage != 9) twins.far[i] = i;
        std::vector<std::uint64_t> values(indices);
        for (std::uint64_t& value : values) value += std::uint64_t{1} << 32;
        hl::far::scatter(values, indices, twins.far);
      }
    times.store(3);
    killer.join();
    static std::atomic<std::size_t> page;  // not in registers, which the jump brings back
    static std::atomic<int> readable, lost;
    for (; page.load() < kBytes / kPageSize; page.fetch_add(1)) {
      if (sigsetjmp(g_lost_in_patch, 1) != 0) {
        lost.fetch_add(1);
        continue;
      }
      const std::size_t at = page.load() * kOnPage;
      for (std::size_t i = at; i < at + kOnPage; ++i)
        if (twins.far[i] != i && (i != at + 9 || twins.far[i] != i + (std::uint64_t{1} << 32)))
          return "element " + std::to_string(i);
      readable.fetch_add(1);
    }
    signal(SIGBUS, SIG_DFL);
    return lost.load() > 0 && readable.load() > 0
               ? ""
               : std::to_string(lost.load()) + " lost, readable " + std::to_string(readable.load());
  });
}

// Past the header: what other languages may call.
TEST_F(PagerPatchServer, WhatMakesNoSenseIsRefused) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
    for (std::size_t i = 0; i < twins.far.size(); ++i) twins.far[i] = i;
    const auto far = far_pages_of(pager, twins.far);
    if (far.size() < 500) return "too little is far";
    std::array<unsigned char, 2> done{};
    auto ask = [&](std::uint32_t element, hl_patched_page page, std::vector<hl_patch> patches) {
      done = {};
      return pager.patch(element, {&page, 1}, patches, done.data());
    };
    auto number_of = [&](const std::uint64_t* page) { return static_cast<std::uint64_t>(page - twins.far.data()); };
    std::uint64_t* const page = far[20];
    if (int error = ask(8, {page, 0, 0, 1, 0, 0}, {{9, 511, 0}}); error != 0) return std::to_string(error);
    if (done[0] != 1 || page[511] != 9 || page[510] != number_of(page) + 510) return "an element";
    if (ask(4, {far[100], 0, 0, 1, 0, 0}, {{~std::uint64_t{0}, 1023, 0}}) != 0 || done[0] != 1) return "half of one";
    if (far[100][511] != (UINT64_MAX << 32 | (number_of(far[100]) + 511))) return "which half";
    if (ask(8, {far[200], 5, 0, 1, 1, 0}, {{9, 0, 0}}) != 0 || done[0] != 1) return "filled, and an element";
    if (far[200][0] != 9 || far[200][1] != 5) return "filled with what";
    std::uint64_t* const target = far[400];
    if (ask(8, {target + 1, 0, 0, 1, 0, 0}, {{9, 0, 0}}) != EINVAL) return "no page begins there";
    if (ask(8, {target, 0, 0, 0, 0, 0}, {}) != EINVAL) return "nothing to do";
    if (ask(8, {target, 0, 0, 2, 0, 0}, {{9, 0, 0}}) != EINVAL) return "more elements than there are";
    if (ask(8, {target, 0, UINT32_MAX, 1, 0, 0}, {{9, 0, 0}}) != EINVAL) return "elements beyond all";
    if (ask(8, {target, 0, 0, 1, 0, 0}, {{9, 512, 0}}) != EINVAL) return "on the next page";
    if (ask(4, {target, 0, 0, 1, 0, 0}, {{9, 1024, 0}}) != EINVAL) return "small ones on the next page";
    if (ask(2, {target, 0, 0, 1, 0, 0}, {{9, 0, 0}}) != EINVAL) return "elements of two bytes";
    if (ask(8, {target, 0, 0, 1, 2, 0}, {{9, 0, 0}}) != EINVAL) return "fills twice";
    if (ask(8, {target, 0, 0, 1, 0, 1}, {{9, 0, 0}}) != EINVAL) return "reserved";
    if (ask(8, {target, 0, 0, 1, 0, 0}, {{9, 0, 1}}) != EINVAL) return "an element's reserved";
    const std::vector<hl_patched_page> many(HL_COMPUTE_MAX + 1, {target, 0, 0, 0, 1, 0});
    if (pager.patch(8, many, {}, done.data()) != EINVAL) return "too many pages";
    const std::vector<hl_patch> elements(HL_PATCHES_MAX + 1);
    if (pager.patch(8, std::span(many).first(1), elements, done.data()) != EINVAL) return "too many elements";
    // The same page twice: once it is done, and once it is the caller's.
    const std::array<hl_patched_page, 2> twice{{{far[300], 0, 0, 1, 0, 0}, {far[300], 0, 1, 1, 0, 0}}};
    const std::array<hl_patch, 2> two{{{1, 0, 0}, {2, 1, 0}}};
    done = {};
    if (pager.patch(8, twice, two, done.data()) != 0 || done[0] != 1 || done[1] != 0) return "twice";
    if (far[300][0] != 1 || far[300][1] != number_of(far[300]) + 1) return "twice, but not as one";
    // Not far memory: nothing is done, and nothing touched.
    alignas(kPageSize) static std::array<unsigned char, kPageSize> here;
    if (ask(8, {here.data(), 7, 0, 0, 1, 0}, {}) != 0 || done[0] != 0) return "ordinary memory";
    // Memory that must not be written, or must not leave.
    const auto address = reinterpret_cast<std::uintptr_t>(target);
    pager.protect(address, kPageSize, PROT_READ);
    for (std::uint64_t fill : {7u, 0u})
      if (ask(8, {target, fill, 0, 0, 1, 0}, {}) != 0 || done[0] != 0) return "read-only";
    if (ask(8, {target, 0, 0, 1, 0, 0}, {{9, 0, 0}}) != 0 || done[0] != 0) return "an element of a read-only page";
    pager.protect(address, kPageSize, PROT_READ | PROT_WRITE);
    if (target[0] != number_of(target)) return "it was written all the same";
    return audit(pager, true);
  });
}

TEST_F(PagerPatchServer, BadArgumentsAreExceptionsAndNothingIsWritten) {
  run_with_real_pager(options_, [](Pager& pager) -> std::string {
    Twins<std::uint64_t> twins(pager);
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
    const auto out = twins.far.subspan(1000, 10'000);
    std::vector<std::size_t> indices = {1, 2, 10'000};
    std::vector<std::uint64_t> values = {7, 7, 7};
    if (!refuses(outside, [&] { hl::far::scatter(values, indices, out); })) return "an element beyond the end";
    indices.back() = 3;
    values.pop_back();
    if (!refuses(invalid, [&] { hl::far::scatter(values, indices, out); })) return "too few values";
    if (!refuses(invalid, [&] { hl::far::scatter(out, indices, out); })) return "out of itself";
    const std::span<const std::size_t> inside(reinterpret_cast<const std::size_t*>(&out[9'999]), 1);
    if (!refuses(invalid, [&] { hl::far::scatter(values, inside, out); })) return "indices in it";
    hl::far::scatter(values, {}, out);
    hl::far::fill(out.first(0), 7);
    for (const std::uint64_t element : twins.far.first(12'000))
      if (element != 0) return "something was written";
    return "";
  });
}

}  // namespace
}  // namespace hinterland::testing
