// Far objects: a map of many records, of which a part is local. Runs as it is; under `hinterland run` the rest is
// far. With an argument, it starts the heap itself: that many MiB local, the rest compressed.
//
//     c++ -std=c++20 -O2 main.cpp -o objects                              all local, or under `hinterland run`
//     c++ -std=c++20 -O2 main.cpp -o objects $(pkg-config --cflags --libs hinterland-runtime)        then: ./objects
//     64
#include <hinterland/object_map.hpp>
#include <hinterland/object_vector.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

struct account {
  std::uint64_t balance;
  std::uint32_t changes;
  char name[20];
};

}  // namespace

int main(int argc, char** argv) {
  constexpr std::uint64_t kAccounts = 300'000;
  if (argc > 1 && !hl::far::start({.local_bytes = std::strtoull(argv[1], nullptr, 10) << 20}))
    std::fprintf(stderr, "not linked to libhinterland.so: all objects are local\n");

  hl::far::unordered_map<std::uint64_t, account> accounts;
  for (std::uint64_t i = 0; i < kAccounts; ++i) accounts.insert(i, {i, 0, "somebody"});
  for (std::uint64_t i = 0; i < kAccounts; i += 3)
    accounts.visit(i * 7 % kAccounts, [](account& there) {
      there.balance += 10;
      ++there.changes;
    });
  std::uint64_t balances = 0;
  accounts.for_each([&](std::uint64_t, const account& there) { balances += there.balance; });

  hl::far::vector<double> prices(2'000'000, 0.5);
  for (double& price : prices.walk_mut()) price *= 4;
  double sum = 0;
  for (const double& price : prices.walk(hl::far::use::nontemporal)) sum += price;

  std::printf("%llu in %zu accounts, prices %.0f\n", static_cast<unsigned long long>(balances), accounts.size(), sum);
}
