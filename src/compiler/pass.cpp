#include "compiler/pass.hpp"

#include <llvm/ADT/Statistic.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include "compiler/accesses.hpp"
#include "compiler/emit.hpp"
#include "compiler/plan.hpp"
#include "compiler/remarks.hpp"
#include "compiler/strips.hpp"
#include "compiler/wishes.hpp"

#define DEBUG_TYPE "hinterland"

namespace hinterland::compiler {

using namespace llvm;

namespace {

// Written by `clang -save-stats`, also by compilers that were built without assertions.
TrackingStatistic accesses_seen(DEBUG_TYPE, "Accesses", "Accesses to memory that may be far");
TrackingStatistic accesses_left(DEBUG_TYPE, "AccessesLeft", "Accesses left to faults");
TrackingStatistic sites_made(DEBUG_TYPE, "Sites", "Sites of hints");
TrackingStatistic loops_cut(DEBUG_TYPE, "LoopsCut", "Loops cut into strips");

// Loops with a block before them and one latch; what was known of the function is known anew after that.
void simplify_loops(Function& function, FunctionAnalysisManager& manager) {
  LoopInfo& loops = manager.getResult<LoopAnalysis>(function);
  for (Loop* loop : loops)
    simplifyLoop(loop, &manager.getResult<DominatorTreeAnalysis>(function), &loops,
                 &manager.getResult<ScalarEvolutionAnalysis>(function),
                 &manager.getResult<AssumptionAnalysis>(function), nullptr, false);
}

class FunctionHints {
 public:
  FunctionHints(Function& function, FunctionAnalysisManager& manager)
      : function_(function),
        loops_(manager.getResult<LoopAnalysis>(function)),
        evolution_(manager.getResult<ScalarEvolutionAnalysis>(function)),
        dominators_(manager.getResult<DominatorTreeAnalysis>(function)),
        post_dominators_(function),
        probability_(function, loops_),
        frequency_(function, probability_, loops_) {}

  void insert(const std::vector<Access>& accesses, bool all, Emitter& emitter) {
    Plan plan = plan_of(accesses, {loops_, dominators_, post_dominators_, evolution_, frequency_}, all);
    remark(function_, accesses, plan.verdicts);
    std::vector<std::pair<Loop*, Latch>> cuts;  // before the first cut, after which analyses do not hold
    for (auto& [loop, streams] : plan.streams) cuts.emplace_back(loop, *latch_of(*loop, evolution_));
    for (auto& [loop, latch] : cuts) loops_cut += cut_into_strips(*loop, latch, plan.streams[loop], plan.sites);
    for (const Site& site : plan.sites) emitter.emit(site);
    sites_made += static_cast<unsigned>(plan.sites.size());
    accesses_seen += static_cast<unsigned>(accesses.size());
    for (Verdict verdict : plan.verdicts) accesses_left += !is_hinted(verdict);
  }

 private:
  Function& function_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  DominatorTree& dominators_;
  PostDominatorTree post_dominators_;
  BranchProbabilityInfo probability_;
  BlockFrequencyInfo frequency_;
};

bool is_left_alone(const Function& function) {
  return function.isDeclaration() || function.hasAvailableExternallyLinkage() || function.hasOptNone() ||
         function.hasFnAttribute(Attribute::Naked) || function.hasFnAttribute(Attribute::Cold) ||
         function.getCallingConv() == CallingConv::X86_INTR || function.getName().starts_with("__hinterland_");
}

}  // namespace

bool is_for_our_machine(const Module& module) {
  const Triple target(module.getTargetTriple());
  return target.getArch() == Triple::x86_64 && target.isOSLinux();
}

SmallVector<Function*, 32> functions_to_change(Module& module, const Wishes& wishes) {
  SmallVector<Function*, 32> functions;
  for (Function& function : module)
    if (!is_left_alone(function) && wishes.lookup(&function) != Wish::never) functions.push_back(&function);
  return functions;
}

PreservedAnalyses HintPass::run(Module& module, ModuleAnalysisManager& analyses) {
  if (!is_for_our_machine(module)) return PreservedAnalyses::all();
  FunctionAnalysisManager& manager = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  const auto wishes = wishes_of(module);
  Emitter emitter(module, code_);
  bool changed = false;
  for (Function* function : functions_to_change(module, wishes)) {
    const std::vector<Access> accesses = accesses_of(*function, manager.getResult<TargetLibraryAnalysis>(*function));
    if (accesses.empty()) continue;
    simplify_loops(*function, manager);
    FunctionHints(*function, manager).insert(accesses, wishes.lookup(function) == Wish::always, emitter);
    manager.invalidate(*function, PreservedAnalyses::none());
    changed = true;
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace hinterland::compiler
