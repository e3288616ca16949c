#include "compiler/slow_pointers.hpp"

#include "compiler/site.hpp"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

constexpr std::int64_t kSlowStepMax = 512;  // of the variable, in its own units
constexpr std::int64_t kSlowBytesMax = kPageBytes / 4;
constexpr unsigned kSlowDepthMax = 12;

// The steps by which a variable of a loop may change: walks back from a use, through phis, selects and additions of
// constants, until it leaves the loop or is where it was.
class Steps {
 public:
  explicit Steps(const Loop& loop) : loop_(loop) {}

  // False where something else adds to the variable. `sum`: what was added since the last phi.
  bool follow(Value* value, std::int64_t sum = 0, unsigned depth = 0) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (instruction == nullptr || !loop_.contains(instruction->getParent())) return true;
    up_ = std::max(up_, sum);
    down_ = std::min(down_, sum);
    if (depth > kSlowDepthMax || up_ > kSlowStepMax || down_ < -kSlowStepMax) return false;
    if (isa<PHINode>(instruction) || isa<SelectInst>(instruction)) return follow_merge(instruction, depth);
    if (auto* address = dyn_cast<GetElementPtrInst>(instruction)) return follow_address(*address, sum, depth);
    if (isa<ZExtInst>(instruction) || isa<SExtInst>(instruction) || isa<TruncInst>(instruction))
      return follow(instruction->getOperand(0), sum, depth + 1);
    return follow_sum(*instruction, sum, depth);
  }

  // It changes from round to round, and in one direction.
  bool one_way() const { return moves_ && (up_ != 0) != (down_ != 0); }
  std::int64_t largest() const { return up_ != 0 ? up_ : -down_; }

 private:
  bool follow_merge(Instruction* merge, unsigned depth) {
    moves_ |= isa<PHINode>(merge) && merge->getParent() == loop_.getHeader();
    if (!seen_.insert(merge).second) return true;
    for (unsigned i = isa<SelectInst>(merge) ? 1 : 0; i < merge->getNumOperands(); ++i)
      if (!follow(merge->getOperand(i), 0, depth + 1)) return false;
    return true;
  }
  bool follow_address(GetElementPtrInst& address, std::int64_t sum, unsigned depth) {
    APInt offset(64, 0);
    if (!address.accumulateConstantOffset(address.getDataLayout(), offset)) return false;
    return follow(address.getPointerOperand(), sum + offset.getSExtValue(), depth + 1);
  }
  bool follow_sum(Instruction& sum_of, std::int64_t sum, unsigned depth) {
    auto* either = dyn_cast<PossiblyDisjointInst>(&sum_of);
    if (sum_of.getOpcode() != Instruction::Add && (either == nullptr || !either->isDisjoint())) return false;
    if (auto* constant = dyn_cast<ConstantInt>(sum_of.getOperand(1)))
      return constant->getValue().getSignificantBits() < 32 &&
             follow(sum_of.getOperand(0), sum + constant->getSExtValue(), depth + 1);
    // The result of a comparison: what compilers make of an increment under a condition.
    for (unsigned i : {0u, 1u})
      if (auto* wide = dyn_cast<ZExtInst>(sum_of.getOperand(i));
          wide && wide->getOperand(0)->getType()->isIntegerTy(1))
        return follow(sum_of.getOperand(1 - i), sum + 1, depth + 1);
    return false;
  }

  const Loop& loop_;
  SmallPtrSet<Value*, 16> seen_;
  std::int64_t up_ = 0, down_ = 0;
  bool moves_ = false;
};

// An address as `base + variable * scale`, where the base may be the variable itself.
struct Place {
  Value* base;
  Value* variable;
  std::int64_t scale;
};

Place place_of(const Access& access, const Loop& loop) {
  const DataLayout& layout = access.at->getDataLayout();
  APInt offset(64, 0);
  Value* base = access.pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
  auto* address = dyn_cast<GetElementPtrInst>(base);
  if (address != nullptr && address->getNumIndices() == 1 && loop.isLoopInvariant(address->getPointerOperand()))
    return {address->getPointerOperand(), address->getOperand(1),
            static_cast<std::int64_t>(layout.getTypeAllocSize(address->getSourceElementType()).getKnownMinValue())};
  return {base, base, 1};
}

}  // namespace

bool moves_slowly(const Access& access, Loop& innermost) {
  const Place place = place_of(access, innermost);
  for (Loop* loop = &innermost; loop != nullptr; loop = loop->getParentLoop()) {
    if (place.base != place.variable && !loop->isLoopInvariant(place.base)) return false;
    Steps steps(*loop);
    if (!steps.follow(place.variable)) return false;
    if (steps.one_way()) return steps.largest() * place.scale <= kSlowBytesMax;
  }
  return false;
}

}  // namespace hinterland::compiler
