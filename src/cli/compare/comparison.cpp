#include "cli/compare/comparison.hpp"

#include <algorithm>
#include <numeric>

#include "base/size.hpp"
#include "cli/figures.hpp"
#include "cli/formatted.hpp"

namespace hinterland::cli {
namespace {

template <typename Value>
auto middle_of(const std::vector<Measured>& runs, Value&& value) {
  std::vector<decltype(value(runs.front()))> all;
  for (const Measured& run : runs) all.push_back(value(run));
  std::ranges::sort(all);
  return all.empty() ? decltype(value(runs.front())){} : all[all.size() / 2];
}

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// Less than this is within what runs differ by anyway.
constexpr double kHardlySlower = 1.05, kHardlySmaller = 0.9, kWorthHinting = 0.1;

std::string of_swap(const Comparison& all, const Series& one) {
  for (const Series& other : all.series) {
    if (other.way.kind != Way::Kind::swap || other.way.local_bytes != one.way.local_bytes) continue;
    if (!other.failure.empty())
      return formatted(" Under Linux swap with that limit the program %s.", other.failure.c_str());
    double times = other.median_s() / std::max(one.median_s(), 1e-9);
    std::string line =
        formatted(" Linux swap with that limit takes %.2f times the native time: Hinterland is %.2f times as fast.",
                  all.slow_down(other), times);
    if (const unsigned kills = other.kills_diverted(); kills != 0)
      line += formatted(
          " In one run the kernel would have killed the program there %s, although swap was free: it killed idle "
          "processes in its place.",
          kills == 1 ? "once" : formatted("%u times", kills).c_str());
    return line;
  }
  return "";
}

void judge(const Comparison& all, const Series& one, std::vector<std::string>& lines) {
  if (!one.failure.empty()) {
    lines.push_back(formatted("%s: the program %s.", one.way.name().c_str(), one.failure.c_str()));
    return;
  }
  double slow_down = all.slow_down(one), share = all.memory_share(one);
  std::string line = slow_down <= kHardlySlower
                         ? formatted("%s: as fast as natively", one.way.name().c_str())
                         : formatted("%s: %.2f times the native time", one.way.name().c_str(), slow_down);
  line += formatted(", with %.0f %% of its memory, what is stored on this machine included.", share * 100);
  lines.push_back(line + of_swap(all, one));
}

void say_whether_it_saves(const Comparison& all, std::vector<std::string>& lines) {
  bool far = false, saves = false;
  for (const Series& one : all.series)
    if (one.way.kind == Way::Kind::far && one.failure.empty()) {
      far = true;
      saves = saves || all.memory_share(one) < kHardlySmaller;
    }
  if (far && !saves)
    lines.push_back(
        "None of these saves memory on this machine: what leaves local memory takes as much where it is "
        "stored, or most of the program's memory cannot be far (files, shared memory). Try --devices with "
        "tcp: or file:.");
}

// The way whose waiting is the largest part of its time.
void say_what_hints_would_spare(const Comparison& all, std::vector<std::string>& lines) {
  const Series* worst = nullptr;
  auto waiting = [](const Series& one) { return one.waited_s() / std::max(one.median_s(), 1e-9); };
  for (const Series& one : all.series)
    if (one.way.kind == Way::Kind::far && one.failure.empty() && all.slow_down(one) > kHardlySlower)
      if (worst == nullptr || waiting(one) > waiting(*worst)) worst = &one;
  if (worst == nullptr || waiting(*worst) < kWorthHinting) return;
  lines.push_back(
      formatted("With %s its threads wait for pages for about %.1f s of %.1f s. Hints would spare part of "
                "that; to see where it waits:",
                worst->way.name().c_str(), worst->waited_s(), worst->median_s()));
  lines.push_back(formatted("    hinterland trace --local %s --far '%s' --read-ahead 0 --takeover start -- %s ...",
                            exact_size_text(worst->way.local_bytes).c_str(), worst->way.url.c_str(),
                            all.program.c_str()));
}

}  // namespace

double Series::median_s() const {
  return seconds(middle_of(runs, [](const Measured& run) { return run.wall_ns; }));
}
double Series::waited_s() const {
  return seconds(middle_of(runs, [](const Measured& run) { return run.waited_ns; }));
}
std::uint64_t Series::pages_in() const {
  return middle_of(runs, [](const Measured& run) { return run.pages_in; });
}
double Series::least_s() const {
  std::uint64_t least = runs.empty() ? 0 : UINT64_MAX;
  for (const Measured& run : runs) least = std::min(least, run.wall_ns);
  return seconds(least);
}
double Series::most_s() const {
  std::uint64_t most = 0;
  for (const Measured& run : runs) most = std::max(most, run.wall_ns);
  return seconds(most);
}
unsigned Series::kills_diverted() const {
  unsigned most = 0;
  for (const Measured& run : runs) most = std::max(most, run.kills_diverted);
  return most;
}
std::uint64_t Series::peak_bytes() const {
  std::uint64_t most = 0;
  for (const Measured& run : runs) most = std::max(most, run.peak_bytes);
  return most;
}

double Comparison::slow_down(const Series& one) const {
  double base = native().median_s();
  return base > 0 ? one.median_s() / base : 0;
}
double Comparison::memory_share(const Series& one) const {
  auto base = static_cast<double>(native().peak_bytes());
  return base > 0 ? static_cast<double>(one.peak_bytes()) / base : 0;
}

std::vector<std::string> verdict(const Comparison& all) {
  std::vector<std::string> lines;
  for (const Series& one : all.series)
    if (one.way.kind == Way::Kind::far) judge(all, one, lines);
  say_whether_it_saves(all, lines);
  say_what_hints_would_spare(all, lines);
  if (!all.no_swap.empty()) lines.push_back("Not compared with Linux swap: " + all.no_swap);
  return lines;
}

Json comparison_json(const Comparison& all) {
  Json list = Json::array();
  for (const Series& one : all.series) {
    static constexpr const char* kKinds[] = {"native", "far", "swap"};
    Json times = Json::array();
    for (const Measured& run : one.runs) times.push_back(seconds(run.wall_ns));
    list.push_back({{"kind", kKinds[static_cast<int>(one.way.kind)]},
                    {"far_url", one.way.url},
                    {"local_bytes", one.way.local_bytes},
                    {"local_percent", one.way.percent},
                    {"runs_s", std::move(times)},
                    {"median_s", one.median_s()},
                    {"times_native", all.slow_down(one)},
                    {"peak_resident_bytes", one.peak_bytes()},
                    {"pages_in", one.pages_in()},
                    {"waited_s", one.waited_s()},
                    {"kills_diverted", one.kills_diverted()},
                    {"failure", one.failure}});
  }
  return {{"schema_version", kSchemaVersion},
          {"program", all.program},
          {"ways", std::move(list)},
          {"no_swap", all.no_swap},
          {"verdict", verdict(all)}};
}

}  // namespace hinterland::cli
