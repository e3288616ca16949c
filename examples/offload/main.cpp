// An array that is far, computed on where it is.
//
//     offload [MIB]     prints what it found, and on standard error how long each took, and the same by a loop
//
// The same with all of it local; under `hinterland run --local 64M --far tcp://...` most of it is far, and the server
// does the work (docs/offload.md).
#include <hinterland/offload.hpp>
#include <hinterland/offload_scatter.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

template <typename Work>
auto timed(const char* name, Work work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::fprintf(stderr, "%-16s %9.2f ms\n", name, took.count());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t mib = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
  std::vector<std::int64_t> prices(mib * 1024 * 1024 / sizeof(std::int64_t));
  for (std::size_t i = 0; i < prices.size(); ++i) prices[i] = static_cast<std::int64_t>(i * 2654435761 % 1000003);

  using hl::far::compare;
  const auto total = timed("sum", [&] { return hl::far::sum(prices); });
  const auto most = timed("max", [&] { return hl::far::max(prices); });
  const auto cheap = timed("count", [&] { return hl::far::count(prices, compare::less, 1000); });
  const auto dear = timed("filter", [&] { return hl::far::filter(prices, compare::greater, 1000000); });
  const auto middle = timed("median", [&] { return hl::far::median(prices); });
  std::vector<std::int64_t> some(dear.size());
  timed("gather", [&] { return hl::far::gather(prices, dear, some), 0; });
  const auto by_loop = timed("sum by a loop", [&] {
    std::int64_t all = 0;
    for (const std::int64_t price : prices) all += price;
    return all;
  });

  // What is dear becomes free.
  std::fill(some.begin(), some.end(), 0);
  const auto first_dear = dear.empty() ? 0 : prices[dear.front()];
  timed("scatter", [&] { return hl::far::scatter(some, dear, prices), 0; });
  const auto without_them = timed("sum", [&] { return hl::far::sum(prices); });

  std::printf("sum %lld, most %lld, median %lld, %zu cheap, %zu dear, of which the first %lld; without these %lld\n",
              static_cast<long long>(total), static_cast<long long>(*most), static_cast<long long>(*middle), cheap,
              dear.size(), static_cast<long long>(first_dear), static_cast<long long>(without_them));
  return by_loop == total ? 0 : 1;
}
