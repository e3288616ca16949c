// Columns as a data frame has them: one gathered by an index into a new one, one added up. columns ROWS ROUNDS
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Index = std::vector<std::uint32_t>;

[[gnu::noinline]] std::vector<double> gather(const std::vector<double>& column, const Index& index) {
  std::vector<double> result;
  result.reserve(index.size());
  for (std::size_t i = 0; i < index.size(); ++i) {
    result.push_back(column[index[i]]);
  }
  return result;
}

[[gnu::noinline]] double sum_of(const std::vector<double>& column) {
  double sum = 0;
  for (std::size_t i = 0; i < column.size(); ++i) sum += column[i];
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t rows = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 2'000'000;
  int rounds = count > 2 ? std::atoi(arguments[2]) : 2;
  std::vector<double> column(rows);
  Index index(rows / 32);
  for (std::size_t i = 0; i < rows; ++i) column[i] = static_cast<double>(i % 1000);
  double sum = 0;
  std::uint64_t state = 1;
  for (int round = 0; round < rounds; ++round) {
    for (std::uint32_t& row : index) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      row = static_cast<std::uint32_t>((state >> 33) % rows);
    }
    sum += sum_of(gather(column, index)) + sum_of(column);
  }
  std::printf("%.0f\n", sum);
}
