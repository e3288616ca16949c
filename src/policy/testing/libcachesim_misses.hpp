// Misses of libCacheSim 0.3.5, written by bench/policies/against_libcachesim.py.
#pragma once

#include <array>
#include <cstdint>

namespace hinterland {

constexpr std::array kComparedPolicies = {"fifo", "sieve", "s3-fifo", "2q", "arc"};
// By trace (page_traces.hpp) and policy.
constexpr std::array<std::array<std::uint32_t, kComparedPolicies.size()>, 20> kLibCacheSimMisses = {{
    {{26745, 26703, 26727, 26738, 26810}},  // room for 266
    {{23271, 18413, 19100, 20058, 20098}},  // room for 190
    {{35463, 25335, 25430, 27780, 25663}},  // room for 110
    {{33205, 28226, 27769, 28799, 27732}},  // room for 416
    {{23548, 25497, 21414, 21572, 21197}},  // room for 280
    {{35987, 35962, 35966, 35989, 36023}},  // room for 155
    {{18258, 14854, 15194, 15923, 16128}},  // room for 566
    {{25994, 13378, 15875, 19246, 15469}},  // room for 370
    {{36014, 32217, 31866, 32544, 31863}},  // room for 200
    {{18796, 24635, 19232, 18882, 17688}},  // room for 716
    {{31913, 32071, 31926, 31987, 31906}},  // room for 460
    {{28152, 23572, 23438, 24404, 24131}},  // room for 245
    {{9801, 3914, 3913, 5283, 3904}},       // room for 866
    {{34518, 30728, 30097, 30968, 30060}},  // room for 550
    {{28383, 30092, 26608, 26747, 26050}},  // room for 290
    {{26898, 26932, 26786, 26822, 26761}},  // room for 1016
    {{23304, 19388, 19380, 20223, 20059}},  // room for 640
    {{35332, 25671, 25593, 28258, 25935}},  // room for 335
    {{33205, 29613, 29000, 30254, 28968}},  // room for 1166
    {{23685, 28111, 24058, 24226, 22721}},  // room for 730
}};

// Of its LIRS, which is not quite the paper's.
constexpr std::array<std::uint32_t, 20> kLibCacheSimLirsMisses = {26768, 19839, 25023, 27596, 21213, 35998, 15405,
                                                                  13853, 31792, 18634, 31953, 23996, 3889,  29965,
                                                                  26003, 26831, 19959, 25205, 28811, 23421};

// The fewest that are possible.
constexpr std::array<std::uint32_t, 20> kLibCacheSimBeladyMisses = {12822, 11701, 19185, 24113, 12658, 24162, 8005,
                                                                    7024,  28363, 10447, 18104, 16522, 2928,  26154,
                                                                    17665, 13388, 11942, 19099, 24800, 14493};

}  // namespace hinterland
