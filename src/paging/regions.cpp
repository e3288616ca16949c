#include "paging/regions.hpp"

#include <iterator>
#include <vector>

namespace hinterland {
namespace {

bool alike(const Region& left, const Region& right) {
  return left.protection == right.protection && left.flags == right.flags && left.surrendered == right.surrendered &&
         left.attributes == right.attributes && left.is_heap == right.is_heap;
}

}  // namespace

void Regions::insert_merged(Region region) {
  if (!region.surrendered) mapped_bytes_ += region.length();
  auto next = by_start_.lower_bound(region.start);
  if (next != by_start_.end() && next->first == region.end && alike(next->second, region)) {
    region.end = next->second.end;
    next = by_start_.erase(next);
  }
  if (next != by_start_.begin()) {
    auto before = std::prev(next);
    if (before->second.end == region.start && alike(before->second, region)) {
      before->second.end = region.end;
      return;
    }
  }
  by_start_[region.start] = region;
}

void Regions::put(const Region& region) {
  remove(region.start, region.end);
  insert_merged(region);
}

void Regions::remove(std::uintptr_t start, std::uintptr_t end) {
  auto at = by_start_.upper_bound(start);
  if (at != by_start_.begin()) --at;
  while (at != by_start_.end() && at->first < end) {
    Region whole = at->second;
    if (whole.end <= start) {
      ++at;
      continue;
    }
    at = by_start_.erase(at);
    std::uintptr_t cut_start = whole.start > start ? whole.start : start;
    std::uintptr_t cut_end = whole.end < end ? whole.end : end;
    if (!whole.surrendered) mapped_bytes_ -= cut_end - cut_start;
    if (whole.start < start) {
      Region left = whole;
      left.end = start;
      by_start_[left.start] = left;
    }
    if (whole.end > end) {
      Region right = whole;
      right.start = end;
      by_start_[right.start] = right;
    }
  }
}

template <typename Change>
void Regions::change(std::uintptr_t start, std::uintptr_t end, Change&& change) {
  std::vector<Region> pieces;
  for_each(start, end, [&](const Region& piece) { pieces.push_back(piece); });
  for (Region& piece : pieces) {
    Region before = piece;
    change(piece);
    if (!alike(before, piece)) put(piece);
  }
}

void Regions::protect(std::uintptr_t start, std::uintptr_t end, int protection) {
  change(start, end, [protection](Region& piece) { piece.protection = protection; });
}

void Regions::mark(std::uintptr_t start, std::uintptr_t end, int added, int removed) {
  change(start, end, [=](Region& piece) { piece.attributes = (piece.attributes & ~removed) | added; });
}

const Region* Regions::find(std::uintptr_t address) const {
  auto at = by_start_.upper_bound(address);
  if (at == by_start_.begin()) return nullptr;
  --at;
  return address < at->second.end ? &at->second : nullptr;
}

bool Regions::covers(std::uintptr_t start, std::uintptr_t end) const {
  std::uintptr_t reached = start;
  for_each(start, end, [&](const Region& piece) {
    if (piece.start == reached) reached = piece.end;
  });
  return reached >= end;
}

}  // namespace hinterland
