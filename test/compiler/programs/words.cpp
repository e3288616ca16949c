// Strings, maps, exceptions through hinted frames, virtual calls and threads. Some 30 MiB.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual std::uint64_t weight(std::uint64_t with) const = 0;
};
struct Square final : Shape {
  explicit Square(std::uint64_t s) : side(s) {}
  std::uint64_t weight(std::uint64_t with) const override {
    if (side % 1000 == 999) throw std::runtime_error("heavy");
    return side * side + with;
  }
  std::uint64_t side, padding[5] = {};
};
struct Named final : Shape {
  explicit Named(std::string n) : name(std::move(n)) {}
  std::uint64_t weight(std::uint64_t with) const override {
    return name.size() * 17 + static_cast<unsigned char>(name.back()) + with;
  }
  std::string name;
};

std::uint64_t shapes() {
  std::vector<std::unique_ptr<Shape>> all;
  for (std::uint64_t i = 0; i < 60000; ++i)
    if (i % 3 == 0)
      all.push_back(std::make_unique<Named>("a shape with a name that is not short: " + std::to_string(i)));
    else
      all.push_back(std::make_unique<Square>(i));
  std::uint64_t digest = 0, caught = 0;
  for (std::uint64_t i = 0; i < all.size(); ++i) try {
      digest = digest * 31 + all[i * 7919 % all.size()]->weight(i);
    } catch (const std::runtime_error& error) {
      digest ^= error.what()[0];
      ++caught;
    }
  return digest + caught;
}

std::uint64_t words() {
  std::map<std::string, std::uint64_t> ordered;
  std::unordered_map<std::string, std::uint64_t> hashed;
  for (std::uint64_t i = 0; i < 50000; ++i) {
    const std::string word = "word " + std::to_string(i * 2654435761u % 100003) + " of the text that is counted";
    ++ordered[word];
    hashed[word] += i;
  }
  std::uint64_t digest = 0;
  for (const auto& [word, count] : ordered) digest = digest * 31 + count + hashed.at(word) + word.size();
  try {
    digest += hashed.at("not there");
  } catch (const std::out_of_range&) {
    digest ^= 1;
  }
  return digest;
}

std::uint64_t threads() {
  std::vector<std::uint64_t> numbers(1 << 19), sums(4);
  std::vector<std::thread> workers;
  for (std::uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = i * 0x9E3779B97F4A7C15u;
  for (std::size_t t = 0; t < sums.size(); ++t)
    workers.emplace_back([&, t] {
      std::uint64_t at = t, sum = 0;
      for (int i = 0; i < 60000; ++i) {
        at = numbers[at % numbers.size()] >> 20;
        sum = sum * 31 + at;
      }
      sums[t] = sum;
    });
  for (std::thread& worker : workers) worker.join();
  std::sort(numbers.begin(), numbers.end());
  std::uint64_t digest = numbers[numbers.size() / 2];
  for (std::uint64_t sum : sums) digest = digest * 31 + sum;
  return digest;
}

}  // namespace

int main() {
  std::printf("shapes %016lx\n", shapes());
  std::printf("words %016lx\n", words());
  std::printf("threads %016lx\n", threads());
}
