// Which instructions of a function may use memory that is far.
#pragma once

#include <cstdint>
#include <vector>

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Function.h>

namespace hinterland::compiler {

// One use of memory: of a known number of bytes at `pointer`, or, where `length` is not null, of so many.
struct Access {
  llvm::Instruction* at;
  llvm::Value* pointer;
  std::uint64_t bytes;
  llvm::Value* length;
  bool writes;
};

// False where all objects that the pointer may point into are known, and on the stack or among the program's
// variables: these are never far. A pointer merged of such and of others may be far.
bool may_be_far(llvm::Value* pointer);

// In the order of the function. What a block does that ends in unreachable (abort, throw) is left out.
std::vector<Access> accesses_of(llvm::Function& function, const llvm::TargetLibraryInfo& library);

}  // namespace hinterland::compiler
