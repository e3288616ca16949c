// Fibers that read and write far memory without hints, where they have declared that faults may park them (signal
// mode; in others they block). Every value is checked; what is printed is the same natively and far.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hinterland/fiber.hpp"
#include "hinterland/hint.h"

namespace {

using namespace hl::fibers;

constexpr std::size_t kPage = 4096, kPages = 4096, kWords = kPage / 8;  // 16 MiB
constexpr std::size_t kFibers = 400;
std::uint64_t* g_memory;

std::uint64_t value_of(std::size_t page, std::size_t word) { return (page * 0x9E3779B97F4A7C15u) ^ (word << 20); }

void fail(const char* what, std::size_t page) {
  std::printf("page %zu: %s\n", page, what);
  std::fflush(stdout);
  std::_Exit(1);
}

// Over mem: and zmem: a page is there at once, and no other fiber has to run.
bool faults_can_park() {
  const char *mode = std::getenv("HINTERLAND_FAULT"), *far = std::getenv("HINTERLAND_FAR");
  return &hl_runtime != nullptr && mode != nullptr && std::strcmp(mode, "signal") == 0 && far != nullptr &&
         std::strncmp(far, "sim:", 4) == 0;
}

// One worker: more than one fiber can be at its access only where the others have left it in the midst of theirs.
void fibers_wait_together() {
  std::atomic<int> inside{0};
  int most = 0;
  run({.workers = 1}, [&] {
    std::vector<fiber> fibers;
    for (std::size_t i = 0; i < 64; ++i)
      fibers.emplace_back([&, i] {
        faults_may_park declared;
        for (std::size_t page = i; page < kPages; page += 64) {
          most = std::max(most, ++inside);
          std::uint64_t seen = static_cast<volatile std::uint64_t*>(g_memory)[page * kWords + 5];
          --inside;
          if (seen != value_of(page, 5)) fail("is damaged", page);
        }
      });
    for (fiber& each : fibers) each.join();
  });
  bool parked = most > 1;
  std::printf("faults park where they can: %s\n", parked || !faults_can_park() ? "yes" : "no");
}

// Each reads anywhere, and counts in pages of its own, on three workers; the page of a counter leaves meanwhile.
void visit(std::size_t number, std::uint64_t& sum) {
  faults_may_park declared;
  std::uint64_t random = number + 1;
  for (int step = 0; step < 40; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    std::size_t page = (random >> 33) % kPages, word = 1 + (random >> 20) % (kWords / 2);
    if (g_memory[page * kWords + word] != value_of(page, word)) fail("is damaged", page);
    ++g_memory[(number * 4 + static_cast<std::size_t>(step) % 4) * kWords + kWords - 1];
    sum += page;
  }
}

}  // namespace

int main() {
  g_memory = static_cast<std::uint64_t*>(std::aligned_alloc(kPage, kPages * kPage));
  for (std::size_t page = 0; page < kPages; ++page)
    for (std::size_t word = 0; word < kWords; ++word)
      g_memory[page * kWords + word] = word == kWords - 1 ? 0 : value_of(page, word);
  fibers_wait_together();
  std::vector<std::uint64_t> sums(kFibers);
  run({.workers = 3}, [&] {
    std::vector<fiber> fibers;
    for (std::size_t i = 0; i < kFibers; ++i) fibers.emplace_back([&sums, i] { visit(i, sums[i]); });
    for (fiber& each : fibers) each.join();
  });
  std::uint64_t visits = 0, total = 0;
  for (std::size_t page = 0; page < kPages; ++page) {
    visits += g_memory[page * kWords + kWords - 1];
    if (g_memory[page * kWords + 7] != value_of(page, 7)) fail("is damaged in the end", page);
  }
  for (std::uint64_t sum : sums) total += sum;
  std::printf("visits %llu, sum %llu\n", static_cast<unsigned long long>(visits),
              static_cast<unsigned long long>(total));
  std::free(g_memory);
}
