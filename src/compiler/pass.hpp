// The pass: hints for the accesses of a module, at the end of the optimizer's work, so that nothing it does is in
// their way, nor they in its. It changes no result: a hint is not an access, and loops go round as often as before.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>
#include "compiler/site.hpp"

namespace hinterland::compiler {

// Functions in which nothing is inserted: those that do not run often, and those whose code is not ours to change.
bool is_left_alone(const llvm::Function& function);

class HintPass : public llvm::PassInfoMixin<HintPass> {
 public:
  explicit HintPass(SiteCode code) : code_(code) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

 private:
  SiteCode code_;
};

}  // namespace hinterland::compiler
