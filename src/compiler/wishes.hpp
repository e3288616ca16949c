// What a program says about its functions:
//   __attribute__((annotate("hinterland:never")))     no hints in it
//   __attribute__((annotate("hinterland:always")))    for each of its accesses, also where faults would do as well
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Module.h>

namespace hinterland::compiler {

enum class Wish : std::uint8_t { none, never, always };

// Annotations that begin with "hinterland:" and mean nothing are warned of, at the function's name, unless `quietly`.
using Wishes = llvm::DenseMap<const llvm::Function*, Wish>;
Wishes wishes_of(const llvm::Module& module, bool quietly = false);

}  // namespace hinterland::compiler
