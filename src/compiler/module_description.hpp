// By what a module with hints or guards meets the runtime: a structure that the runtime fills in, one in each program
// or library, and a constructor that shows it to the runtime, if there is one. Nothing is referred to but weakly: no
// library is needed.
#pragma once

#include <llvm/IR/Module.h>

namespace hinterland::compiler {

struct ModuleDescription {
  const char* name;         // of the structure
  const char* constructor;  // of the function, void(), that runs before the program's own constructors
  const char* taker;        // of the runtime's function, void(structure*), which may be absent
};

// Adds both to the module, which has neither yet.
llvm::GlobalVariable& add_description(llvm::Module& module, const ModuleDescription& names, llvm::Constant* value);

}  // namespace hinterland::compiler
