#include "floor/paging.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <optional>
#include <thread>

#include "floor/handler.hpp"
#include "floor/pager.hpp"
#include "floor/store.hpp"

namespace hinterland::bench {
namespace {

struct Scenario {
  bool random = true;
  Placement placement = Placement::hinted;
  Way way = Way::copy_clean;
  std::size_t run_pages = 1;
  std::size_t threads = 1;  // each pages its own part, with its own descriptor and handler
};

std::string name_of(const Scenario& scenario) {
  std::string name = scenario.random ? "paging/random/" : "paging/sequential/";
  name += std::string(name_of(scenario.placement)) + "/" + name_of(scenario.way);
  if (!scenario.random) name += "/run-" + std::to_string(scenario.run_pages);
  if (scenario.threads > 1) name += "/" + std::to_string(scenario.threads) + "-threads";
  return name;
}

struct Part {
  std::uint64_t pages_in = 0;
  double started_ns = 0, ended_ns = 0;
};

// One thread's share: its pager, who serves it, and the loop over it.
class Loop {
 public:
  Loop(const Scenario& scenario, const Settings& settings, std::size_t number)
      : scenario_(scenario),
        pager_(store_of(scenario, settings, number), shape_of(scenario, settings)),
        first_index_(number * pager_.pages()),
        random_(number + 1) {}

  // On the thread that will touch. Places the two threads of a handler pair, and fills the budget.
  void start(std::size_t number) {
    int own = processors()[number % processors().size()];
    bool other = scenario_.placement == Placement::other_cpu || scenario_.placement == Placement::other_cpu_spinning;
    if (other && processors().size() < 2) throw Unavailable("there is only one CPU");
    scenario_.placement == Placement::unpinned ? unpin() : pin_to(own);
    if (scenario_.placement == Placement::signal) signal_.emplace(pager_);
    if (has_handler(scenario_.placement)) {
      int handler = scenario_.placement == Placement::unpinned ? -1 : other ? processors()[1] : own;
      handler_.emplace(pager_, handler, scenario_.placement == Placement::other_cpu_spinning);
    }
    run_until([&] { return fetched_pages() >= pager_.shape().local_pages + pager_.shape().batch_pages; });
  }

  Part measure(double seconds) {
    std::uint64_t before = fetched_pages();
    Part part;
    part.started_ns = now_ns();
    double end = part.started_ns + seconds * 1e9;
    run_until([&] { return now_ns() >= end; });
    part.ended_ns = now_ns();
    part.pages_in = fetched_pages() - before;
    return part;
  }

 private:
  static std::span<std::byte> store_of(const Scenario& scenario, const Settings& settings, std::size_t number) {
    std::size_t bytes = settings.total_bytes / scenario.threads;
    return {filled_store(settings.total_bytes).data() + number * bytes, bytes};
  }
  static Pager::Shape shape_of(const Scenario& scenario, const Settings& settings) {
    return {scenario.way, scenario.run_pages, pages_of_bytes(settings.local_bytes) / scenario.threads,
            settings.evict_batch_pages,
            scenario.placement == Placement::signal ? Delivery::signal : Delivery::message};
  }
  std::uint64_t fetched_pages() const { return pager_.fetches() * scenario_.run_pages; }

  template <typename Done>
  void run_until(Done done) {
    constexpr int kTouchesBetweenLooks = 128;  // the clock is read seldom enough not to count
    do {
      for (int i = 0; i < kTouchesBetweenLooks; ++i) touch(next());
    } while (!done());
  }

  std::size_t next() {
    if (scenario_.random) return random_.below(pager_.pages());
    position_ = position_ + 1 == pager_.pages() ? 0 : position_ + 1;
    return position_;
  }

  void touch(std::size_t index) {
    if (scenario_.placement == Placement::hinted && !pager_.resident(index)) pager_.fetch(index);
    auto* words = reinterpret_cast<volatile std::uint64_t*>(pager_.page(index));
    if (words[0] != first_index_ + index) throw Failed("a page came back with another page's bytes");
    if (writes(scenario_.way)) words[1] = words[1] + 1;
  }

