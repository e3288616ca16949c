// Containers of the standard library in far memory.
//
//   c++ -std=c++20 main.cpp $(pkg-config --cflags --libs hinterland-runtime)
//   HINTERLAND_LOCAL=16M ./a.out
#include <cstdint>
#include <cstdio>
#include <exception>
#include <hinterland/hint.hpp>
#include <hinterland/region.hpp>
#include <string>
#include <unordered_map>
#include <vector>

int main() try {
  hl::region region(std::size_t{128} << 20, {.share = std::size_t{4} << 20});
  hl::region_resource resource(region);

  std::pmr::unordered_map<std::uint64_t, std::pmr::string> names(&resource);
  for (std::uint64_t i = 0; i < 200'000; ++i) names.emplace(i * i, "the square of " + std::to_string(i));

  std::vector<std::uint64_t, hl::far_allocator<std::uint64_t>> numbers{hl::far_allocator<std::uint64_t>(resource)};
  for (std::uint64_t i = 0; i < 2'000'000; ++i) numbers.push_back(i);

  std::uint64_t sum = 0;
  for (const std::uint64_t& number : numbers) {
    hl::seq_read(&number);
    sum += number;
  }
  std::printf("%s, %llu\n", names.at(1234ull * 1234).c_str(), static_cast<unsigned long long>(sum));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
