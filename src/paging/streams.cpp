#include "paging/streams.hpp"

#include <algorithm>

namespace hinterland {

Streams::Stream* Streams::find(std::uint32_t page) {
  for (Stream& stream : streams_) {
    if (stream.window == 0) continue;
    std::uint32_t ahead = stream.direction > 0 ? page - stream.next : stream.next - page;
    if (ahead <= kSlack) return &stream;
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

StreamWindow Streams::on_fault(PageIndex page, std::uint32_t window_pages) {
  if (pages_max_ <= 1) return {{page, 1}, false};
  Stream* stream = find(page.value);
  bool confirmed = stream != nullptr;
  if (!confirmed) {
    stream = oldest();
    *stream = {page.value + 1, 1, 1, 0};
  } else {
    stream->window = std::min(stream->window * 2, pages_max_);
  }
  stream->used = ++clock_;

  PageRun run{page, stream->window};
  if (stream->direction > 0) {
    run.count = std::min(run.count, window_pages - page.value);
    stream->next = page.value + run.count;
  } else {
    run.count = std::min(run.count, page.value + 1);
    run.first = {page.value + 1 - run.count};
    stream->next = run.first.value - 1;
  }
  return {run, confirmed};
}

}  // namespace hinterland
