// The measured part on fibers; for applications that link to hinterland-fiber.
#pragma once

#include <exception>
#include <hinterland/fiber.hpp>
#include <vector>

#include "common/settings.hpp"
#include "common/team.hpp"

namespace apps {

// body(i) for i of [0, count) on fibers, on so many threads. Throws the first exception of any, when all have ended.
template <typename Body>
void on_fibers(unsigned threads, unsigned count, Body&& body) {
  hl::fibers::run({.workers = threads}, [&] {
    std::vector<hl::fibers::fiber> fibers;
    for (unsigned i = 0; i < count; ++i) fibers.emplace_back([&body, i] { body(i); });
    std::exception_ptr error;
    for (hl::fibers::fiber& each : fibers) try {
        each.join();
      } catch (...) {
        if (error == nullptr) error = std::current_exception();
      }
    if (error != nullptr) std::rethrow_exception(error);
  });
}

// How many do the measured part, and them at work, as the options have it.
inline unsigned members(const Settings& settings) {
  return settings.fibers != 0 ? settings.fibers : settings.threads;
}
template <typename Body>
void on_team(const Settings& settings, Body&& body) {
  if (settings.fibers != 0)
    on_fibers(settings.threads, settings.fibers, body);
  else
    on_threads(settings.threads, body);
}

}  // namespace apps
