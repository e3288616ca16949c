// In libhinterland.so fork is the C library's.
#include "object/entry.hpp"

namespace {

__attribute__((constructor)) void begin() { hinterland::object::register_fork_handlers(); }

}  // namespace
