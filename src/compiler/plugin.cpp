// libhinterland-pass.so: what clang and opt find when they load it (-fpass-plugin=, -load-pass-plugin=).
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include "compiler/pass.hpp"

namespace {

using namespace llvm;

void extend(PassBuilder& builder) {
  builder.registerOptimizerLastEPCallback([](ModulePassManager& passes, OptimizationLevel level) {
    if (level != OptimizationLevel::O0) passes.addPass(hinterland::compiler::HintPass());
  });
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager& passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name != "hinterland-hints") return false;
        passes.addPass(hinterland::compiler::HintPass());
        return true;
      });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "hinterland", "1", extend};
}
