// A hash table that is far, and many keys that are looked up at a time where it is.
//
//     table [KEYS]     prints what it found, and on standard error how long it took, and the same key by key
//
// Under `hinterland run --local 64M --far tcp://...`, at a server that was started with --operators and the folder of
// lookup.so, each key costs some 100 bytes on the wire; elsewhere its page comes (docs/offload.md).
#include <hinterland/table.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

struct account {
  std::uint64_t number;
  std::int64_t cents;
  char name[24];
};

std::uint64_t key_of(std::uint64_t number) { return number * 0x9e3779b97f4a7c15u; }

template <typename Work>
std::int64_t timed(const char* name, Work work) {
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t result = work();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::fprintf(stderr, "%-16s %9.2f ms\n", name, took.count());
  return result;
}

std::int64_t sum_of(const std::vector<std::optional<account>>& accounts) {
  std::int64_t all = 0;
  for (const std::optional<account>& each : accounts) all += each ? each->cents : -1;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500'000;
  hl::far::table<account> accounts(keys);
  {
    std::vector<std::uint64_t> numbers(keys);
    for (std::uint64_t i = 0; i < keys; ++i) numbers[i] = key_of(i);
    accounts.insert_or_assign(
        numbers, [](std::size_t i) { return account{i, static_cast<std::int64_t>(i % 1000), "somebody"}; });
  }

  // Of those that are asked for, one in ten is not there.
  std::vector<std::uint64_t> wanted(20'000);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = key_of(i % 10 == 9 ? keys + i : i * 2654435761 % keys);
  std::vector<std::optional<account>> found(wanted.size());
  const std::int64_t together = timed("together", [&] {
    accounts.find(wanted, found);
    return sum_of(found);
  });
  const std::int64_t one_by_one = timed("one by one", [&] {
    for (std::size_t i = 0; i < wanted.size(); ++i) found[i] = accounts.find(wanted[i]);
    return sum_of(found);
  });
  std::printf("%zu accounts; the sum of those that were asked for: %lld\n", accounts.size(),
              static_cast<long long>(together));
  return together == one_by_one ? 0 : 1;
}
