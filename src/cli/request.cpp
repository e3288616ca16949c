#include "cli/request.hpp"

#include <cerrno>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace hinterland::cli {
namespace {

constexpr std::uint64_t kAnswerLimitNs = 2'000'000'000;
constexpr std::uint64_t kLookEveryNs = 20'000'000;

}  // namespace

int send_request(StatPage& page) {
  // release: the reader that sees the new sequence (acquire) sees what is asked for
  std::uint32_t sequence = page.request_sequence.fetch_add(1, std::memory_order_release) + 1;
  futex_wake(&page.request_sequence, 1 << 20, true);
  std::uint64_t limit_ns = now_ns() + kAnswerLimitNs;
  for (;;) {
    // acquire: pairs with the program's release after it wrote request_error. At or past ours: another request may
    // have come after.
    std::uint32_t answered = page.request_answer.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(answered - sequence) >= 0)
      return page.request_error.load(std::memory_order_relaxed);
    if (now_ns() >= limit_ns) return ETIMEDOUT;
    futex_wait(&page.request_answer, answered, kLookEveryNs, true);  // the program may, but need not, wake us
  }
}

}  // namespace hinterland::cli
