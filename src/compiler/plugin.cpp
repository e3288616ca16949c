// libhinterland-pass.so: what clang and opt find when they load it (-fpass-plugin=, -load-pass-plugin=).
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/CommandLine.h>
#include "compiler/copies.hpp"
#include "compiler/guards.hpp"
#include "compiler/pass.hpp"

namespace {

using namespace llvm;

// Set by `hinterland cc --objects`.
cl::opt<bool> g_objects("hinterland-objects",
                        cl::desc("Guards, and a heap whose blocks are far one by one (docs/compiler.md)"));

// Set by `hinterland cc --static-hints`.
cl::opt<bool> g_static("hinterland-static-hints", cl::desc("Hints that need no patching (docs/compiler.md)"));

using hinterland::compiler::CopyChoice;
using hinterland::compiler::SiteCode;

// For measurements (bench/trackfm/run).
cl::opt<CopyChoice> g_copies("hinterland-copies", cl::desc("Which loops work on copies of blocks, with guards"),
                             cl::init(CopyChoice::worth_it),
                             cl::values(clEnumValN(CopyChoice::none, "none", "none"),
                                        clEnumValN(CopyChoice::worth_it, "worth-it", "those that gain"),
                                        clEnumValN(CopyChoice::all, "all", "all that can")));

void extend(PassBuilder& builder) {
  builder.registerOptimizerLastEPCallback([](ModulePassManager& passes, OptimizationLevel level) {
    if (level == OptimizationLevel::O0) return;
    // Before hints, which stand in loops as calls do.
    if (g_objects) passes.addPass(hinterland::compiler::CopyPass(g_copies));
    passes.addPass(hinterland::compiler::HintPass(g_static ? SiteCode::always : SiteCode::patched));
    if (g_objects) passes.addPass(hinterland::compiler::GuardPass());
  });
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager& passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name == "hinterland-hints")
          passes.addPass(hinterland::compiler::HintPass(SiteCode::patched));
        else if (name == "hinterland-static-hints")
          passes.addPass(hinterland::compiler::HintPass(SiteCode::always));
        else if (name == "hinterland-copies")
          passes.addPass(hinterland::compiler::CopyPass(g_copies));
        else if (name == "hinterland-guards")
          passes.addPass(hinterland::compiler::GuardPass());
        else
          return false;
        return true;
      });
}

}  // namespace

// Sites and guards are assembly, and flang 19 has not made the parser for it ready, as clang does. Absent where LLVM
// is not a library of its own.
extern "C" __attribute__((weak)) void LLVMInitializeX86AsmParser();

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  if (LLVMInitializeX86AsmParser != nullptr) LLVMInitializeX86AsmParser();
  return {LLVM_PLUGIN_API_VERSION, "hinterland", "1", extend};
}
