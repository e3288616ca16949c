#include "common/app.hpp"

#include <sys/resource.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "common/look.hpp"

namespace apps {

App::App(const std::string& name, const std::string& about, bool hinted)
    : name_(name), hinted_(hinted), options_(name, about + ", and prints how long that took as JSON") {
  options_.size("--size", settings_.size_bytes, "memory that its data takes, about", "1G");
  options_.number("--threads", settings_.threads, "that do the measured part", 1, 256);
  options_.number("--seed", settings_.seed, "of all that is random", 0, UINT64_MAX);
  options_.flag("--verify", settings_.verify, "hold the result against a simpler computation");
  options_.text("--around", around_,
                "a command of the shell, run before and after the measured part; what it prints, as JSON or "
                "text, is part of the result. ${APP_PID:-$PPID} is the program");
}

void App::offer_fibers() {
  options_.number("--fibers", settings_.fibers, "so many fibers on the threads; 0: threads alone", 0, 1 << 20);
}

void App::look_at(pid_t pid) { setenv("APP_PID", std::to_string(pid).c_str(), 1); }

void App::look_around() {
  if (around_.empty()) return;
  std::string text = output_of(around_);
  bool is_json = false;
  Json document = Json::parse(text, &is_json);
  seen_around_.push_back(is_json ? document : Json(text));
}

namespace {
// Of this process: what Linux swap brings by faults.
std::uint64_t major_faults() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_majflt);
}
}  // namespace

void App::measure(const std::function<void()>& part) {
  if (seconds_) throw std::logic_error("two measured parts");
  look_around();
  std::uint64_t faults_before = major_faults();
  auto begin = std::chrono::steady_clock::now();
  part();
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  major_faults_ = major_faults() - faults_before;
  look_around();
}

int App::run(int argc, char** argv, const std::function<Outcome(const Settings&)>& work) {
  if (std::optional<int> status = options_.parse(argc, argv)) return *status;
  if (settings_.size_bytes < least_bytes_) {
    std::fprintf(stderr, "%s: --size is %zu bytes, and at least %zu are needed\n", name_.c_str(),
                 settings_.size_bytes, least_bytes_);
    return 2;
  }
#ifndef NDEBUG
  std::fprintf(stderr, "%s: this is a debug build, and its times mean nothing\n", name_.c_str());
#endif
  return perform(work);
}

int App::perform(const std::function<Outcome(const Settings&)>& work) {
  try {
    Outcome outcome = work(settings_);
    if (!seconds_) throw std::logic_error("no measured part");
    print(outcome);
    return 0;
  } catch (const std::invalid_argument& wrong) {
    std::fprintf(stderr, "%s: %s\n", name_.c_str(), wrong.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: there is not enough memory for --size %zu; give a smaller one\n", name_.c_str(),
                 settings_.size_bytes);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", name_.c_str(), failure.what());
  }
  return 1;
}

void App::print(const Outcome& outcome) const {
  char check[17];
  std::snprintf(check, sizeof check, "%016" PRIx64, outcome.check);
  Json document{
      {"schema_version", 1},
      {"app", name_},
      {"hinted", hinted_},
      {"size_bytes", settings_.size_bytes},
      {"footprint_bytes", outcome.footprint_bytes},
      {"threads", settings_.threads},
      {"fibers", settings_.fibers},
      {"seed", settings_.seed},
      {"verified", settings_.verify},
      {"operations", outcome.operations},
      {"seconds", *seconds_},
      {"operations_per_second", static_cast<double>(outcome.operations) / *seconds_},
      {"check", check},
      {"major_faults", major_faults_},
  };
  document.update(outcome.figures);
  if (!seen_around_.empty()) document["around"] = seen_around_;
  std::puts(document.dump(1).c_str());
}

}  // namespace apps
