// Failure as a value: what failed, the errno behind it, and what the user can try next.
//
// Used at boundaries (set-up, devices, the command). Hot paths return 0 or -errno, as liburing does.
#pragma once

#include <cstdarg>
#include <expected>

namespace hinterland {

// Holds its text inline, so that making and copying one never allocates (it may be made on the fault path).
class Error {
 public:
  Error() = default;

  // `format` says what failed and on what; `code` is an errno value, or 0 when there is none.
  static Error make(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));

  // Adds the next thing for the user to try; keeps what was said before.
  Error& remedy(const char* format, ...) __attribute__((format(printf, 2, 3)));

  int code() const { return code_; }
  const char* what() const { return what_; }         // includes strerror(code) when code is not 0
  const char* next_step() const { return remedy_; }  // "" when there is none

 private:
  int code_ = 0;
  char what_[512] = {};
  char remedy_[512] = {};
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

}  // namespace hinterland
