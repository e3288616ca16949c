#include "compiler/copy_plan.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Instructions.h>
#include "compiler/accesses.hpp"
#include "compiler/copy_loop.hpp"

namespace hinterland::compiler {

using namespace llvm;

namespace {

constexpr const char* kCopyPass = "hinterland";
// Of 2 KiB each, on the stack while loops within each other run.
constexpr unsigned kCopiesTogether = 6;
constexpr std::uint64_t kAlignmentMax = 64;

bool can_be_of_copy(Instruction& instruction) {
  const auto* load = dyn_cast<LoadInst>(&instruction);
  const auto* store = dyn_cast<StoreInst>(&instruction);
  if ((load == nullptr || !load->isSimple()) && (store == nullptr || !store->isSimple())) return false;
  const DataLayout& layout = instruction.getDataLayout();
  return !layout.getTypeStoreSize(getLoadStoreType(&instruction)).isScalable() &&
         getLoadStoreAlignment(&instruction).value() <= kAlignmentMax &&
         !instruction.hasMetadata(LLVMContext::MD_nosanitize) && may_be_far(getLoadStorePointerOperand(&instruction));
}

class CopyPlanner {
 public:
  CopyPlanner(Function& function, const CopyAnalyses& analyses, CopyChoice choice)
      : analyses_(analyses), choice_(choice), look_(analyses), remarks_(&function) {}

  void plan(Loop& loop) {
    MapVector<Value*, BlockCopy> copies;
    for (BasicBlock* block : loop.blocks())
      for (Instruction& instruction : *block)
        if (Value* object = can_be_of_copy(instruction) ? object_of(instruction, loop) : nullptr) {
          BlockCopy& copy = copies.try_emplace(object, BlockCopy{&loop, object, {}, {}, false, {}}).first->second;
          copy.accesses.push_back(&instruction);
          copy.is_written |= isa<StoreInst>(instruction);
        }
    for (auto& [object, copy] : copies) consider(copy);
  }

  std::vector<BlockCopy> take() { return std::move(found_); }

 private:
  // What the pointer is computed from, if that is the same in all of the loop.
  Value* object_of(Instruction& access, const Loop& loop) const {
    ScalarEvolution& evolution = analyses_.evolution;
    const SCEV* pointer = evolution.getSCEV(getLoadStorePointerOperand(&access));
    const auto* base = dyn_cast<SCEVUnknown>(evolution.getPointerBase(pointer));
    if (base == nullptr || !base->getType()->isPointerTy() || !loop.isLoopInvariant(base->getValue())) return nullptr;
    return base->getValue();
  }

  void consider(BlockCopy& copy) {
    const char* why = refusal_of(copy);
    if (why == nullptr && !copy.is_written) widen(copy);
    if (why == nullptr && choice_ == CopyChoice::worth_it && look_.saved_by(copy) <= look_.cost_of(copy))
      why = "it would cost more than the guards";
    if (why == nullptr && together_with(*copy.loop) == kCopiesTogether) why = "there are too many at a time";
    say(copy, why);
    if (why != nullptr) return;
    ++count_[copy.loop];
    found_.push_back(std::move(copy));
  }

  // How many copies there are at a time while the loop runs, or one in it.
  unsigned together_with(const Loop& loop) const {
    unsigned together = most_in(loop);
    for (const Loop* around = loop.getParentLoop(); around != nullptr; around = around->getParentLoop())
      together += count_.lookup(around);
    return together;
  }
  unsigned most_in(const Loop& loop) const {
    unsigned most = 0;
    for (const Loop* inner : loop) most = std::max(most, most_in(*inner));
    return most + count_.lookup(&loop);
  }

  const char* refusal_of(BlockCopy& copy) const {
    if (const char* why = look_.refusal_of(copy)) return why;
    if (copy.is_written && !look_.find_written(copy)) return "not every byte of a stretch is written";
    copy.range = look_.range_of(copy);
    return nullptr;
  }

  // One copy for several runs of the loop, where the loop around it allows that.
  void widen(BlockCopy& copy) const {
    for (;;) {
      BlockCopy wider = copy;
      wider.loop = copy.loop->getParentLoop();
      if (wider.loop == nullptr || !wider.loop->isLoopInvariant(copy.object) || refusal_of(wider) != nullptr) return;
      if (look_.cost_of(wider) >= look_.cost_of(copy) * look_.rounds_of(*wider.loop)) return;
      copy = std::move(wider);
    }
  }

  void say(const BlockCopy& copy, const char* why) {
    const Instruction* at = copy.accesses.front();
    const char* kind = copy.is_written ? "block that a loop writes" : "block that a loop reads";
    if (why == nullptr)
      remarks_.emit(
          [&] { return OptimizationRemark(kCopyPass, "Copied", at) << kind << ": on a copy, without guards"; });
    else
      remarks_.emit([&] {
        return OptimizationRemarkMissed(kCopyPass, "NotCopied", at) << kind << ": not on a copy, for " << why;
      });
  }

  CopyAnalyses analyses_;
  CopyChoice choice_;
  CopyLoop look_;
  OptimizationRemarkEmitter remarks_;
  DenseMap<const Loop*, unsigned> count_;
  std::vector<BlockCopy> found_;
};

}  // namespace

std::vector<BlockCopy> copies_of(Function& function, const CopyAnalyses& analyses, CopyChoice choice) {
  CopyPlanner planner(function, analyses, choice);
  for (Loop* loop : analyses.loops.getLoopsInPreorder())
    if (loop->isInnermost()) planner.plan(*loop);
  return planner.take();
}

}  // namespace hinterland::compiler