  Scenario scenario_;
  Pager pager_;
  std::optional<SignalHandler> signal_;
  std::optional<HandlerThread> handler_;  // ends before the pager does
  std::size_t first_index_;
  std::size_t position_ = 0;
  Random random_;
};

std::vector<double> measure_one(const Scenario& scenario, const Settings& settings) {
  Loop loop(scenario, settings, 0);
  loop.start(0);
  std::vector<double> values;
  for (int i = 0; i < settings.repeat; ++i) {
    Part part = loop.measure(settings.seconds);
    if (part.pages_in == 0) throw Failed("nothing was paged in");
    values.push_back((part.ended_ns - part.started_ns) / static_cast<double>(part.pages_in));
  }
  return values;
}

// Nanoseconds of wall time over the pages of all threads: with perfect scaling, the figure of one thread divided.
std::vector<double> measure_threads(const Scenario& scenario, const Settings& settings) {
  if (processors().size() < scenario.threads) throw Unavailable("there are fewer CPUs than threads");
  filled_store(settings.total_bytes);  // before the threads, which would all fill it
  std::vector<std::vector<Part>> parts(scenario.threads);
  std::vector<std::exception_ptr> failures(scenario.threads);
  std::barrier together(static_cast<std::ptrdiff_t>(scenario.threads));
  auto work = [&](std::size_t number) {
    int rounds_left = settings.repeat;
    try {
      Loop loop(scenario, settings, number);
      loop.start(number);
      for (; rounds_left > 0; --rounds_left) {
        together.arrive_and_wait();
        parts[number].push_back(loop.measure(settings.seconds));
      }
    } catch (...) {
      failures[number] = std::current_exception();
      together.arrive_and_drop();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < scenario.threads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  std::vector<double> values;
  for (std::size_t round = 0; round < static_cast<std::size_t>(settings.repeat); ++round) {
    double pages_per_ns = 0;
    for (const auto& of_thread : parts) {
      const Part& part = of_thread[round];
      pages_per_ns += static_cast<double>(part.pages_in) / (part.ended_ns - part.started_ns);
    }
    values.push_back(1 / pages_per_ns);
  }
  return values;
}

constexpr Way kWays[] = {Way::copy_clean, Way::copy_dirty_move, Way::copy_dirty_protect, Way::move_clean,
                         Way::move_dirty};
constexpr Placement kHandlers[] = {Placement::signal, Placement::same_cpu, Placement::other_cpu,
                                   Placement::other_cpu_spinning, Placement::unpinned};

std::vector<Scenario> scenarios() {
  std::vector<Scenario> list;
  for (Way way : kWays) list.push_back({.way = way});
  for (Placement placement : kHandlers)
    for (Way way : kWays) list.push_back({.placement = placement, .way = way});
  for (std::size_t run : {1, 4, 16, 64})
    for (Way way : kWays) list.push_back({.random = false, .way = way, .run_pages = run});
  for (std::size_t run : {1, 4, 16, 64})
    for (Way way : kWays)
      list.push_back({.random = false, .placement = Placement::same_cpu, .way = way, .run_pages = run});
  for (Placement placement : {Placement::hinted, Placement::same_cpu})
    for (Way way : {Way::copy_clean, Way::copy_dirty_move})
      list.push_back({.placement = placement, .way = way, .threads = 2});
  return list;
}

}  // namespace

std::vector<Measurement> paging_measurements() {
  std::vector<Measurement> list;
  for (const Scenario& scenario : scenarios()) {
    list.push_back({name_of(scenario), "ns/page", [scenario](const Settings& settings) {
                      return scenario.threads == 1 ? measure_one(scenario, settings)
                                                   : measure_threads(scenario, settings);
                    }});
  }
  return list;
}

}  // namespace hinterland::bench
