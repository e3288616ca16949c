// Our fibers.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "fiber/contest.hpp"
#include "hinterland/fiber.hpp"

namespace hinterland::bench {
namespace {

using namespace hl::fibers;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double switching() {
  double took = 0;
  run({.workers = 1, .stack_bytes = kStackBytes}, [&] {
    auto turns = [] {
      for (int i = 0; i < kSwitches / 2; ++i) this_fiber::yield();
    };
    fiber first(turns), second(turns);
    double begin = now_ns();
    first.join();
    second.join();
    took = now_ns() - begin;
  });
  return took / kSwitches;
}

double spawning() {
  double took = 0;
  run({.workers = 1, .stack_bytes = kStackBytes}, [&] {
    double begin = now_ns();
    for (int i = 0; i < kSpawns; ++i) fiber([] {}).join();
    took = now_ns() - begin;
  });
  return took / kSpawns;
}

double stealing() {
  std::vector<double> times;
  run({.workers = 2, .stack_bytes = kStackBytes, .spin = std::chrono::seconds(1)}, [&] {
    for (int i = 0; i < kSteals; ++i) {
      std::atomic<double> started{0};
      double ready = now_ns();
      fiber stolen([&] { started = now_ns(); });
      while (started == 0) {
      }
      times.push_back(started - ready);
      stolen.join();
    }
  });
  return median(times);
}

double waking(std::chrono::microseconds spin, std::chrono::microseconds pause) {
  std::vector<double> times;
  semaphore signal(0), answered(0);
  std::atomic<double> sent{0};
  std::thread device([&] {
    for (int i = 0; i < kWakes; ++i) {
      double until = now_ns() + static_cast<double>(pause.count()) * 1000;
      while (now_ns() < until) {
      }
      sent = now_ns();
      signal.release();
      answered.acquire();
    }
  });
  run({.workers = 1, .stack_bytes = kStackBytes, .spin = spin}, [&] {
    for (int i = 0; i < kWakes; ++i) {
      signal.acquire();
      times.push_back(now_ns() - sent);
      answered.release();
    }
  });
  device.join();
  return median(times);
}

double memory() {
  double bytes = 0;
  run({.workers = 1, .stack_bytes = kStackBytes}, [&] {
    std::vector<fiber> fibers;
    fibers.reserve(kParked);
    semaphore never(0);
    std::size_t before = resident_bytes();
    for (int i = 0; i < kParked; ++i) fibers.emplace_back([&] { never.acquire(); });
    this_fiber::yield();
    bytes = static_cast<double>(resident_bytes() - before) / kParked;
    never.release(kParked);
    for (fiber& each : fibers) each.join();
  });
  return bytes;
}

}  // namespace

std::vector<FiberFigure> measure_hinterland() {
  using namespace std::chrono_literals;
  return {{"switch", switching(), "ns"},
          {"spawn", spawning(), "ns"},
          {"steal", stealing(), "ns"},
          {"wake/spinning", waking(1s, 20us), "ns"},
          {"wake/sleeping", waking(0us, 500us), "ns"},
          {"memory", memory(), "bytes"}};
}

}  // namespace hinterland::bench
