// The entry points of regions: hinterland/region.h.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "paging/pager.hpp"

struct hl_region;
struct hl_region_options;

namespace hinterland::hint {

// As region.h says. Any thread, not inside the runtime.
int create_region(hl_region* region, std::size_t size, const hl_region_options* options, std::size_t options_size);
// For programs that were compiled when options ended before `device`.
int create_region_without_device(hl_region* region, std::size_t size, const hl_region_options* options);
int destroy_region(hl_region* region);
const char* region_error();

// The pager that regions lie in, started if that is what the library does; nullptr where the program runs without far
// memory, and regions are ordinary memory. Each library has its own: src/preload/runtime.cpp and
// src/runtime/linked.cpp.
Result<Pager*> pager_for_regions();

}  // namespace hinterland::hint
