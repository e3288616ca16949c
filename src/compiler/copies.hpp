// Loops that work on a copy of a block instead of asking a guard for each access (TrackFM's loop chunking, ASPLOS
// 2024, 3.4; docs/adr/0073-loops-on-copies-of-blocks.md). The loop stays as it is; only its pointer is another one:
//
//     copy = in_window(p) ? borrow(p, from, to, room on the stack) : p       before the loop
//     ... copy[i] ...
//     if (in_window(p)) give_back(p, copy, from, to)                         after it, where it writes
#pragma once

#include <llvm/IR/PassManager.h>
#include "compiler/copy_plan.hpp"

namespace hinterland::compiler {

class CopyPass : public llvm::PassInfoMixin<CopyPass> {
 public:
  explicit CopyPass(CopyChoice choice = CopyChoice::worth_it) : choice_(choice) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

 private:
  CopyChoice choice_;
};

// Of an access that this pass has led to a copy: it needs no guard.
bool is_of_copy(const llvm::Instruction& access);

}  // namespace hinterland::compiler
