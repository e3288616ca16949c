"""A C++ compile: g++ -O1 of a generated file full of templates; the object file compared."""

from harness.program import Batch, file_hash, need

TYPES = 3  # with the headers about 130 MiB in cc1plus at scale 1

HEAD = """#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Shape {
  std::map<std::string, std::vector<Shape<N - 1>>> parts;
  std::tuple<int, std::string, std::unique_ptr<Shape<N - 1>>> more;
  long area() const {
    long sum = N;
    for (const auto& [name, list] : parts)
      sum = std::accumulate(list.begin(), list.end(), sum + static_cast<long>(name.size()),
                            [](long total, const auto& one) { return total * 31 + one.area(); });
    return sum;
  }
};
template <> struct Shape<0> { long area() const { return 1; } };
"""

EACH = """
struct Kind{n} {{ std::string name; long value = {value}; }};
long use{n}(const std::vector<std::variant<int, Kind{n}, std::string>>& list) {{
  std::unordered_map<std::string, std::map<long, Kind{n}>> seen;
  Shape<{depth}> shape;
  for (const auto& one : list)
    std::visit([&](const auto& it) {{
      if constexpr (std::is_same_v<std::decay_t<decltype(it)>, Kind{n}>) seen[it.name].emplace(it.value, it);
      else seen["{n}"].emplace({value}, Kind{n}{{"other"}});
    }}, one);
  std::vector<Kind{n}> flat;
  for (auto& [name, map] : seen) for (auto& [key, kind] : map) flat.push_back(kind);
  std::sort(flat.begin(), flat.end(), [](const auto& a, const auto& b) {{ return a.value < b.value; }});
  return shape.area() + static_cast<long>(flat.size());
}}
"""


class Compile(Batch):
    name = "compile"
    help = "g++ -O1 of a file full of templates"

    def prepare(self):
        self._compiler = need("g++")
        with open(self.path("input.cpp"), "w", encoding="utf-8") as file:
            file.write(HEAD)
            for n in range(max(1, int(TYPES * self.scale))):
                file.write(EACH.format(n=n, value=(n * 7919 + self.seed) % 100_003, depth=1 + n % 5))

    def command(self):
        return [self._compiler, "-std=c++17", "-O1", "-c", "-o", self.path("output.o"), self.path("input.cpp")]

    def answer(self, stdout):
        return {"object file": file_hash(self.path("output.o"))}
