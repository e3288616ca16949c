// Every form of a hint in C++, where it may stand: if and else without braces, templates, lambdas, recursion; and
// pins. (src/runtime/hint_header_test.cpp has what the forms mean.)
#include <hinterland/hint.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096, kPages = 4096;

template <typename T>
T sum_of(const std::vector<T>& values) {
  T sum{};
  for (const T& value : values) {
    hl::seq_read(&value);
    sum += value;
  }
  return sum;
}

std::size_t depth(const std::vector<std::uint64_t>& values, std::size_t at) {
  hl::read(&values[at]);
  return values[at] == 0 ? 0 : 1 + depth(values, at / 2);
}

}  // namespace

int main() {
  std::vector<std::uint64_t> values(kPages * kPage / 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
  std::size_t evaluated = 0;
  for (std::size_t i = 0; i < values.size(); i += 509) {
    if (i % 2 == 0)
      hl::write(&values[i]);
    else
      hl::hint(&values[i], {.mut = true, .size = 64, .rdahead = 2, .ev_prio = 1});
    values[i] += 1;
    auto read_it = [&] { return hl::hint(&values[(++evaluated, i)], {.seq = true}); };
    read_it();
    values[i] -= 1;
  }
  std::printf("sum %llu, evaluated %zu\n", static_cast<unsigned long long>(sum_of(values)), evaluated);
  std::printf("depth %zu\n", depth(values, values.size() - 1));

  {
    hl::pinned keep(values.data(), 64 * kPage);
    std::printf("pinned: %llu\n", static_cast<unsigned long long>(sum_of(values)));
  }
  std::size_t refused = 0;
  try {
    // More than the whole budget, where there is one; natively nothing is refused.
    hl::pinned keep(values.data(), values.size() * sizeof values[0]);
  } catch (const std::system_error& error) {
    refused = error.code().value() == ENOMEM ? 1 : 2;
  }
  std::size_t expected = std::getenv("EXPECT_PRELOADED") != nullptr ? 1 : 0;
  std::printf("too many pins are refused where there is a budget: %d\n", refused == expected);
  std::printf("after that: %llu\n", static_cast<unsigned long long>(sum_of(values)));
  return 0;
}
