// Messages on stderr without allocation: one line, one write(2), prefix "hinterland: ".
//
// Safe on the fault path and in signal handlers (vsnprintf with integer and string conversions only).
#pragma once

namespace hinterland::log {

enum class Level { quiet = 0, warning = 1, info = 2, debug = 3 };

void set_level(Level level);
Level level();

// Always printed: something was lost or cannot go on.
void error(const char* format, ...) __attribute__((format(printf, 1, 2)));
void warning(const char* format, ...) __attribute__((format(printf, 1, 2)));
void info(const char* format, ...) __attribute__((format(printf, 1, 2)));
void debug(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace hinterland::log
