// For tests of what is computed on far pages: far memory beside ordinary memory that holds the same.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "hinterland/hint.h"
#include "paging/testing/page_machine.hpp"
#include "paging/testing/real_pager.hpp"
#include "server/server_test_support.hpp"

namespace hinterland::testing {

inline constexpr std::size_t kBytes = 10 * kMiB;  // more than twice the budget

#if defined(__SANITIZE_THREAD__)
inline constexpr int kRounds = 3;  // ten times as slow
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kRounds = 6;
#else
inline constexpr int kRounds = 40;
#endif

inline ServerOptions offload_server_options() {
  ServerOptions options = small_server(16);
#ifdef __SANITIZE_THREAD__
  // What orders a page's write before its read on another connection is the client, which is another process: the
  // sanitizer does not see it.
  options.threads = 1;
#endif
  return options;
}

inline std::uint64_t far_pages(Pager& pager) {
  Pager::Impl& parts = PagerParts::of(pager);
  std::uint64_t far = 0;
  parts.for_each_page([&](PageIndex, PageCell& cell) { far += cell.load().state() == PageState::far; });
  return far;
}

// Far memory, and ordinary memory with the same contents, whose pages begin at the same elements.
template <typename T>
struct Twins {
  explicit Twins(Pager& pager)
      : far(reinterpret_cast<T*>(pager.map(kBytes, kPageSize, PROT_READ | PROT_WRITE)), kBytes / sizeof(T)),
        here(static_cast<T*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
             far.size()) {
    // From here on there is a runtime for the header.
#ifdef __SANITIZE_THREAD__
    // The header reads the map by plain loads, which may be out of date (hint.h): here all hints ask the runtime.
    void* nothing_there =
        mmap(nullptr, pager.places_bytes() / kPageSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nothing_there == MAP_FAILED) std::abort();
    hl_runtime.map = static_cast<const unsigned char*>(nothing_there);
#else
    hl_runtime.map = reinterpret_cast<const unsigned char*>(pager.hint_map());
#endif
    hl_runtime.base = pager.places_base();
    hl_runtime.size = pager.places_bytes();
  }
  void set(std::size_t at, T value) { far[at] = here[at] = value; }
  std::span<const T> part(std::size_t first, std::size_t count) const { return far.subspan(first, count); }
  std::span<const T> part_here(std::size_t first, std::size_t count) const { return here.subspan(first, count); }
  std::span<T> far, here;
};

template <typename T>
T any_value(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    if (random() % 500 == 0) return std::numeric_limits<T>::quiet_NaN();
    if (random() % 500 == 0) return random() % 2 == 0 ? T{0} : -T{0};
    return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(random())) / 1e15);
  } else {
    return random() % 2 == 0 ? static_cast<T>(random() % 100) : static_cast<T>(random() >> 25);
  }
}

// Four threads at once, each `rounds` times: what differs(twins, random) says first, or what an audit does.
template <typename T, typename Differs>
std::string ask_at_once(Pager& pager, const Twins<T>& twins, std::uint64_t seed, int rounds, const Differs& differs) {
  std::array<std::string, 4> wrong;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < wrong.size(); ++number)
    threads.emplace_back([&, number] {
      std::mt19937_64 own(seed + number);
      for (int round = 0; round < rounds && wrong[number].empty(); ++round) wrong[number] = differs(twins, own);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong)
    if (!each.empty()) return each;
  return audit(pager, true);
}

}  // namespace hinterland::testing
