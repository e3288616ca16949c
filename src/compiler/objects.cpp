#include "compiler/objects.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

constexpr std::int64_t kSameObjectBytes = 256;
// Nearer to its base than a cache line, an access is checked by the base: the register is there, and the next access
// to the object finds the same address.
constexpr std::int64_t kBaseBytes = 64;

// An index known to be so small that what it selects is part of the object.
bool selects_within_object(const GetElementPtrInst& address, const DataLayout& layout) {
  if (address.getNumIndices() != 1) return false;
  const unsigned bits = computeKnownBits(address.getOperand(1), layout).countMaxActiveBits();
  constexpr unsigned kBitsMax = 6;
  const std::uint64_t size = layout.getTypeAllocSize(address.getSourceElementType()).getKnownMinValue();
  return bits <= kBitsMax && (size << bits) <= kSameObjectBytes;
}

}  // namespace

// Without constant offsets, small indices, and the phis that loops leave behind.
Objects::Place Objects::place_of(Value* address) const {
  Place place{address, 0};
  for (;;) {
    const auto* instruction = dyn_cast<Instruction>(place.base);
    if (instruction == nullptr) return place;
    const DataLayout& layout = instruction->getDataLayout();
    APInt offset(64, 0);
    place.base = place.base->stripAndAccumulateConstantOffsets(layout, offset, true);
    place.offset += offset.getSExtValue();
    if (auto* phi = dyn_cast<PHINode>(place.base); phi != nullptr && phi->getNumIncomingValues() == 1) {
      place.base = phi->getIncomingValue(0);
      continue;
    }
    auto* element = dyn_cast<GetElementPtrInst>(place.base);
    if (element == nullptr || !selects_within_object(*element, layout)) return place;
    place.base = element->getPointerOperand();
  }
}

bool Objects::stands_for(Site& old, std::int64_t apart, const Site& site) const {
  if (old.length != nullptr || std::abs(apart) > kSameObjectBytes) return false;
  if (old.before != site.before && !dominators_.dominates(old.before, site.before)) return false;
  if (!site.writes || old.writes) return true;
  const BasicBlock *first = old.before->getParent(), *then = site.before->getParent();
  if (first != then && !post_dominators_.dominates(then, first)) return false;
  old.writes = true;
  return true;
}

bool Objects::add(Site site) {
  const Place place = place_of(site.address);
  for (const Known& known : by_base_[place.base])
    if (stands_for(sites_[known.index], known.offset - place.offset, site)) return false;
  std::int64_t offset = place.offset;
  const auto* base = dyn_cast<Instruction>(place.base);
  if (std::abs(offset) <= kBaseBytes && (base == nullptr || dominators_.dominates(base, site.before))) {
    site.address = place.base;
    offset = 0;
  }
  by_base_[place.base].push_back({sites_.size(), offset});
  sites_.push_back(std::move(site));
  return true;
}

}  // namespace hinterland::compiler
