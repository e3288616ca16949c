#include "compiler/copies.hpp"

#include <llvm/ADT/Statistic.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include "compiler/guard_emit.hpp"
#include "compiler/pass.hpp"
#include "compiler/wishes.hpp"

#define COPIES_TYPE "hinterland"

namespace hinterland::compiler {

using namespace llvm;

namespace {

TrackingStatistic copies_made(COPIES_TYPE, "BlockCopies", "Loops' pointers that are led to a copy of a block");

constexpr const char* kOfCopy = "hinterland.copy";
constexpr std::uint64_t kRoomBytes = 2048 + 64;  // kBorrowedRoom of object/guards.hpp
constexpr std::uint64_t kRoomAlignment = 64;

class LoopCopier {
 public:
  LoopCopier(Function& function, LoopInfo& loops, ScalarEvolution& evolution, GuardEmitter& emitter)
      : layout_(function.getParent()->getDataLayout()),
        loops_(loops),
        expander_(evolution, layout_, "hinterland"),
        emitter_(emitter),
        word_(Type::getInt64Ty(function.getContext())) {}

  // All that is computed from what is known of the function comes before its blocks are split.
  void copy(const std::vector<BlockCopy>& copies) {
    std::vector<Bounds> bounds;
    for (const BlockCopy& copy : copies) bounds.push_back(bounds_of(copy));
    for (std::size_t i = 0; i < copies.size(); ++i) make(copies[i], bounds[i]);
  }

 private:
  struct Bounds {
    Value *from, *to, *written_from, *written_to;
  };

  Bounds bounds_of(const BlockCopy& copy) {
    Instruction* at = copy.loop->getLoopPreheader()->getTerminator();
    const auto number = [&](const SCEV* bound, std::int64_t otherwise) -> Value* {
      if (bound == nullptr || !expander_.isSafeToExpandAt(bound, at))
        return ConstantInt::get(word_, static_cast<std::uint64_t>(otherwise), true);
      return expander_.expandCodeFor(bound, word_, at);
    };
    Bounds made{number(copy.range.from, INT64_MIN), number(copy.range.to, INT64_MAX), nullptr, nullptr};
    if (copy.is_written)
      made.written_from = number(copy.written.from, INT64_MIN), made.written_to = number(copy.written.to, INT64_MAX);
    return made;
  }

