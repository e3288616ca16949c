// Fibers on threads read and write a table that does not fit into local memory, with hints of every kind, and check
// each value. What is printed is the same natively and far.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "hinterland/fiber.hpp"
#include "hinterland/hint.hpp"

namespace {

using namespace hl::fibers;

constexpr std::size_t kRows = 2048, kRowBytes = 8192, kFibers = 64;  // 16 MiB

struct Row {
  std::uint64_t number;
  std::uint64_t visits;
  std::uint64_t filler[kRowBytes / 8 - 2];
};

std::uint64_t filler_of(std::uint64_t row, std::uint64_t at) { return (row * 0x9E3779B97F4A7C15u) ^ at; }

void fail(const char* what, std::size_t row) {
  std::printf("row %zu: %s\n", row, what);
  std::fflush(stdout);
  std::_Exit(1);
}

void check(const Row& row, std::size_t number) {
  if (row.number != number) fail("is another", number);
  for (std::size_t at = 0; at < std::size(row.filler); at += 61)
    if (row.filler[at] != filler_of(number, at)) fail("is damaged", number);
}

// Each fiber has rows of its own to count visits in, and reads everybody's.
void visit(Row* rows, std::size_t fiber_number, std::uint64_t* sum) {
  std::uint64_t random = fiber_number + 1;
  for (int step = 0; step < 200; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    std::size_t other = (random >> 33) % kRows;
    switch (step % 4) {
      case 0:
        hl::hint(&rows[other], {.size = sizeof(Row)});
        break;
      case 1:
        hl::read(&rows[other]);
        break;
      case 2:
        hl::hint(&rows[other], {.rdahead = step % 8 == 2 ? 4 : -4});
        break;
      default:
        break;  // unhinted: the thread blocks
    }
    check(rows[other], other);
    std::size_t own = (random >> 40) % (kRows / kFibers) * kFibers + fiber_number;
    hl::write(&rows[own]);
    ++rows[own].visits;
    *sum += other;
  }
}

}  // namespace

int main() {
  auto* rows = static_cast<Row*>(std::aligned_alloc(4096, kRows * sizeof(Row)));
  for (std::size_t i = 0; i < kRows; ++i) {
    rows[i].number = i;
    rows[i].visits = 0;
    for (std::size_t at = 0; at < std::size(rows[i].filler); ++at) rows[i].filler[at] = filler_of(i, at);
  }
  std::vector<std::uint64_t> sums(kFibers + 1);
  std::thread outside;
  run({.workers = 3}, [&] {
    outside = std::thread([&] {  // an ordinary thread beside them, whose hints block
      std::uint64_t random = 99;
      for (int step = 0; step < 200; ++step) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        std::size_t row = (random >> 33) % kRows;
        hl::hint(&rows[row], {.size = sizeof(Row)});
        check(rows[row], row);
        sums[kFibers] += row;
      }
    });
    std::vector<fiber> fibers;
    for (std::size_t i = 0; i < kFibers; ++i) fibers.emplace_back([&, i] { visit(rows, i, &sums[i]); });
    for (fiber& each : fibers) each.join();
  });
  outside.join();
  std::uint64_t visits = 0, total = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    check(rows[i], i);
    visits += rows[i].visits;
  }
  for (std::uint64_t sum : sums) total += sum;
  std::printf("visits %llu, sum %llu\n", static_cast<unsigned long long>(visits),
              static_cast<unsigned long long>(total));
  std::free(rows);
}
