// The nearest of some centres for each of many points: what goes through them in order is a function of a few
// instructions, which is given one of them. points POINTS ROUNDS
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {

constexpr std::size_t kDimensions = 8, kBlock = 2048;
using Point = std::array<float, kDimensions>;

float distance(const Point& a, const Point& b) {
  float sum = 0;
  for (std::size_t d = 0; d < kDimensions; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

std::size_t nearest(const Point& point, const Point* centres) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < 8; ++i)
    if (distance(point, centres[i]) < distance(point, centres[best])) best = i;
  return best;
}

struct Points {
  std::unique_ptr<Point[]> points;
  std::array<Point, 8> centres{};

  __attribute__((noinline)) std::size_t assign(std::size_t first, std::size_t count) const {
    std::size_t sum = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      const Point& point = points[i];
      sum += nearest(point, centres.data());
    }
    return sum;
  }
};

}  // namespace

int main(int count, char** arguments) {
  std::size_t size = count > 1 ? std::strtoul(arguments[1], nullptr, 10) / kBlock * kBlock : 1 << 20,
              rounds = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 2, sum = 0;
  Points all{std::make_unique<Point[]>(size)};
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t d = 0; d < kDimensions; ++d) all.points[i][d] = static_cast<float>(i * 7919 % (100 + d));
  for (std::size_t i = 0; i < 8; ++i) all.centres[i].fill(static_cast<float>(i * 12));
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t first = 0; first < size; first += kBlock) sum += all.assign(first, kBlock);
  std::printf("%zu\n", sum);
}
