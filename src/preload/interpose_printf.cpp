// What libraries register with printf (libquadmath does, and with it every program that Fortran's run time is part
// of) stays local: libc reads those tables in each printf from then on, in the runtime's messages, too, and those
// come from threads that serve faults (invariant I6).
#include <printf.h>

#include "base/inside.hpp"
#include "preload/next.hpp"
#include "preload/state.hpp"

namespace {

using namespace hinterland;

Next<int(int, printf_function*, printf_arginfo_size_function*)> g_specifier("register_printf_specifier");
Next<int(int, printf_function*, printf_arginfo_function*)> g_function("register_printf_function");
Next<int(const wchar_t*)> g_modifier("register_printf_modifier");
Next<int(printf_va_arg_function*)> g_type("register_printf_type");

}  // namespace

HL_INTERPOSED int register_printf_specifier(int specifier, printf_function function,
                                            printf_arginfo_size_function arguments) noexcept {
  InsideRuntime inside;
  return g_specifier.get()(specifier, function, arguments);
}

HL_INTERPOSED int register_printf_function(int specifier, printf_function function,
                                           printf_arginfo_function arguments) noexcept {
  InsideRuntime inside;
  return g_function.get()(specifier, function, arguments);
}

HL_INTERPOSED int register_printf_modifier(const wchar_t* modifier) noexcept {
  InsideRuntime inside;
  return g_modifier.get()(modifier);
}

HL_INTERPOSED int register_printf_type(printf_va_arg_function function) noexcept {
  InsideRuntime inside;
  return g_type.get()(function);
}
