// The pass: hints for the accesses of a module, at the end of the optimizer's work, so that nothing it does is in
// their way, nor they in its. It changes no result: a hint is not an access, and loops go round as often as before.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>
#include "compiler/site.hpp"
#include "compiler/wishes.hpp"

namespace hinterland::compiler {

// Whether the runtime knows programs of this kind: x86-64 Linux.
bool is_for_our_machine(const llvm::Module& module);

// The functions in which something may be inserted: not those that do not run often, whose code is not ours to
// change, or whose author wishes nothing. As they are now: a pass that adds functions goes on over these.
llvm::SmallVector<llvm::Function*, 32> functions_to_change(llvm::Module& module, const Wishes& wishes);

class HintPass : public llvm::PassInfoMixin<HintPass> {
 public:
  explicit HintPass(SiteCode code) : code_(code) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

 private:
  SiteCode code_;
};

}  // namespace hinterland::compiler
