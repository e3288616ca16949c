// CHECK is always on, DCHECK only in debug builds. Both print and abort; neither allocates.
#pragma once

namespace hinterland::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, long long left, long long right,
                               bool has_operands);
}

#define HL_CHECK(condition)                                                            \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::hinterland::detail::check_failed(__FILE__, __LINE__, #condition, 0, 0, false); \
  } while (0)

// Compares two integers and prints both when the comparison fails: HL_CHECK_OP(used, <=, limit).
#define HL_CHECK_OP(left, op, right)                                                                               \
  do {                                                                                                             \
    auto hl_left = (left);                                                                                         \
    auto hl_right = (right);                                                                                       \
    if (!(hl_left op hl_right)) [[unlikely]]                                                                       \
      ::hinterland::detail::check_failed(__FILE__, __LINE__, #left " " #op " " #right,                             \
                                         static_cast<long long>(hl_left), static_cast<long long>(hl_right), true); \
  } while (0)

#ifdef NDEBUG
#define HL_DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#define HL_DCHECK_OP(left, op, right) static_cast<void>(sizeof((left)op(right)))
#else
#define HL_DCHECK(condition) HL_CHECK(condition)
#define HL_DCHECK_OP(left, op, right) HL_CHECK_OP(left, op, right)
#endif
