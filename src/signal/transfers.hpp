// Transfers that may be larger than what can be held at once, in steps.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>

#include "base/readable.hpp"
#include "base/units.hpp"
#include "signal/held.hpp"

namespace hinterland {

// Held at once, at most: 1/16 of the smallest budget.
inline constexpr std::size_t kHeldMax = 256 * kKiB;

// Whether a transfer from or to the descriptor must be one call, whatever its size, because its bounds mean
// something: datagrams.
bool is_one_message(int descriptor);
// Whether a read that got all it asked for should ask for more: of files. Elsewhere that could wait for what never
// comes, and a short read is as good.
bool reads_on(int descriptor);

// one(pointer, bytes, done so far) is the system call. `in`: the program's bytes are read (and written otherwise).
template <typename Call>
ssize_t in_steps(int descriptor, const void* pointer, std::size_t bytes, bool in, Call&& one) {
  auto* at = static_cast<char*>(const_cast<void*>(pointer));
  const bool at_once = bytes <= kHeldMax || is_one_message(descriptor);
  const bool goes_on = !at_once && (in || reads_on(descriptor));
  std::size_t done = 0;
  do {
    const std::size_t step = at_once || bytes - done < kHeldMax ? bytes - done : kHeldMax;
    Held held;
    if (in)
      held.in(at + done, step);
    else
      held.out(at + done, step);
    ssize_t got = held.done(one(at + done, step, done));
    if (got < 0) return done != 0 ? static_cast<ssize_t>(done) : got;
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < step || !goes_on) break;
  } while (done < bytes);
  return static_cast<ssize_t>(done);
}

// Wrong pointers are for the kernel to find.
__attribute__((noinline)) inline bool can_look_at(const iovec* parts, std::size_t count) {
  Held held;
  held.in(parts, count * sizeof *parts);
  return held.done(is_readable(parts, count * sizeof *parts));
}

// More than can be held at once, a few parts at a time. A function of its own, whose part of the stack is not used
// where it is not needed.
template <typename Call>
__attribute__((noinline)) ssize_t parts_in_steps(const iovec* parts, int count, bool in, bool goes_on, Call&& one) {
  constexpr int kPartsOfStep = 16;
  std::size_t done = 0, offset = 0;  // offset: in the first part that is left
  for (int first = 0; first < count;) {
    std::array<iovec, kPartsOfStep> step;
    std::size_t wanted = 0;
    int used = 0, end = first;
    for (std::size_t skip = offset; end < count && used < kPartsOfStep && wanted < kHeldMax; ++end, skip = 0) {
      std::size_t room = kHeldMax - wanted, length = parts[end].iov_len - skip;
      step[static_cast<std::size_t>(used++)] = {static_cast<char*>(parts[end].iov_base) + skip,
                                                length < room ? length : room};
      wanted += length < room ? length : room;
    }
    Held held;
    held.vector(step.data(), static_cast<std::size_t>(used), !in);
    ssize_t got = held.done(one(step.data(), used, done));
    if (got < 0) return done != 0 ? static_cast<ssize_t>(done) : got;
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < wanted || !goes_on) break;
    std::size_t left = wanted;
    for (; first < count && left >= parts[first].iov_len - offset; ++first) {
      left -= parts[first].iov_len - offset;
      offset = 0;
    }
    offset += left;
  }
  return static_cast<ssize_t>(done);
}

// The same for vectors: one(parts, count, done so far).
template <typename Call>
ssize_t vector_in_steps(int descriptor, const iovec* parts, int count, bool in, Call&& one) {
  constexpr int kPartsMax = 1024;
  bool far = false;
  std::size_t bytes = 0;
  if (parts == nullptr || count < 0 || count > kPartsMax || !can_look_at(parts, static_cast<std::size_t>(count)))
    return one(parts, count, 0);
  for (int i = 0; i < count; ++i) {
    bytes += parts[i].iov_len;
    far = far || is_in_window(parts[i].iov_base);
  }
  if (far && bytes > kHeldMax && !is_one_message(descriptor))
    return parts_in_steps(parts, count, in, in || reads_on(descriptor), one);
  Held held;
  held.vector(parts, static_cast<std::size_t>(count), !in);
  return held.done(one(parts, count, 0));
}

}  // namespace hinterland
