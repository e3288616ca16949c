#!/usr/bin/env python3
"""Misses of libCacheSim's policies on twenty traces, for src/policy/cache_test.cpp to compare ours with.

Needs the package libcachesim (PyPI). Writes src/policy/testing/libcachesim_misses.hpp:

    bench/policies/against_libcachesim.py
"""
import pathlib
import subprocess

import libcachesim

TRACES = 20
LENGTH = 40000
OUTPUT = pathlib.Path(__file__).parents[2] / "src/policy/testing/libcachesim_misses.hpp"

POLICIES = {
    "fifo": libcachesim.FIFO,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
    "2q": libcachesim.TwoQ,
    "arc": libcachesim.ARC,
}


def random_numbers(seed):
    """32-bit numbers, the same as in src/policy/testing/page_traces.hpp."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 32


def trace(number):
    """Yields page numbers. Five kinds: even, skewed, loops, scans beside a hot set, phases."""
    pages = 800 + 150 * number
    rng = random_numbers(number + 1)
    for at in range(LENGTH):
        u = next(rng)
        even = u * pages >> 32
        skewed = ((u * u >> 32) * u >> 32) * pages >> 32
        kind = number % 5
        if kind == 0:
            yield even
        elif kind == 1:
            yield skewed
        elif kind == 2:
            yield at % (pages // 4) if u & 3 else skewed
        elif kind == 3:
            yield pages + at if u & 1 else skewed
        else:
            yield at // 5000 * pages // 2 + skewed


def capacity(number):
    return (800 + 150 * number) // (3, 5, 10)[number % 3]


def misses(policy, number):
    cache = policy(capacity(number))
    request = libcachesim.Request()
    request.obj_size = 1
    count = 0
    for page in trace(number):
        request.obj_id = page + 1
        count += not cache.get(request)
    return count


def fewest_misses(number):
    """Belady's, which is told when each page is used next."""
    pages = list(trace(number))
    nexts, last = [], {}
    for at in reversed(range(LENGTH)):
        nexts.append(last.get(pages[at], 2**62))
        last[pages[at]] = at
    cache = libcachesim.Belady(capacity(number))
    request = libcachesim.Request()
    request.obj_size = 1
    count = 0
    for page, after in zip(pages, reversed(nexts)):
        request.obj_id, request.next_access_vtime = page + 1, after
        count += not cache.get(request)
    return count


def main():
    rows = []
    for number in range(TRACES):
        figures = ", ".join(f"{misses(policy, number):5}" for policy in POLICIES.values())
        rows.append(f"    {{{{{figures}}}}},  // room for {capacity(number)}")
    names = ", ".join(f'"{name}"' for name in POLICIES)
    lirs = ", ".join(str(misses(libcachesim.LIRS, number)) for number in range(TRACES))
    belady = ", ".join(str(fewest_misses(number)) for number in range(TRACES))
    OUTPUT.write_text(
        f"""// Misses of libCacheSim {libcachesim.__version__}, written by bench/policies/against_libcachesim.py.
#pragma once

#include <array>
#include <cstdint>

namespace hinterland {{

constexpr std::array kComparedPolicies = {{{names}}};
// By trace (page_traces.hpp) and policy.
constexpr std::array<std::array<std::uint32_t, kComparedPolicies.size()>, {TRACES}> kLibCacheSimMisses = {{{{
"""
        + "\n".join(rows)
        + f"""
}}}};

// Of its LIRS, which is not quite the paper's.
constexpr std::array<std::uint32_t, {TRACES}> kLibCacheSimLirsMisses = {{{lirs}}};

// The fewest that are possible.
constexpr std::array<std::uint32_t, {TRACES}> kLibCacheSimBeladyMisses = {{{belady}}};

}}  // namespace hinterland
"""
    )
    subprocess.run(["clang-format-19", "-i", OUTPUT], check=True)


if __name__ == "__main__":
    main()
