// Locale data stays local: libc reads it whenever a thread starts, and in a forked child the runtime's own threads
// start before anything far can be had (invariant I6).
#include <locale.h>

#include "base/inside.hpp"
#include "preload/next.hpp"
#include "preload/state.hpp"

namespace {

using namespace hinterland;

Next<char*(int, const char*)> g_setlocale("setlocale");
Next<locale_t(int, const char*, locale_t)> g_newlocale("newlocale");
Next<locale_t(locale_t)> g_duplocale("duplocale");

}  // namespace

HL_INTERPOSED char* setlocale(int category, const char* locale) noexcept {
  InsideRuntime inside;
  return g_setlocale.get()(category, locale);
}

HL_INTERPOSED locale_t newlocale(int mask, const char* locale, locale_t base) noexcept {
  InsideRuntime inside;
  return g_newlocale.get()(mask, locale, base);
}

HL_INTERPOSED locale_t duplocale(locale_t locale) noexcept {
  InsideRuntime inside;
  return g_duplocale.get()(locale);
}
