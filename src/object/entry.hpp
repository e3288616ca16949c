// What programs see of the heap of far objects: struct runtime of hinterland/object_runtime.hpp, exported as
// hl_objects. One heap a process.
#pragma once

#include <string>

#include "base/error.hpp"
#include "object/heap.hpp"

namespace hinterland::object {

// Starts the process's heap over a device that is open. For tests, which then end it again: no object may be left.
Status begin_heap(const HeapOptions& options, std::unique_ptr<far::Device> device);
void end_heap();
Heap* current_heap();

}  // namespace hinterland::object
