#include "paging/in/streams.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace hinterland {

// Without a branch for each: of faults that continue nothing, which are the most expensive ones, all 32 are looked
// at.
bool Streams::may_continue_one(std::uint32_t page) const {
  // No stream has asked for more than it brings at once, three times that where it asks ahead.
  const std::uint32_t reach = 3 * pages_max_ + 2 * kSlack;
  std::uint32_t near = 0;
  for (std::uint32_t next : next_) near |= static_cast<std::uint32_t>(page - next + reach <= 2 * reach);
  return near != 0 || stepping_ != 0;
}

void Streams::use_now(const Stream& stream) {
  used_at_[index_of(stream)] = ++clock_;
  lately_[clock_ % kMostBetween] = static_cast<std::uint8_t>(index_of(stream));
}

Streams::Stream* Streams::find(std::uint32_t page) {
  if (!may_continue_one(page)) return nullptr;
  for (Stream& stream : streams_) {
    if (stream.window == 0) continue;
    if (stream.stride != 0) {
      std::int64_t distance = std::int64_t{page} - stream.last;
      if (distance % stream.stride != 0) continue;
      std::int64_t steps = distance / stream.stride;
      std::uint32_t most = stream.window == 1 ? 1 : stream.window + kSlack;
      if (steps > 0 && steps <= most) return &stream;
      continue;
    }
    std::uint32_t ahead = stream.direction > 0 ? page - next(stream) : next(stream) - page;
    std::uint32_t asked_ahead = stream.asked > next(stream) ? stream.asked - next(stream) : 0;
    if (ahead <= asked_ahead + kSlack) return &stream;
    // One fault at P, then one at P - 1: a stream that runs downwards.
    if (stream.window == 1 && stream.direction > 0 && page + 2 == next(stream)) {
      stream.direction = -1;
      return &stream;
    }
  }
  return nullptr;
}

// The third lone fault at equal distances, in pages and in faults. The second one's entry becomes the stream, the
// first one's is free. Nothing is brought yet: by chance three lie so once in a hundred times where faults crowd in a
// few megabytes.
bool Streams::begins_steps(std::uint32_t page) {
  auto lone = [](const Stream& stream) { return stream.window == 1 && stream.stride == 0 && stream.direction > 0; };
  std::uint32_t recent = 0;  // so that the first of them is found first
  for (std::uint8_t index : lately_) recent |= 1u << index;
  for (; recent != 0; recent &= recent - 1) {
    Stream& second = streams_[static_cast<std::size_t>(std::countr_zero(recent))];
    std::int64_t stride = std::int64_t{page} - second.last;
    std::uint64_t between = clock_ + 1 - used(second);
    if (!lone(second) || between > kMostBetween || std::abs(stride) < kLeastStride || std::abs(stride) > kMostStride)
      continue;
    for (Stream& first : streams_) {
      if (!lone(first) || std::int64_t{second.last} - first.last != stride) continue;
      if (used(first) + between + 1 < used(second) || used(first) + between > used(second) + 1) continue;
      first = {};
      next(first) = 0;
      used_at_[index_of(first)] = 0;
      second.stride = static_cast<std::int32_t>(stride);
      second.last = page;
      ++stepping_;
      use_now(second);
      return true;
    }
  }
  return false;
}

Streams::Stream& Streams::oldest() {
  return streams_[static_cast<std::size_t>(std::ranges::min_element(used_at_) - used_at_.begin())];
}

namespace {

std::uint32_t low(PageIndex page) { return static_cast<std::uint32_t>(page.value); }

}  // namespace

StreamWindow Streams::on_fault(PageIndex page, std::uint64_t window_pages, std::uint32_t most) {
  const std::uint64_t high = page.value - low(page);
  const std::uint64_t here = std::min<std::uint64_t>(window_pages - high, UINT32_MAX);
  StreamWindow window = propose(low(page), static_cast<std::uint32_t>(here), most);
  window.run.first.value += high;
  window.ahead.first.value += high;
  return window;
}

