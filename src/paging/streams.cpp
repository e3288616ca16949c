#include "paging/streams.hpp"

#include <algorithm>

namespace hinterland {

Streams::Stream* Streams::find(std::uint32_t page) {
  for (Stream& stream : streams_) {
    if (stream.window == 0) continue;
    std::uint32_t ahead = stream.direction > 0 ? page - stream.next : stream.next - page;
    std::uint32_t asked_ahead = stream.asked > stream.next ? stream.asked - stream.next : 0;
    if (ahead <= asked_ahead + kSlack) return &stream;
    // One fault at P, then one at P - 1: a stream that runs downwards.
    if (stream.window == 1 && stream.direction > 0 && page + 2 == stream.next) {
      stream.direction = -1;
      return &stream;
    }
  }
  return nullptr;
}

Streams::Stream* Streams::oldest() {
  return &*std::min_element(streams_.begin(), streams_.end(),
                            [](const Stream& a, const Stream& b) { return a.used < b.used; });
}

StreamWindow Streams::on_fault(PageIndex page, std::uint32_t window_pages, std::uint32_t most) {
  if (pages_max_ <= 1) return {{page, 1}, false, {}};
  Stream* stream = find(page.value);
  bool confirmed = stream != nullptr;
  if (!confirmed) {
    stream = oldest();
    *stream = {page.value + 1, page.value + 1, 1, 1, 0};
  } else {
    stream->window = std::min({stream->window * 2, pages_max_, std::max(most, 1u)});
  }
  stream->used = ++clock_;

  if (stream->direction > 0) return upwards(*stream, page, confirmed, window_pages);
  std::uint32_t count = std::min(stream->window, page.value + 1);
  PageRun run{{page.value + 1 - count}, count};
  stream->next = stream->asked = run.first.value - 1;
  return {run, confirmed, {}};
}

StreamWindow Streams::upwards(Stream& stream, PageIndex page, bool confirmed, std::uint32_t window_pages) {
  StreamWindow window{{page, 1}, confirmed, {}};
  bool was_asked = stream.asked > page.value + 1;  // this is the marker, or lies behind it
  if (!was_asked) {
    window.run.count = std::min(stream.window, window_pages - page.value);
    stream.asked = window.run.end().value;
  }
  stream.next = stream.asked;
  if (asks_ahead_ && confirmed && stream.window >= kAheadFrom)
    window.ahead = {{stream.asked}, std::min(stream.window, window_pages - stream.asked)};
  return window;
}

void Streams::asked_ahead(PageRun run) {
  for (Stream& stream : streams_)
    if (stream.window != 0 && stream.direction > 0 && stream.next == run.first.value) stream.asked = run.end().value;
}

}  // namespace hinterland
