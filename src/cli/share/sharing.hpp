// Keeps the processes of a run within one budget, from outside: looks at their pages of figures, and gives each its
// share as `hinterland tune` would (run --local-total).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>

#include "base/stats.hpp"
#include "cli/running.hpp"

namespace hinterland::cli {

// What a process gets that has just been started, and what is kept free for the next one.
std::uint64_t first_share(std::uint64_t total_bytes);

// A thread of its own while it lives. Should this process be killed, budgets stay as they are: what runs then stays
// within the total, and what is started later gets a first share each.
class Sharing {
 public:
  // `folder`: where the processes of the run have their figures.
  Sharing(std::string folder, std::uint64_t total_bytes);
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

 private:
  struct Member {
    StatView view;
    std::size_t programs;      // that the process has been
    std::uint64_t missed = 0;  // so far
    std::uint64_t asked_bytes = 0;
    double misses = 0;  // a second
  };
  void run(const std::stop_token& stop);
  void look(double seconds);
  void meet_new(const FiguresFolder& folder);

  std::string folder_;
  std::uint64_t total_bytes_;
  std::map<std::string, Member> members_;  // by the names of their files
  bool warned_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hinterland::cli
