// Fibers that all do the same, until the last has ended.
#pragma once

#include <cstddef>
#include <vector>

#include "hinterland/fiber.hpp"

namespace hinterland::object::testing {

// Runs `count` fibers of body(i). `park`: whether they park where they miss, or block their worker.
template <typename Body>
void run_fibers(unsigned workers, std::size_t count, Body&& body, bool park = true) {
  hl::fibers::run({.workers = workers, .hints_park = park}, [&] {
    std::vector<hl::fibers::fiber> all;
    for (std::size_t i = 0; i < count; ++i) all.emplace_back([&body, i] { body(i); });
    for (hl::fibers::fiber& each : all) each.join();
  });
}

}  // namespace hinterland::object::testing
