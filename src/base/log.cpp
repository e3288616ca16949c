#include "base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace hinterland::log {
namespace {

std::atomic<Level> g_level{Level::warning};

void write_line(const char* kind, const char* format, va_list arguments) {
  int saved_errno = errno;
  char line[1024];
  int used = std::snprintf(line, sizeof line, "hinterland: %s", kind);
  int body = std::vsnprintf(line + used, sizeof line - static_cast<unsigned>(used) - 1, format, arguments);
  if (body > 0) used += body;
  if (static_cast<unsigned>(used) > sizeof line - 2) used = sizeof line - 2;
  line[used++] = '\n';
  for (const char* at = line; used > 0;) {
    ssize_t written = ::write(STDERR_FILENO, at, static_cast<unsigned>(used));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;  // nowhere left to complain
    at += written;
    used -= static_cast<int>(written);
  }
  errno = saved_errno;
}

}  // namespace

// relaxed: the level is independent of any other data
void set_level(Level level) { g_level.store(level, std::memory_order_relaxed); }
Level level() { return g_level.load(std::memory_order_relaxed); }

void error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line("", format, arguments);
  va_end(arguments);
}

void warning(const char* format, ...) {
  if (level() < Level::warning) return;
  va_list arguments;
  va_start(arguments, format);
  write_line("warning: ", format, arguments);
  va_end(arguments);
}

void info(const char* format, ...) {
  if (level() < Level::info) return;
  va_list arguments;
  va_start(arguments, format);
  write_line("", format, arguments);
  va_end(arguments);
}

void debug(const char* format, ...) {
  if (level() < Level::debug) return;
  va_list arguments;
  va_start(arguments, format);
  write_line("debug: ", format, arguments);
  va_end(arguments);
}

}  // namespace hinterland::log
