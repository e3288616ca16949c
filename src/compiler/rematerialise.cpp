#include "compiler/rematerialise.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

// An address that takes more than this is not worth computing twice.
constexpr unsigned kCopiesMax = 16, kCopyDepthMax = 12;

class Copier {
 public:
  Copier(Instruction* at, const Loop& scope, const StandIn& stand_in) : at_(at), scope_(scope), stand_in_(stand_in) {}

  Value* copy(Value* value, unsigned depth = 0) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (instruction == nullptr || !scope_.contains(instruction->getParent())) return value;
    if (Value* known = stand_in_(value)) return copy(known, depth + 1);
    if (auto done = copies_.find(value); done != copies_.end()) return done->second;
    if (depth > kCopyDepthMax || copies_.size() > kCopiesMax) return nullptr;
    // What a loop leaves behind, in a phi of its own.
    if (auto* phi = dyn_cast<PHINode>(instruction))
      return phi->getNumIncomingValues() == 1 ? copy(phi->getIncomingValue(0), depth + 1) : nullptr;
    if (instruction->mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(instruction)) return nullptr;
    return clone(*instruction, depth);
  }

  void take_back() {
    for (Instruction* made : reverse(made_)) made->eraseFromParent();
  }

 private:
  Value* clone(Instruction& original, unsigned depth) {
    SmallVector<Value*, 4> operands;
    for (Value* operand : original.operands()) {
      Value* copied = copy(operand, depth + 1);
      if (copied == nullptr) return nullptr;
      operands.push_back(copied);
    }
    Instruction* made = original.clone();
    for (unsigned i = 0; i < operands.size(); ++i) made->setOperand(i, operands[i]);
    made->dropPoisonGeneratingAnnotations();
    made->dropUBImplyingAttrsAndUnknownMetadata();
    made->insertBefore(at_);
    made_.push_back(made);
    return copies_[&original] = made;
  }

  Instruction* at_;
  const Loop& scope_;
  const StandIn& stand_in_;
  DenseMap<Value*, Value*> copies_;
  SmallVector<Instruction*, 8> made_;
};

}  // namespace

Value* rematerialise(Value* value, Instruction* at, const Loop& scope, const StandIn& stand_in) {
  Copier copier(at, scope, stand_in);
  Value* copied = copier.copy(value);
  if (copied == nullptr) copier.take_back();
  return copied;
}

StandIn at_beginning_of(const Loop& loop, ArrayRef<Loop*> inner) {
  SmallVector<const Loop*, 4> loops(inner.begin(), inner.end());
  loops.push_back(&loop);
  return [loops](Value* value) -> Value* {
    auto* phi = dyn_cast<PHINode>(value);
    if (phi == nullptr) return nullptr;
    for (const Loop* one : loops)
      if (one->getHeader() == phi->getParent() && one->getLoopPreheader() != nullptr)
        return phi->getIncomingValueForBlock(one->getLoopPreheader());
    return nullptr;
  };
}

}  // namespace hinterland::compiler
