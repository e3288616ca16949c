// Far objects in an event loop: coroutines that follow chains of accounts, and wait for those that are far without
// blocking the thread. Runs as it is; under `hinterland run` most accounts are far. With an argument, it starts the
// heap itself: so many MiB local, the rest where the second one says.
//
//     c++ -std=c++20 -O2 main.cpp -o arrivals                                 all local, or under `hinterland run`
//     c++ -std=c++20 -O2 main.cpp -o arrivals $(pkg-config --cflags --libs hinterland-runtime)
//     ./arrivals 8 tcp://127.0.0.1:7700
#include <hinterland/object_pin.hpp>

#include <sys/epoll.h>
#include <unistd.h>

#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

namespace {

struct account {
  std::uint64_t balance;
  std::uint32_t next;  // whom to ask then
  char name[52];
};

// A coroutine that begins at once, and ends by itself.
struct task {
  struct promise_type {
    task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

using accounts = std::vector<hl::far::ptr<account>>;

task follow(const accounts& all, std::uint32_t at, int steps, std::uint64_t& sum, int& running) {
  while (steps-- > 0) {
    const auto there = co_await all[at].pin();
    sum += there->balance;
    at = there->next;
  }
  --running;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::uint32_t kAccounts = 200'000;
  if (argc > 1 && !hl::far::start({.local_bytes = std::strtoull(argv[1], nullptr, 10) << 20,
                                   .device_url = argc > 2 ? argv[2] : "zmem:"}))
    std::fprintf(stderr, "not linked to libhinterland.so: all objects are local\n");
  accounts all;
  for (std::uint32_t i = 0; i < kAccounts; ++i)
    all.push_back(hl::far::make<account>(account{i % 100, (i * 7919 + 1) % kAccounts, "somebody"}));

  hl::far::arrivals& arrivals = hl::far::arrivals::of_this_thread();
  const int events = epoll_create1(0);
  epoll_event what{};
  what.events = EPOLLIN;
  if (const int descriptor = arrivals.descriptor(); descriptor >= 0)
    epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &what);

  std::uint64_t sum = 0;
  int running = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    ++running;
    follow(all, i * 1000, 500, sum, running);
  }
  while (running != 0) {
    epoll_wait(events, &what, 1, -1);  // with the sockets of a server beside it
    arrivals.poll();
  }
  close(events);
  std::printf("%llu in 32 chains\n", static_cast<unsigned long long>(sum));
}
