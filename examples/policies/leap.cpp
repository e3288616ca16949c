// Read-ahead along the trend of most faults, as Leap has it: where more than half of the last faults lie equally far
// from the one before, the next ones are likely to, whatever comes in between. (Al Maruf and Chowdhury, "Effectively
// Prefetching Remote Memory with Leap", ATC 2020.) Pages leave in the order in which they came.
//
//   c++ -std=c++20 -O2 -fPIC -shared leap.cpp -o leap.so
//   hinterland run --policy ./leap.so -- ./program
#include <hinterland/policy.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace {

class Leap {
 public:
  bool create(const hl_policy_env& environment) {
    environment_ = environment;
    return links_.create(environment);
  }
  bool holds(hl_page page) const { return links_.in_list(page); }
  std::uint64_t size() const { return queue_.size(); }
  void arrived(hl_page page, hl_arrival, std::uint8_t) { queue_.push_back(links_, page); }
  void departed(hl_page page) { queue_.remove(links_, page); }
  hl_page choose(std::uint32_t&) { return queue_.pop_front(links_); }

  std::uint32_t missed(hl_page page, hl_page* next, std::uint32_t max) {
    auto place = static_cast<std::int64_t>(environment_.place_of(environment_.runtime, page));
    steps_[faults_++ % steps_.size()] = place - last_;
    last_ = place;
    std::int64_t step = majority();
    // A trend that holds doubles what is read; one that ended begins anew.
    window_ = step == 0 ? 0 : step == trend_ ? std::min<std::uint32_t>(2 * window_, 32) : 4;
    trend_ = step;
    std::uint32_t count = 0;
    for (std::uint32_t i = 1; i <= window_ && count < max; ++i) {
      hl_page wanted = environment_.page_at(environment_.runtime, static_cast<std::uint64_t>(place + step * i));
      if (wanted == HL_NO_PAGE) break;
      if (!holds(wanted)) next[count++] = wanted;
    }
    return count;
  }

 private:
  // Boyer and Moore's vote, and a count to confirm it; 0: there is none.
  std::int64_t majority() const {
    std::int64_t step = 0;
    std::size_t votes = 0;
    for (std::int64_t each : steps_) {
      if (votes == 0) step = each;
      if (each == step)
        ++votes;
      else
        --votes;
    }
    auto holders = static_cast<std::size_t>(std::count(steps_.begin(), steps_.end(), step));
    return holders > steps_.size() / 2 ? step : 0;
  }

  hl_policy_env environment_{};
  hl::policy::PageLinks links_;
  hl::policy::PageList queue_;
  std::array<std::int64_t, 16> steps_{};  // between the last faults, in pages
  std::size_t faults_ = 0;
  std::int64_t last_ = 0;
  std::int64_t trend_ = 0;
  std::uint32_t window_ = 0;
};

}  // namespace

HL_POLICY_PLUGIN = hl::policy::ops_of<Leap>("leap", "reads ahead along the trend of most faults");
