// Looks numbers up through a method that returns a reference: the line that touches memory is the one that calls it.
// buckets PAGES ROUNDS
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

class Table {
 public:
  explicit Table(std::size_t count) : numbers_(count, 1) {}

  __attribute__((noinline)) std::uint32_t at(std::uint64_t hash) {
    std::uint32_t number = bucket(hash);
    return number == 0 ? 7 : number * (number + 1);
  }

 private:
  std::uint32_t& bucket(std::uint64_t hash) { return *(numbers_.data() + hash % numbers_.size()); }

  std::vector<std::uint32_t> numbers_;
};

}  // namespace

int main(int count, char** arguments) {
  std::size_t pages = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 4096,
              rounds = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 1;
  Table table(pages * 1024);
  std::uint64_t state = 1, sum = 0;
  for (std::size_t i = 0; i < rounds * pages; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    sum += table.at(state >> 20);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
