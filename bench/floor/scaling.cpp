#include "floor/scaling.hpp"

#include <algorithm>
#include <barrier>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "floor/calls.hpp"

namespace hinterland::bench {
namespace {

// A thread's own part: what it works on, and what fills it.
struct Part {
  Part(std::size_t bytes, Faults& faults, bool write_protect) : target(bytes), other(bytes) {
    std::memset(other.data(), 0x5a, bytes);
    faults.add(target, write_protect);
  }
  Mapping target, other;
  std::vector<iovec> scattered;  // every page once, in an order that no two calls are neighbours in
};

using Step = std::function<void(Part&)>;  // over all pages of a part

// Runs `step` in all threads at once, again and again; `prepare` before each is not timed. Nanoseconds a page.
class Team {
 public:
  Team(std::vector<std::unique_ptr<Part>>& parts, Step prepare, Step step)
      : parts_(parts),
        prepare_(std::move(prepare)),
        step_(std::move(step)),
        together_(static_cast<std::ptrdiff_t>(parts.size()) + 1),
        failures_(parts.size()),
        starts_(parts.size()),
        ends_(parts.size()) {}

  std::vector<double> repeat(int times) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < parts_.size(); ++i) threads.emplace_back([this, i, times] { work(i, times); });
    std::vector<double> values;
    auto pages = static_cast<double>(parts_.size() * parts_[0]->target.pages());
    for (int i = 0; i <= times; ++i) {
      together_.arrive_and_wait();  // prepared
      together_.arrive_and_wait();  // done
      double ns = *std::ranges::max_element(ends_) - *std::ranges::min_element(starts_);
      if (i > 0) values.push_back(ns / pages);  // the first one warms up
      together_.arrive_and_wait();              // read
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures_)
      if (failure) std::rethrow_exception(failure);
    return values;
  }

 private:
  void work(std::size_t number, int times) {
    pin_to(processors()[number % processors().size()]);
    for (int i = 0; i <= times; ++i) {
      guarded(number, prepare_);
      together_.arrive_and_wait();
      starts_[number] = now_ns();
      guarded(number, step_);
      ends_[number] = now_ns();
      together_.arrive_and_wait();
      together_.arrive_and_wait();
    }
  }
  void guarded(std::size_t number, const Step& step) {
    try {
      if (!failures_[number]) step(*parts_[number]);
    } catch (...) {
      failures_[number] = std::current_exception();
    }
  }

  std::vector<std::unique_ptr<Part>>& parts_;
  Step prepare_, step_;
  std::barrier<> together_;
  std::vector<std::exception_ptr> failures_;
  std::vector<double> starts_, ends_;  // of each thread: this one may be late itself
};

// Answers each fault with a zero page. Ends when `bell` is touched, which is not registered for anything else.
class ZeroHandler {
 public:
  explicit ZeroHandler(Faults& faults) : faults_(faults), bell_(kPageSize) {
    faults_.add(bell_);
    thread_ = std::thread([this] { serve(); });
  }
  ~ZeroHandler() {
    *reinterpret_cast<volatile char*>(bell_.data());
    thread_.join();
  }

 private:
  void serve() {
    unpin();
    std::vector<std::byte*> pages;
    for (bool end = false; !end;) {
      pages.clear();
      faults_.read_messages(pages);
      for (std::byte* page : pages) {
        faults_.zero(page, kPageSize);
        end = end || page == bell_.data();
      }
    }
  }

  Faults& faults_;
  Mapping bell_;
  std::thread thread_;
};

std::vector<std::unique_ptr<Part>> parts_for(const Settings& settings, Faults& faults, unsigned threads,
                                             bool write_protect = false) {
  std::size_t pages = settings.primitive_bytes / kPageSize / threads / 64 * 64;
  if (pages == 0) throw Unavailable("--primitive-size is less than 256K a thread");
  std::vector<std::unique_ptr<Part>> parts;
  for (unsigned i = 0; i < threads; ++i) {
    parts.push_back(std::make_unique<Part>(bytes_of_pages(pages), faults, write_protect));
    std::size_t stride = pages / 2 + 1;  // odd where pages is a multiple of four, so that it reaches every page
    for (std::size_t at = 0; at < pages; ++at)
      parts.back()->scattered.push_back({parts.back()->target.page(at * stride % pages), kPageSize});
  }
  return parts;
}

