#include "base/keeping_registers.hpp"

#include <cpuid.h>

unsigned char hl_save_how = 0;

namespace hinterland {

void prepare_to_keep_registers() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return;
  constexpr unsigned kExtendedState = 13, kHasXsavec = 2;
  hl_save_how = __get_cpuid_count(kExtendedState, 1, &a, &b, &c, &d) != 0 && (a & kHasXsavec) != 0 ? 2 : 1;
}

}  // namespace hinterland
