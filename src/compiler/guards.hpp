// Guards before loads and stores of the heap, and allocations in the object window (TrackFM, ASPLOS 2024, 3.1
// and 3.3; docs/adr/0064-guards.md).
//
// Each access becomes two: as it was, and, where its object is in the window, by a guard. Whether it is, is asked
// once for an object, where the pointer to it comes from: what is computed from a pointer points into the same
// object. What gets no guard is served by page faults, so no access has to be found.
#pragma once

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/PassManager.h>
#include "compiler/guard_emit.hpp"

namespace hinterland::compiler {

class GuardPass : public llvm::PassInfoMixin<GuardPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
};

// Calls of malloc, calloc, realloc and operator new that may be of a block for the window go through functions of the
// module's own, which ask the runtime first. How many.
unsigned redirect_allocations(llvm::Function& function, const llvm::TargetLibraryInfo& library,
                              GuardEmitter& emitter);

}  // namespace hinterland::compiler