  void make(const BlockCopy& copy, const Bounds& bounds) {
    Instruction* restore = restore_of(*copy.loop);
    Instruction* at = copy.loop->getLoopPreheader()->getTerminator();
    IRBuilder<> builder(at);
    builder.SetCurrentDebugLocation(copy.accesses.front()->getDebugLoc());
    Value* object = builder.CreateFreeze(copy.object);
    Value* in_window = emitter_.is_in_window(builder, object);
    Instruction* borrows =
        SplitBlockAndInsertIfThen(in_window, at, false, nullptr, static_cast<DomTreeUpdater*>(nullptr), &loops_);
    builder.SetInsertPoint(borrows);
    AllocaInst* room = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), kRoomBytes));
    room->setAlignment(Align(kRoomAlignment));
    auto* borrow =
        FunctionType::get(builder.getPtrTy(), {builder.getPtrTy(), word_, word_, builder.getPtrTy()}, false);
    Value* borrowed = emitter_.call(builder, GuardEntry::borrow, borrow, {object, bounds.from, bounds.to, room});
    auto* both = PHINode::Create(builder.getPtrTy(), 2, "hinterland.copy", at->getParent()->begin());
    both->addIncoming(borrowed, borrows->getParent());
    both->addIncoming(object, borrows->getParent()->getSinglePredecessor());
    for (Instruction* access : copy.accesses) lead(*access, copy.object, both);
    if (copy.is_written) give_back(copy, bounds, object, both, in_window, restore);
    ++copies_made;
  }

  void give_back(const BlockCopy& copy, const Bounds& bounds, Value* object, Value* borrowed, Value* in_window,
                 Instruction* restore) {
    IRBuilder<> builder(SplitBlockAndInsertIfThen(in_window, restore, false, nullptr,
                                                  static_cast<DomTreeUpdater*>(nullptr), &loops_));
    builder.SetCurrentDebugLocation(copy.accesses.front()->getDebugLoc());
    auto* type =
        FunctionType::get(builder.getVoidTy(), {builder.getPtrTy(), builder.getPtrTy(), word_, word_}, false);
    emitter_.call(builder, GuardEntry::give_back, type, {object, borrowed, bounds.written_from, bounds.written_to});
  }

  // What takes the room on the stack back, wherever the loop is left: once, however many copies there are.
  Instruction* restore_of(Loop& loop) {
    Instruction*& known = restores_[&loop];
    if (known != nullptr) return known;
    IRBuilder<> builder(loop.getLoopPreheader()->getTerminator());
    Value* before = builder.CreateStackSave();
    SmallVector<BasicBlock*, 4> exits;
    loop.getUniqueExitBlocks(exits);
    for (BasicBlock* exit : exits) {
      builder.SetInsertPoint(exit, exit->getFirstInsertionPt());
      known = builder.CreateStackRestore(before);
    }
    return known;
  }

  void lead(Instruction& access, Value* object, Value* copy) {
    IRBuilder<> builder(&access);
    const unsigned operand = isa<LoadInst>(access) ? 0 : 1;
    access.setOperand(operand, on_copy(builder, access.getOperand(operand), object, copy));
    access.setMetadata(kOfCopy, MDNode::get(access.getContext(), {}));
  }

  // The same address on the copy. As it was computed, where that was from the object; by its distance where a loop
  // moves the pointer.
  Value* on_copy(IRBuilder<>& builder, Value* address, Value* object, Value* copy) {
    if (address == object) return copy;
    if (auto* element = dyn_cast<GetElementPtrInst>(address)) {
      Value* base = on_copy(builder, element->getPointerOperand(), object, copy);
      auto* clone = cast<GetElementPtrInst>(element->clone());
      clone->setOperand(0, base);
      clone->dropPoisonGeneratingFlags();
      builder.Insert(clone);
      return clone;
    }
    Value* apart = builder.CreateSub(builder.CreatePtrToInt(address, word_), builder.CreatePtrToInt(object, word_));
    return builder.CreatePtrAdd(copy, apart);
  }

  const DataLayout& layout_;
  LoopInfo& loops_;
  SCEVExpander expander_;
  GuardEmitter& emitter_;
  Type* word_;
  DenseMap<Loop*, Instruction*> restores_;
};

bool copy_in(Function& function, FunctionAnalysisManager& manager, CopyChoice choice, GuardEmitter& emitter) {
  LoopInfo& loops = manager.getResult<LoopAnalysis>(function);
  if (loops.empty()) return false;
  auto& dominators = manager.getResult<DominatorTreeAnalysis>(function);
  auto& evolution = manager.getResult<ScalarEvolutionAnalysis>(function);
  bool changed = false;
  for (Loop* loop : loops)
    changed |= simplifyLoop(loop, &dominators, &loops, &evolution, &manager.getResult<AssumptionAnalysis>(function),
                            nullptr, false);
  BranchProbabilityInfo probability(function, loops);
  BlockFrequencyInfo frequency(function, probability, loops);
  const auto copies =
      copies_of(function, {loops, dominators, evolution, manager.getResult<AAManager>(function), frequency}, choice);
  if (!copies.empty()) LoopCopier(function, loops, evolution, emitter).copy(copies);
  return changed || !copies.empty();
}

}  // namespace

bool is_of_copy(const Instruction& access) { return access.getMetadata(kOfCopy) != nullptr; }

PreservedAnalyses CopyPass::run(Module& module, ModuleAnalysisManager& analyses) {
  if (!is_for_our_machine(module) || choice_ == CopyChoice::none) return PreservedAnalyses::all();
  FunctionAnalysisManager& manager = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  const auto wishes = wishes_of(module, true);  // HintPass says it
  GuardEmitter emitter(module);
  bool changed = false;
  for (Function* function : functions_to_change(module, wishes)) {
    if (!copy_in(*function, manager, choice_, emitter)) continue;
    manager.invalidate(*function, PreservedAnalyses::none());
    changed = true;
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace hinterland::compiler
