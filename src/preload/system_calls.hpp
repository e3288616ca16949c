// The table of system calls, for syscall(): which of them it must not pass on to the kernel at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hinterland::system_calls {

enum class Kind : std::uint8_t {
#define HL_KIND(kind, memory, descriptors, way, tests) kind,
#include "preload/system_calls.inc"
};

struct Call {
  std::uint16_t number;
  Kind kind;
};
inline constexpr Call kCalls[] = {
#define HL_CALL(kind, number, name) {number, Kind::kind},
#include "preload/system_calls.inc"
};

// Younger calls than the table knows, and those of x32, pass.
inline constexpr std::size_t kNumbers = 512;

enum class Notice : std::uint8_t {
  passes,     // nothing in it is ours
  by_signal,  // its pointers, where the kernel serves no faults
  always,
  clone,   // always, if it copies the memory
  clone3,  // the same
};

constexpr Notice notice_of(Kind kind) {
  switch (kind) {
    case Kind::memory:
    case Kind::sealing:
    case Kind::table:
    case Kind::file:
    case Kind::file_pointer:
    case Kind::opening:
    case Kind::ending:
    case Kind::actions:
    case Kind::child:
    case Kind::confining:
    case Kind::limits:
      return Notice::always;
    case Kind::shares:
      return Notice::passes;  // its caller's frame is used by two
    default:
      return Notice::by_signal;
  }
}

// By number. clone and clone3 may make threads, which must come back without a frame of ours.
constexpr std::array<Notice, kNumbers> notices(std::uint16_t clone, std::uint16_t clone3) {
  std::array<Notice, kNumbers> all{};
  all.fill(Notice::by_signal);
  for (const Call& call : kCalls) all[call.number] = notice_of(call.kind);
  all[clone] = Notice::clone;
  all[clone3] = Notice::clone3;
  return all;
}

inline constexpr auto kKindOf = [] {
  std::array<Kind, kNumbers> kinds{};
  kinds.fill(Kind::file_pointer);  // what is not known may be anything that the kernel does alone
  for (const Call& call : kCalls) kinds[call.number] = call.kind;
  return kinds;
}();
constexpr bool is_of(Kind kind, long number) {
  return number >= 0 && number < static_cast<long>(kNumbers) && kKindOf[static_cast<std::size_t>(number)] == kind;
}

}  // namespace hinterland::system_calls
