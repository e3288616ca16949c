// FaultHandler: faults of more threads than one read tells of.
//
// The kernel looks at every thread that waits whenever one is woken. With a wake-up a fault, the work of threads that
// fault at the same time grows with the square of their number: 2000 of them take 160 ms for a page each, most of it
// in the kernel's list. So all messages that there are are read and put in the order of their addresses, pieces of
// them are served without waking anybody, and then all who wait for a page of the piece are woken at once. Between
// the first and the last page of a piece nobody else waits, since all who do are in the piece
// (docs/adr/0046-a-crowd-is-woken-together.md).
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "paging/serve/fault_handler.hpp"

namespace hinterland {
namespace {

// In so many pieces, or in pieces as large as a read: the first of a crowd need not wait for the last.
constexpr std::size_t kPieces = 16, kPieceMin = 64;
// What a piece brings in must still be there when its threads are woken.
constexpr std::int64_t kShareOfBudget = 8;

}  // namespace

// What messages_ holds, and all there are beside. Returns how many are in crowd_.
std::size_t FaultHandler::gather_crowd(std::size_t count) {
  std::size_t gathered = 0;
  for (;;) {
    std::copy_n(messages_.begin(), count, crowd_.begin() + static_cast<std::ptrdiff_t>(gathered));
    gathered += count;
    if (gathered + messages_.size() > crowd_.size() || count < messages_.size()) return gathered;
    int more = look_for_faults();
    if (more <= 0) return gathered;
    count = static_cast<std::size_t>(more);
  }
}

void FaultHandler::serve_crowd(std::size_t count) {
  std::uint64_t read_ns = now_ns();
  std::size_t gathered = gather_crowd(count);
  std::span crowd = std::span(crowd_).first(gathered);
  std::ranges::sort(crowd, {}, &FaultMessage::address);
  std::size_t most = static_cast<std::size_t>(std::max<std::int64_t>(core_.budget.limit() / kShareOfBudget, 1));
  std::size_t piece = std::min(std::max(gathered / kPieces, kPieceMin), most);
  const std::uintptr_t end = crowd.back().address + kPageSize;
  in_crowd_ = true;
  for (std::size_t at = 0; at < gathered; at += piece) {
    std::span<const FaultMessage> now = crowd.subspan(at, std::min(piece, gathered - at));
    // What is read ahead for a later piece wakes nobody either: its threads are woken with that piece. All pages up
    // to the next piece are woken, those too that nobody in the crowd waits for: others may have been held back by
    // this.
    std::uintptr_t first = now.front().address, next = at + piece < gathered ? crowd[at + piece].address : end;
    core_.kernel.wake_later(first, end - first);
    serve_all(now);
    finish();
    stat_page()->fault_latency.add(now_ns() - read_ns, now.size());
    core_.kernel.wake_together(first, std::max(next, first + kPageSize) - first);
    hinterland::count(Counter::crowd_wakes);
  }
  in_crowd_ = false;
  hinterland::count(Counter::faults_crowded, gathered);
}

}  // namespace hinterland
