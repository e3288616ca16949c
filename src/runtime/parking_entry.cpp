// What the fibers' library finds of the runtime: hints that do not wait (fiber/parking.hpp).
#include <cerrno>

#include "base/inside.hpp"
#include "fiber/parking.hpp"
#include "hinterland/hint.h"
#include "paging/bus_signal.hpp"
#include "paging/pager.hpp"

namespace hinterland::hint {
namespace {

template <typename Body>
int with_pager(Body&& body) {
  Pager* pager = Pager::current();
  if (pager == nullptr || t_inside_runtime != 0) return 0;
  int errno_before = errno;
  bool result = body(*pager);
  errno = errno_before;
  return result ? 1 : 0;
}

Hint hint_of(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags) {
  return {.address = reinterpret_cast<std::uintptr_t>(address),
          .size = size,
          .read_ahead = read_ahead,
          .read_ahead_limited = (flags & HL_HINT_SEQUENTIAL) != 0,
          .write = (flags & HL_HINT_WRITE) != 0,
          .priority = static_cast<std::uint8_t>(flags >> HL_HINT_PRIORITY_SHIFT & 15)};
}

int begin(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags) {
  return with_pager([&](Pager& pager) { return pager.begin_hint(hint_of(address, size, read_ahead, flags)); });
}

int on_its_way(const void* address, std::size_t size) {
  return with_pager([&](Pager& pager) { return pager.is_on_its_way(hint_of(address, size, 0, 0)); });
}

int poll() {
  return with_pager([](Pager& pager) { return pager.poll_hints(); });
}

}  // namespace
}  // namespace hinterland::hint

// C linkage: parking.hpp declares it.
__attribute__((visibility("default"))) constinit const struct hl_parking hl_parking = {
    .begin = hinterland::hint::begin,
    .on_its_way = hinterland::hint::on_its_way,
    .poll = hinterland::hint::poll,
    .set_fault_parker = hinterland::bus_signal::set_parker,
};
