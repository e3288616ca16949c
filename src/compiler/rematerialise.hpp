// The same address, computed somewhere else.
#pragma once

#include <functional>

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instruction.h>

namespace hinterland::compiler {

// What stands for a value of the loop where the copy is made: its value when the loop begins, or that of a strip.
// Null for those that are to be computed.
using StandIn = std::function<llvm::Value*(llvm::Value*)>;

// Computes `value` before `at`, from what is there already: clones the instructions of `scope` that compute it, as
// far as they have no effects and touch no memory, with `stand_in` for the loop's variables. Null when that cannot be
// done; then nothing was inserted. The copies may not make poison of what the original would not have used, so they
// lose their flags (nuw, inbounds and the like).
llvm::Value* rematerialise(llvm::Value* value, llvm::Instruction* at, const llvm::Loop& scope,
                           const StandIn& stand_in);

// A stand-in for the moment where the loop, or one of those inside it that are named, begins.
StandIn at_beginning_of(const llvm::Loop& loop, llvm::ArrayRef<llvm::Loop*> inner = {});

}  // namespace hinterland::compiler
