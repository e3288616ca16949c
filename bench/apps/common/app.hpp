// What all applications have in common: their options, the measured part, and what they print.
//
//     int main(int argc, char** argv) {
//       apps::App app("hashmap", "looks keys up in a hash table");
//       return app.run(argc, argv, [&](const apps::Settings& settings) {
//         Table table(settings);                                    // setting up is not measured
//         apps::Outcome outcome{.footprint_bytes = table.bytes()};
//         app.measure([&] { outcome.check = table.look_up(); });    // once
//         return outcome;
//       });
//     }
//
// On standard output: one JSON object. On standard error: messages. Exit status 0; 1 when it failed, or --verify
// found a wrong result; 2 for a wrong option. Used by the main thread alone.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "command/options.hpp"
#include "common/settings.hpp"

namespace apps {

using hinterland::Json;

// Hints are compiled out of each application's twin, NAME_plain (hinterland/hint.h).
#ifdef HL_NO_HINTS
[[maybe_unused]] static constexpr bool kHinted = false;
#else
[[maybe_unused]] static constexpr bool kHinted = true;
#endif

// What a run came to. The same settings give the same `operations` and `check` natively, hinted and far.
struct Outcome {
  std::size_t footprint_bytes = 0;  // of the data, computed
  std::uint64_t operations = 0;     // of the measured part
  std::uint64_t check = 0;          // of all results
  Json figures = Json::object();    // of this application alone
};

class App {
 public:
  App(const std::string& name, const std::string& about, bool hinted = kHinted);

  // Before run().
  bench::Options& options() { return options_; }
  // Adds --fibers.
  void offer_fibers();
  // The least that --size may be; 1 MiB unless said otherwise.
  void need_bytes(std::size_t size_bytes) { least_bytes_ = size_bytes; }

  // Parses, runs `work` and prints. What `work` throws is a failure with its message; std::invalid_argument is a
  // wrong option. The exit status.
  int run(int argc, char** argv, const std::function<Outcome(const Settings&)>& work);
  // The process that the command of --around is to look at, in its variable APP_PID: a child that does the work.
  static void look_at(pid_t pid);
  // The measured part: once in `work`. Throws what it throws.
  void measure(const std::function<void()>& part);

 private:
  int perform(const std::function<Outcome(const Settings&)>& work);
  void look_around();
  void print(const Outcome& outcome) const;

  std::string name_;
  bool hinted_;
  bench::Options options_;
  Settings settings_;
  std::string around_;  // a command of the shell
  std::size_t least_bytes_ = std::size_t{1} << 20;
  std::optional<double> seconds_;
  std::uint64_t major_faults_ = 0;  // of the measured part
  Json seen_around_ = Json::array();
};

}  // namespace apps
