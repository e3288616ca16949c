// Boost.Fiber, with its work-stealing algorithm where two threads take part.
#include <algorithm>
#include <atomic>
#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/all.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "fiber/contest.hpp"

namespace hinterland::bench {
namespace {

namespace fibers = boost::fibers;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Guard pages, as ours have; and the stacks are kept for the next fiber, as ours are.
template <typename Body>
fibers::fiber start(Body&& body) {
  static thread_local fibers::pooled_fixedsize_stack stacks(kStackBytes);
  return fibers::fiber(fibers::launch::post, std::allocator_arg, stacks, std::forward<Body>(body));
}

// The algorithm belongs to the thread, so that each measurement has threads of its own.
template <typename Body>
double on_new_thread(Body&& body) {
  double result = 0;
  std::thread([&] { result = body(); }).join();
  return result;
}

double switching() {
  return on_new_thread([] {
    auto turns = [] {
      for (int i = 0; i < kSwitches / 2; ++i) boost::this_fiber::yield();
    };
    fibers::fiber first = start(turns), second = start(turns);
    double begin = now_ns();
    first.join();
    second.join();
    return (now_ns() - begin) / kSwitches;
  });
}

double spawning() {
  return on_new_thread([] {
    double begin = now_ns();
    for (int i = 0; i < kSpawns; ++i) start([] {}).join();
    return (now_ns() - begin) / kSpawns;
  });
}

double stealing() {
  std::atomic<bool> over{false};
  std::vector<double> times;
  fibers::mutex mutex;
  fibers::condition_variable_any changed;
  std::thread thief([&] {
    fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(2u, false);  // looks for work all the time
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return over.load(); });
  });
  on_new_thread([&] {
    fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(2u, false);
    for (int i = 0; i < kSteals; ++i) {
      std::atomic<double> started{0};
      double ready = now_ns();
      // Not from the pool, which belongs to a thread.
      fibers::fiber stolen(fibers::launch::post, std::allocator_arg, fibers::fixedsize_stack(kStackBytes),
                           [&] { started = now_ns(); });
      // Now and then nobody comes before this fiber waits: then it counts as what it took until we gave up.
      while (started == 0 && now_ns() - ready < 1e6) {
      }
      times.push_back((started != 0 ? started.load() : now_ns()) - ready);
      stolen.join();
    }
    {
      std::lock_guard lock(mutex);
      over = true;
    }
    changed.notify_all();
    return 0.0;
  });
  thief.join();
  return median(times);
}

// Round robin: work stealing with one thread looks for another one for ever. It always sleeps.
double waking(std::chrono::microseconds pause) {
  std::vector<double> times;
  fibers::unbuffered_channel<int> signal;
  std::atomic<double> sent{0};
  std::atomic<int> answered{0};
  std::thread fiber_thread([&] {
    int number = 0;
    while (signal.pop(number) == fibers::channel_op_status::success) {
      times.push_back(now_ns() - sent);
      ++answered;
    }
  });
  on_new_thread([&] {
    for (int i = 0; i < kWakes; ++i) {
      double until = now_ns() + static_cast<double>(pause.count()) * 1000;
      while (now_ns() < until) {
      }
      sent = now_ns();
      signal.push(i);
      while (answered <= i) {
      }
    }
    signal.close();
    return 0.0;
  });
  fiber_thread.join();
  return median(times);
}

double memory() {
  return on_new_thread([] {
    std::vector<fibers::fiber> parked;
    parked.reserve(kParked);
    fibers::mutex mutex;
    fibers::condition_variable changed;
    bool over = false;
    std::size_t before = resident_bytes();
    for (int i = 0; i < kParked; ++i)
      parked.emplace_back(fibers::launch::post, std::allocator_arg, fibers::protected_fixedsize_stack(kStackBytes),
                          [&] {
                            std::unique_lock lock(mutex);
                            changed.wait(lock, [&] { return over; });
                          });
    boost::this_fiber::yield();
    double bytes = static_cast<double>(resident_bytes() - before) / kParked;
    {
      std::lock_guard lock(mutex);
      over = true;
    }
    changed.notify_all();
    for (fibers::fiber& each : parked) each.join();
    return bytes;
  });
}

}  // namespace

std::vector<FiberFigure> measure_boost() {
  using namespace std::chrono_literals;
  return {{"switch", switching(), "ns"},
          {"spawn", spawning(), "ns"},
          {"steal", stealing(), "ns"},
          {"wake/sleeping", waking(500us), "ns"},
          {"memory", memory(), "bytes"}};
}

}  // namespace hinterland::bench