StreamWindow Streams::propose(std::uint32_t page, std::uint32_t window_pages, std::uint32_t most) {
  if (pages_max_ <= 1) return {{{page}, 1}, false, {}};
  Stream* stream = find(page);
  bool confirmed = stream != nullptr;
  if (!confirmed && begins_steps(page)) return {{{page}, 1}, false, {}};
  std::uint32_t unused = 0;
  if (!confirmed) {
    stream = &oldest();
    unused = forget(*stream);
    stepping_ -= stream->stride != 0;
    *stream = {.asked = page + 1, .window = 1};
    next(*stream) = page + 1;
  } else {
    note_used(*stream, page);
    grow(*stream, most);
  }
  use_now(*stream);

  StreamWindow window = stream->stride != 0     ? in_steps(*stream, page, window_pages)
                        : stream->direction > 0 ? upwards(*stream, page, confirmed, window_pages)
                                                : downwards(*stream, page, confirmed);
  stream->last = page;
  window.unused = unused;
  return window;
}

StreamWindow Streams::upwards(Stream& stream, std::uint32_t page, bool confirmed, std::uint32_t window_pages) {
  StreamWindow window{{{page}, 1}, confirmed, {}};
  bool was_asked = stream.asked > page + 1;  // this is the marker, or lies behind it
  if (!was_asked) {
    window.run.count = std::min(stream.window, window_pages - page);
    stream.asked = page + window.run.count;
    stream.pending = window.run.count - 1;
  }
  next(stream) = stream.after > page ? stream.after : stream.asked;
  stream.after = 0;
  if (asks_ahead_ && confirmed && stream.window >= kAheadFrom) {
    std::uint32_t end = next(stream) + stream.window * (stream.window >= kTwoAheadFrom ? 2 : 1);
    end = std::min(end, window_pages);
    if (end > stream.asked) window.ahead = {{stream.asked}, end - stream.asked};
    window.ahead_window = stream.window;
  }
  return window;
}

StreamWindow Streams::downwards(Stream& stream, std::uint32_t page, bool confirmed) {
  std::uint32_t count = std::min(stream.window, page + 1);
  PageRun run{{page + 1 - count}, count};
  next(stream) = stream.asked = page - count;
  stream.pending = count - 1;
  return {run, confirmed, {}};
}

StreamWindow Streams::in_steps(Stream& stream, std::uint32_t page, std::uint32_t window_pages) {
  StreamWindow window{{{page}, 1}, true, {}};
  std::int64_t room = stream.stride > 0 ? (std::int64_t{window_pages} - 1 - page) / stream.stride
                                        : std::int64_t{page} / -stream.stride;
  window.stride = stream.stride;
  window.steps = stream.pending = static_cast<std::uint32_t>(std::min<std::int64_t>(stream.window - 1, room));
  return window;
}

void Streams::asked_ahead(PageRun run) {
  const std::uint32_t first = low(run.first);
  for (Stream& stream : streams_)
    if (stream.window != 0 && stream.stride == 0 && stream.direction > 0 && stream.asked == first) {
      if (next(stream) != first) stream.after = first;
      stream.asked = first + run.count;
      stream.pending += run.count;
    }
}

void Streams::brought_only(PageIndex index, std::uint32_t pages) {
  const std::uint32_t page = low(index);
  for (Stream& stream : streams_)
    if (stream.window != 0 && stream.last == page) stream.pending = std::min(stream.pending, pages);
}

// Doubles the window, if streams are worth it.
void Streams::grow(Stream& stream, std::uint32_t most) {
  std::uint32_t longest = std::min(pages_max_, std::max(most, 1u));
  if (stream.stride != 0) longest = std::min(longest, kMostSteps);
  bool held_back = usual_ < pages_max_ && stream.window >= usual_ && ++stream.held < kHeldBack;
  if (!held_back) {
    stream.window *= 2;
    stream.held = 0;
  }
  stream.window = std::min(stream.window, longest);
}

// The stream has come to this page: what was brought before it is taken for used.
void Streams::note_used(Stream& stream, std::uint32_t page) {
  bool by_markers = stream.stride == 0 && stream.direction > 0;
  std::uint32_t left = by_markers && stream.asked > page + 1 ? std::min(stream.pending, stream.asked - page - 1) : 0;
  used_ += stream.pending - left;
  stream.pending = left;
  learn();
}

std::uint32_t Streams::forget(Stream& stream) {
  std::uint32_t unused = stream.window == 0 ? 0 : stream.pending;
  unused_ += unused;
  learn();
  return unused;
}

void Streams::learn() {
  if (used_ + unused_ < kLearnFrom) return;
  if (unused_ > used_) usual_ = std::max(usual_ / 2, 2u);
  if (unused_ < used_ / 4) usual_ = std::min(usual_ * 2, pages_max_);
  used_ = unused_ = 0;
}

}  // namespace hinterland
