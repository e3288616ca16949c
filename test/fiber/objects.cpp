// Fibers on threads and coroutines use far objects that do not fit into local memory, beside tables on pages, and
// check each value. What is printed is the same natively and far.
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "hinterland/fiber.hpp"
#include "hinterland/object.hpp"
#include "hinterland/object_pin.hpp"

namespace {

using namespace hl::fibers;

constexpr std::size_t kObjects = 200'000, kFibers = 64, kSteps = 400;

struct Item {
  std::uint64_t number;
  std::uint64_t visits;
  std::uint64_t filler[6];
};
using Items = std::vector<hl::far::ptr<Item>>;

std::uint64_t filler_of(std::uint64_t number, std::uint64_t at) { return (number * 0x9E3779B97F4A7C15u) ^ at; }

void check(const Item& item, std::uint64_t number) {
  for (std::uint64_t at = 0; at < 6; ++at)
    if (item.number != number || item.filler[at] != filler_of(number, at)) {
      std::printf("object %llu is damaged\n", static_cast<unsigned long long>(number));
      std::fflush(stdout);
      std::_Exit(1);
    }
}

// Each fiber has objects of its own to count visits in, and reads everybody's, two at a time.
void visit(Items& items, std::size_t fiber_number) {
  std::uint64_t random = fiber_number + 1;
  for (std::size_t step = 0; step < kSteps; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::size_t first = (random >> 33) % kObjects, second = (random >> 13) % kObjects;
    hl::far::scope held;
    const Item* const one = items[first].deref(held);
    if (step % 16 == 0) this_fiber::yield();  // the scope goes along
    check(*items[second].deref(held), second);
    check(*one, first);
    const std::size_t own = (random >> 40) % (kObjects / kFibers) * kFibers + fiber_number;
    items[own].deref_mut(held)->visits += 1;
  }
}

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Task follow(const Items& items, std::uint64_t random, std::size_t& running) {
  for (std::size_t step = 0; step < kSteps; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::size_t at = (random >> 33) % kObjects;
    const auto there = co_await items[at].pin();
    check(*there, at);
  }
  --running;
}

}  // namespace

int main() {
  Items items;
  for (std::uint64_t number = 0; number < kObjects; ++number) {
    Item item{number, 0, {}};
    for (std::uint64_t at = 0; at < 6; ++at) item.filler[at] = filler_of(number, at);
    items.push_back(hl::far::make<Item>(item));
  }
  std::thread coroutines([&items] {
    std::size_t running = 32;
    for (std::uint64_t i = 0; i < 32; ++i) follow(items, i + 1000, running);
    while (running != 0) hl::far::arrivals::of_this_thread().wait(std::chrono::seconds(1));
  });
  run({.workers = 3}, [&items] {
    std::vector<fiber> fibers;
    for (std::size_t i = 0; i < kFibers; ++i) fibers.emplace_back([&items, i] { visit(items, i); });
    for (fiber& each : fibers) each.join();
  });
  coroutines.join();
  std::uint64_t visits = 0;
  for (const auto& each : items) visits += each.read().visits;
  std::printf("%llu visits of %zu objects\n", static_cast<unsigned long long>(visits), kObjects);
}
