#include "psort/regular_sampling.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/blocks.hpp"
#include "hinterland/hint.hpp"

namespace psort {
namespace {

constexpr std::size_t kBlock = apps::kBlockBytes / sizeof(Value);

// What is left of a sorted run.
class Run {
 public:
  Run(const Value* begin, const Value* end) : at_(begin), end_(end), asked_(begin) { ask(); }
  bool empty() const { return at_ == end_; }
  Value first() const { return *at_; }
  void take() {
    if (++at_ == asked_) ask();
  }

 private:
  void ask() {
    asked_ = at_ + std::min(kBlock, static_cast<std::size_t>(end_ - at_));
    hl::hint(at_, {.size = static_cast<std::size_t>(asked_ - at_) * sizeof(Value)});
  }
  const Value *at_, *end_, *asked_;
};

// A heap whose first run has the least value, when only that one may be in the wrong place.
void sink_first(std::vector<Run>& runs) {
  for (std::size_t at = 0;;) {
    std::size_t least = at;
    for (std::size_t child = 2 * at + 1; child <= 2 * at + 2 && child < runs.size(); ++child)
      if (runs[child].first() < runs[least].first()) least = child;
    if (least == at) return;
    std::swap(runs[at], runs[least]);
    at = least;
  }
}

void merge(std::vector<Run> runs, Value* to) {
  std::erase_if(runs, [](const Run& run) { return run.empty(); });
  std::ranges::make_heap(runs, [](const Run& a, const Run& b) { return a.first() > b.first(); });
  while (!runs.empty()) {
    *to++ = runs.front().first();
    runs.front().take();
    if (runs.front().empty()) {
      runs.front() = runs.back();
      runs.pop_back();
    }
    sink_first(runs);
  }
}

void copy(const Value* from, std::size_t count, Value* to) {
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t size = std::min(kBlock, count - at);
    hl::hint(from + at, {.size = size * sizeof(Value)});
    hl::hint(to + at, {.mut = true, .size = size * sizeof(Value)});
    std::copy_n(from + at, size, to + at);
  }
}

class Sort {
 public:
  Sort(std::span<Value> values, std::span<Value> room, unsigned members)
      : values_(values), room_(room), members_(members), samples_(std::size_t{members} * members) {}

  void sort_part(unsigned member) {
    std::span<Value> part = part_of(member);
    quicksort(part.data(), part.data() + part.size());
    for (unsigned i = 0; i < members_; ++i) {  // as many in each part, and at the same distances
      const Value* sample = &part[apps::share(part.size(), i, members_).first];
      hl::read(sample);
      samples_[std::size_t{member} * members_ + i] = *sample;
    }
  }

  // Between the values of one member and of the next, in each part.
  void choose_bounds() {
    std::ranges::sort(samples_);
    for (unsigned i = 1; i < members_; ++i)
      splitters_.push_back(samples_[std::size_t{i} * members_ + members_ / 2 - 1]);
    bounds_.assign(members_, {});
  }
  void find_bounds(unsigned member) {
    std::span<Value> part = part_of(member);
    std::vector<const Value*>& bounds = bounds_[member];
    bounds.push_back(part.data());
    for (Value splitter : splitters_)
      bounds.push_back(&*std::partition_point(part.begin(), part.end(), [&](const Value& value) {
        hl::read(&value);
        return value <= splitter;
      }));
    bounds.push_back(part.data() + part.size());
  }

  void merge_values(unsigned member) {
    std::size_t before = 0;
    std::vector<Run> runs;
    for (const std::vector<const Value*>& bounds : bounds_) {
      before += static_cast<std::size_t>(bounds[member] - bounds[0]);
      runs.emplace_back(bounds[member], bounds[member + 1]);
    }
    merge(std::move(runs), room_.data() + before);
  }

  void copy_back(unsigned member) {
    const apps::Share part = apps::share(values_.size(), member, members_);
    copy(room_.data() + part.first, part.size(), values_.data() + part.first);
  }

 private:
  std::span<Value> part_of(unsigned member) const {
    const apps::Share part = apps::share(values_.size(), member, members_);
    return values_.subspan(part.first, part.size());
  }

  std::span<Value> values_, room_;
  unsigned members_;
  std::vector<Value> samples_, splitters_;
  std::vector<std::vector<const Value*>> bounds_;  // of each part: where each member's values begin, and the end
};

}  // namespace

void sort_by_regular_sampling(std::span<Value> values, std::span<Value> room, unsigned members, const Team& on_team) {
  Sort sort(values, room, members);
  on_team([&](unsigned member) { sort.sort_part(member); });
  sort.choose_bounds();
  on_team([&](unsigned member) { sort.find_bounds(member); });
  on_team([&](unsigned member) { sort.merge_values(member); });
  on_team([&](unsigned member) { sort.copy_back(member); });
}

}  // namespace psort
