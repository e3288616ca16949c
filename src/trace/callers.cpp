#include "trace/callers.hpp"

#include <unwind.h>

#include <algorithm>

// Where this library lies.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char etext[] __attribute__((visibility("hidden")));

namespace hinterland::trace {
namespace {

struct Callers {
  std::uint64_t* addresses;
  std::size_t room;
  std::size_t count = 0;
};

_Unwind_Reason_Code note(_Unwind_Context* context, void* argument) {
  auto& callers = *static_cast<Callers*>(argument);
  std::uint64_t address = _Unwind_GetIP(context) - 1;
  bool ours =
      address >= reinterpret_cast<std::uintptr_t>(__ehdr_start) && address < reinterpret_cast<std::uintptr_t>(etext);
  if (!ours) callers.addresses[callers.count++] = address;
  return callers.count == callers.room ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

void find_callers(std::uint64_t* addresses, std::size_t count) {
  std::fill_n(addresses, count, 0);
  Callers callers{addresses, count};
  _Unwind_Backtrace(note, &callers);
}

}  // namespace hinterland::trace
