#include "cli/program_table.hpp"

#include <cstdio>
#include <ctime>
#include <utility>

#include "base/clock.hpp"
#include "base/duration.hpp"
#include "base/size.hpp"
#include "cli/terminal.hpp"

namespace hinterland::cli {

void note(LastLooks& looks, const StatPage& page, std::uint64_t at_ns) {
  auto look = std::make_unique<LastLook>();
  look->at_ns = at_ns;
  look->figures.add(page);
  looks[page.pid] = std::move(look);
}

const LastLook* last_of(const LastLooks& looks, pid_t pid) {
  auto found = looks.find(pid);
  return found == looks.end() ? nullptr : found->second.get();
}

// Of the latencies in `now`, those since the last look stay.
void keep_new(Figures& now, const LastLook* last) {
  if (last == nullptr) return;
  now.fault_latency.subtract(last->figures.fault_latency);
  now.fetch_latency.subtract(last->figures.fetch_latency);
}

namespace {

double a_second(std::uint64_t before, std::uint64_t now, const LastLook& last, std::uint64_t at_ns) {
  if (at_ns <= last.at_ns || now < before) return 0;
  return static_cast<double>(now - before) * 1e9 / static_cast<double>(at_ns - last.at_ns);
}

}  // namespace

double rate(const LastLook& last, const Figures& now, Counter counter, std::uint64_t at_ns) {
  return a_second(last.figures[counter], now[counter], last, at_ns);
}

namespace {

void print_row(const StatView& view, const LastLook* last, std::uint64_t at_ns) {
  Figures figures;
  figures.add(*view);
  std::printf("%7d  %-16.16s %10s %10s %10s", view->pid, text_of(view->program).c_str(),
              rounded_size_text(figures[Gauge::budget_bytes]).c_str(),
              rounded_size_text(figures[Gauge::resident_bytes]).c_str(),
              rounded_size_text(figures[Gauge::far_bytes]).c_str());
  keep_new(figures, last);
  if (last != nullptr) {
    double faults = a_second(last->figures.faults(), figures.faults(), *last, at_ns);
    std::printf(" %10.0f %10.0f %10.0f", faults, rate(*last, figures, Counter::pages_in, at_ns),
                rate(*last, figures, Counter::pages_out, at_ns));
  } else {
    std::printf(" %10llu %10llu %10llu", static_cast<unsigned long long>(figures.faults()),
                static_cast<unsigned long long>(figures[Counter::pages_in]),
                static_cast<unsigned long long>(figures[Counter::pages_out]));
  }
  std::printf(" %9s  %s\n", duration_text(figures.fault_latency.percentile_ns(0.99)).c_str(),
              text_of(view->far_url).c_str());
}

}  // namespace

void print_table(const std::vector<StatView>& views, LastLooks& looks, bool rates) {
  std::string unit = rates ? "/s" : "";
  std::string header = "    PID  PROGRAM              BUDGET   RESIDENT        FAR " +
                       std::string(rates ? "  " : "    ") + "FAULTS" + unit + (rates ? "  " : "    ") + " PAGES IN" +
                       unit + " " + (rates ? "OUT/s" : "PAGES OUT") + "  FAULT P99  FAR DEVICE";
  std::printf("%s\n", coloured(kBold, header).c_str());
  std::uint64_t at_ns = now_ns();
  LastLooks seen;
  for (const StatView& view : views) {
    print_row(view, rates ? last_of(looks, view->pid) : nullptr, at_ns);
    note(seen, *view, at_ns);
  }
  looks.swap(seen);
  if (views.empty()) std::printf("no program of yours runs under Hinterland; start one with 'hinterland run'\n");
}

void pause_for(std::uint64_t ns) {
  timespec pause{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&pause, nullptr);
}

}  // namespace hinterland::cli
