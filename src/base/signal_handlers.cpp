#include "base/signal_handlers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/inside.hpp"

namespace hinterland::signal_handlers {
namespace {

static_assert(SIGSEGV == 11 && SIGBUS == 7 && SIGILL == 4 && SIGFPE == 8 && SIGTRAP == 5 && SIGSYS == 31);

std::atomic<bool> g_promised{false};
std::atomic<bool> g_looked{false};
std::atomic<bool> g_expected{false};
std::atomic<void (*)()> g_settle{nullptr};

// SigCgt of /proc/self/status: the signals that have a handler. All of them when it cannot be read.
std::uint64_t caught() {
  std::array<char, 4096> text;
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return ~std::uint64_t{0};
  ssize_t length = read(file, text.data(), text.size() - 1);
  close(file);
  text[static_cast<std::size_t>(length > 0 ? length : 0)] = '\0';
  const char* line = std::strstr(text.data(), "\nSigCgt:");
  return line == nullptr ? ~std::uint64_t{0} : std::strtoull(line + 8, nullptr, 16);
}

}  // namespace

std::atomic<bool> g_possible{true};

void promise_to_expect() { g_promised.store(true); }

void look() {
  if (!g_promised.load() || g_looked.exchange(true)) return;
  if ((caught() & ~kFaults & ~kOfLibc) != 0) return;
  g_possible.store(false);
  if (g_expected.load()) g_possible.store(true);  // it came while we looked
}

void expect(int number) {
  if (number < 1 || number > 64 || ((kFaults | kOfLibc) >> (number - 1) & 1) != 0) return;
  g_expected.store(true);
  if (!g_possible.exchange(true) && t_inside_runtime == 0)
    if (void (*settle)() = g_settle.load(); settle != nullptr) settle();
}

void set_settle(void (*settle)()) { g_settle.store(settle); }

}  // namespace hinterland::signal_handlers
