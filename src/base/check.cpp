#include "base/check.hpp"

#include <cstdlib>

#include "base/log.hpp"

namespace hinterland::detail {

void check_failed(const char* file, int line, const char* condition, long long left, long long right,
                  bool has_operands) {
  if (has_operands)
    log::error("internal error: %s:%d: %s does not hold (%lld against %lld); please report it", file, line, condition,
               left, right);
  else
    log::error("internal error: %s:%d: %s does not hold; please report it", file, line, condition);
  std::abort();
}

}  // namespace hinterland::detail
