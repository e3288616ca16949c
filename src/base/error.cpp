#include "base/error.hpp"

#include <cstdio>
#include <cstring>

namespace hinterland {

Error Error::make(int code, const char* format, ...) {
  Error error;
  error.code_ = code;
  va_list arguments;
  va_start(arguments, format);
  int used = std::vsnprintf(error.what_, sizeof error.what_, format, arguments);
  va_end(arguments);
  if (code != 0 && used >= 0 && static_cast<std::size_t>(used) < sizeof error.what_) {
    // Not strerror(): it translates, and its tables may lie in far memory, which a fault handler must not touch.
    const char* text = strerrordesc_np(code);
    char* rest = error.what_ + used;
    std::size_t room = sizeof error.what_ - static_cast<std::size_t>(used);
    if (text != nullptr)
      std::snprintf(rest, room, ": %s", text);
    else
      std::snprintf(rest, room, ": error %d", code);
  }
  return error;
}

Error& Error::remedy(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(remedy_, sizeof remedy_, format, arguments);
  va_end(arguments);
  return *this;
}

}  // namespace hinterland
