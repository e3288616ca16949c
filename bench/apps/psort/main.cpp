// psort: sorts 4-byte integers in parallel, by regular sampling. (Eden A.4)
#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>

#include "common/app.hpp"
#include "common/blocks.hpp"
#include "common/fiber_team.hpp"
#include "common/random.hpp"
#include "psort/regular_sampling.hpp"

namespace {

using namespace apps;
using psort::Value;

enum class Values { random, few, sorted, reversed };

const std::map<std::string, Values> kValues = {
    {"random", Values::random}, {"few", Values::few}, {"sorted", Values::sorted}, {"reversed", Values::reversed}};

class Input {
 public:
  Input(const Settings& settings, Values kind)
      : settings_(settings),
        kind_(kind),
        size_(settings.size_bytes / 2 / sizeof(Value)),
        values_(std::make_unique_for_overwrite<Value[]>(size_)),
        room_(std::make_unique_for_overwrite<Value[]>(size_)) {
    on_threads(settings_.threads, [&](unsigned i) {
      Share mine = share(size_, i, settings_.threads);
      for (std::size_t at = mine.first; at < mine.last; ++at) values_[at] = value_at(at);
    });
  }

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return 2 * size_ * sizeof(Value); }

  void sort() {
    psort::sort_by_regular_sampling({values_.get(), size_}, {room_.get(), size_}, members(settings_),
                                    [&](const std::function<void(unsigned)>& body) { on_team(settings_, body); });
  }

  // Of all values and their places.
  std::uint64_t check() const {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < size_; ++at) sum += mixed(at) * values_[at];
    return mixed(sum);
  }

  // In order, and the same values as before, each as often.
  void verify() const {
    std::uint64_t before = 0, after = 0;
    for (std::size_t at = 0; at < size_; ++at) {
      before += mixed(value_at(at) + 1);
      after += mixed(values_[at] + std::uint64_t{1});
      if (at > 0 && values_[at - 1] > values_[at])
        throw std::runtime_error("--verify: value " + std::to_string(at) + " is smaller than the one before it");
    }
    if (before != after) throw std::runtime_error("--verify: these are not the values that were to be sorted");
  }

 private:
  Value value_at(std::size_t at) const {
    switch (kind_) {
      case Values::random:
        return static_cast<Value>(mixed(settings_.seed + at));
      case Values::few:
        return static_cast<Value>(mixed(settings_.seed + at) % 5);
      case Values::sorted:
        return static_cast<Value>(at);
      case Values::reversed:
        return static_cast<Value>(size_ - at);
    }
    return 0;
  }

  const Settings& settings_;
  Values kind_;
  std::size_t size_;
  std::unique_ptr<Value[]> values_, room_;
};

}  // namespace

int main(int argc, char** argv) {
  App app("psort", "Sorts integers in parallel");
  app.offer_fibers();
  std::string kind = "random";
  app.options().choice("--values", kind, {"random", "few", "sorted", "reversed"},
                       "that are sorted; few: different ones");
  return app.run(argc, argv, [&](const Settings& settings) {
    Input input(settings, kValues.at(kind));
    if (std::uint64_t{members(settings)} * members(settings) > input.size())
      throw std::invalid_argument("--fibers is too many for --size: each part must have a sample for each");
    app.measure([&] { input.sort(); });
    if (settings.verify) input.verify();
    return Outcome{.footprint_bytes = input.bytes(),
                   .operations = input.size(),
                   .check = input.check(),
                   .figures = {{"values", input.size()}, {"parts", members(settings)}}};
  });
}
