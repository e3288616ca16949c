#include "far/tcp/give_backs.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hinterland::far {

// Gathers pages in ascending order into runs, and runs into requests.
class GiveBacks::Runs {
 public:
  Runs(GiveBacks& give_backs, std::uint64_t stamp) : give_backs_(give_backs), stamp_(stamp) {}
  ~Runs() { flush(); }
  void add(FarPage page) {
    if (used_ > 0) {
      wire::Run& last = runs_[used_ - 1];
      if (last.first + last.count == page.value && page.page_in_slab() != 0) {
        last.count = last.count + 1;
        return;
      }
    }
    if (used_ == runs_.size()) flush();
    runs_[used_++] = {page.value, 1u, 0u};
  }

 private:
  void flush() {
    if (used_ > 0) give_backs_.append_runs(std::span(runs_).first(used_), stamp_);
    used_ = 0;
  }
  GiveBacks& give_backs_;
  const std::uint64_t stamp_;
  std::array<wire::Run, wire::kRunsMax> runs_;
  std::size_t used_ = 0;
};

void GiveBacks::create(SharedPages& pages) {
  pages_ = &pages;
  marks_by_slab_.assign(pages.slabs_max(), kNone);
}

void GiveBacks::release_slab(std::uint32_t slab) {
  // Its pages need not be told any more.
  auto end = discards_.begin() + static_cast<std::ptrdiff_t>(discards_used_);
  auto gone = std::remove_if(discards_.begin(), end, [slab](FarPage page) { return page.slab() == slab; });
  discards_used_ = static_cast<std::size_t>(gone - discards_.begin());
  if (marks_ == 0 && room() >= sizeof(wire::Header)) return append_release(slab);
  set_mark(slab, kRelease);
}

void GiveBacks::discard(FarPage page) {
  discards_[discards_used_++] = page;
  if (discards_used_ == discards_.size()) flush_discards();
}

void GiveBacks::flush_discards() {
  std::span all = std::span(discards_).first(std::exchange(discards_used_, 0));
  // In the worst case each page is a run of its own.
  if (marks_ != 0 || room() < kDiscardsMax / wire::kRunsMax * kRequestMax) {
    for (FarPage page : all) set_mark(page.slab(), kDiscard);
    return;
  }
  std::sort(all.begin(), all.end());
  Runs runs(*this, pages_->take_stamp());
  FarPage before{UINT64_MAX};
  for (FarPage page : all) {
    // Written again since: nothing to give back (SharedPages::take_stamp says why this is enough).
    if (page != before && pages_->checksum(page) == 0) runs.add(page);
    before = page;
  }
}

// All of the slab that holds nothing: what was marked is among it, and the rest costs nothing to give back.
void GiveBacks::discard_slab(std::uint32_t slab) {
  if (!pages_->holds(slab)) return;  // a relative of this process has released it
  Runs runs(*this, pages_->take_stamp());
  FarPage first{std::uint64_t{slab} * kSlabPages};
  for (std::uint32_t i = 0; i < kSlabPages; ++i)
    if (FarPage page{first.value + i}; pages_->checksum(page) == 0) runs.add(page);
}

void GiveBacks::set_mark(std::uint32_t slab, Mark mark) {
  Mark& there = marks_by_slab_[slab];
  if (there == kNone) ++marks_;
  there = there == kRelease ? kRelease : mark;
}

void GiveBacks::refill() {
  while (marks_ != 0 && room() >= kSlabRequestsMax) {
    while (marks_by_slab_[next_mark_] == kNone) next_mark_ = (next_mark_ + 1) % pages_->slabs_max();
    Mark mark = std::exchange(marks_by_slab_[next_mark_], kNone);
    --marks_;
    if (mark == kRelease)
      append_release(next_mark_);
    else
      discard_slab(next_mark_);
  }
}

void GiveBacks::append_release(std::uint32_t slab) {
  wire::Header request = wire::make_request(wire::Type::slab_release, 0, next_id_++);
  request.slab = slab;
  append(wire::bytes_of(request));
}

void GiveBacks::append_runs(std::span<const wire::Run> runs, std::uint64_t stamp) {
  wire::Header request = wire::make_request(wire::Type::discard, static_cast<std::uint16_t>(runs.size()), next_id_++);
  request.stamp = stamp;
  append(wire::bytes_of(request));
  append(std::as_bytes(runs));
}

void GiveBacks::append(std::span<const std::byte> bytes) {
  std::size_t at = end_ % kBytesMax, straight = std::min(bytes.size(), kBytesMax - at);
  std::memcpy(bytes_.data() + at, bytes.data(), straight);
  std::memcpy(bytes_.data(), bytes.data() + straight, bytes.size() - straight);
  end_ += bytes.size();
}

GiveBacks::Turn GiveBacks::take_turn() {
  refill();
  return {next_id_++, end_};
}

std::span<const std::byte> GiveBacks::next_bytes(std::uint64_t end, std::span<std::byte> copy) {
  std::size_t at = sent_ % kBytesMax;
  std::size_t size = std::min({static_cast<std::size_t>(end - sent_), copy.size(), kBytesMax - at});
  std::memcpy(copy.data(), bytes_.data() + at, size);
  return copy.first(size);
}

bool GiveBacks::answered(const wire::Header& reply) {
  if (first_ == end_) return false;
  wire::Header request;
  auto* to = reinterpret_cast<std::byte*>(&request);
  for (std::size_t i = 0; i < sizeof request; ++i) to[i] = bytes_[(first_ + i) % kBytesMax];
  std::uint64_t next = first_ + sizeof request + request.length;
  if (next > sent_ || reply.id != request.id || reply.type != (request.type | wire::kReplyBit)) return false;
  first_ = next;
  return true;
}

void GiveBacks::clear() {
  discards_used_ = 0;
  first_ = sent_ = end_ = 0;
  if (marks_ != 0) std::ranges::fill(marks_by_slab_, kNone);
  marks_ = 0;
}

}  // namespace hinterland::far
