// Pointers and indices that go through memory a little at a time, though not by the same step in each round: those of
// parsers, merges and outputs. A fault on such a page reads ahead as well as a hint would, so their accesses get
// none.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include "compiler/accesses.hpp"

namespace hinterland::compiler {

// Whether the address of the access, from one round of a loop around it to the next, stays or moves in one direction,
// by at most a quarter of a page.
bool moves_slowly(const Access& access, llvm::Loop& innermost);

}  // namespace hinterland::compiler