std::vector<double> zero_faults(const Settings& settings, unsigned threads) {
  Faults faults;
  auto parts = parts_for(settings, faults, threads);
  ZeroHandler handler(faults);
  return Team(
             parts, [](Part& part) { discard(part.target.data(), part.target.bytes()); },
             [](Part& part) {
               for (std::size_t i = 0; i < part.target.pages(); ++i)
                 *reinterpret_cast<volatile char*>(part.target.page(i));
             })
      .repeat(settings.repeat);
}

std::vector<double> copies(const Settings& settings, unsigned threads, std::size_t run) {
  Faults faults;
  auto parts = parts_for(settings, faults, threads);
  return Team(
             parts, [](Part& part) { discard(part.target.data(), part.target.bytes()); },
             [&](Part& part) {
               for (std::size_t i = 0; i < part.target.pages(); i += run)
                 faults.copy(part.target.page(i), part.other.page(i), bytes_of_pages(run));
             })
      .repeat(settings.repeat);
}

std::vector<double> unmaps(const Settings& settings, unsigned threads, std::size_t batch) {
  if (batch > 1 && !can_discard_vectors())
    throw Unavailable("process_madvise on oneself takes no DONTNEED here (Linux 6.13)");
  Faults faults;
  auto parts = parts_for(settings, faults, threads);
  return Team(
             parts, [&](Part& part) { faults.copy(part.target.data(), part.other.data(), part.target.bytes()); },
             [&](Part& part) {
               std::span<const iovec> pages(part.scattered);
               for (std::size_t i = 0; i < pages.size(); i += batch) discard(pages.subspan(i, batch));
             })
      .repeat(settings.repeat);
}

// Contiguous runs: Linux has no call that protects scattered pages at once.
std::vector<double> protections(const Settings& settings, unsigned threads, std::size_t run) {
  Faults faults;
  auto parts = parts_for(settings, faults, threads, true);
  for (auto& part : parts) faults.copy(part->target.data(), part->other.data(), part->target.bytes());
  return Team(
             parts, [&](Part& part) { faults.protect(part.target.data(), part.target.bytes(), false); },
             [&](Part& part) {
               for (std::size_t i = 0; i < part.target.pages(); i += run)
                 faults.protect(part.target.page(i), bytes_of_pages(run), true);
             })
      .repeat(settings.repeat);
}

// Out of the target, as an eviction does; back again in one piece, which is not timed.
std::vector<double> moves(const Settings& settings, unsigned threads, std::size_t run) {
  Faults faults;
  if (!faults.can_move()) throw Unavailable("this kernel has no UFFDIO_MOVE (Linux 6.8)");
  auto parts = parts_for(settings, faults, threads);
  for (auto& part : parts) faults.add(part->other);  // all of it is at its source, as after an eviction
  return Team(
             parts, [&](Part& part) { faults.move(part.target.data(), part.other.data(), part.target.bytes()); },
             [&](Part& part) {
               for (std::size_t i = 0; i < part.target.pages(); i += run)
                 faults.move(part.other.page(i), part.target.page(i), bytes_of_pages(run));
             })
      .repeat(settings.repeat);
}

using Measure = std::vector<double> (*)(const Settings&, unsigned, std::size_t);

}  // namespace

std::vector<Measurement> scaling_measurements() {
  constexpr std::pair<const char*, Measure> kCalls[] = {
      {"copy", copies}, {"unmap", unmaps}, {"protect", protections}, {"move", moves}};
  std::vector<Measurement> list;
  for (unsigned threads : {1u, 2u, 4u}) {
    if (threads > processors().size()) break;
    std::string ending = "/" + std::to_string(threads) + "-threads";
    list.push_back({"scaling/zero-fault/1" + ending, "ns/page",
                    [threads](const Settings& settings) { return zero_faults(settings, threads); }});
    for (auto [name, measure] : kCalls)
      for (std::size_t batch : {1, 16})
        list.push_back({std::string("scaling/") + name + "/" + std::to_string(batch) + ending, "ns/page",
                        [measure = measure, threads, batch](const Settings& settings) {
                          return measure(settings, threads, batch);
                        }});
  }
  return list;
}

}  // namespace hinterland::bench
