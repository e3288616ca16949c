// Loops in strips: a hint for the pages that a loop goes through in order, once for 64 of them.
//
//     preheader                        preheader
//         |                                |
//     +-> header                       +-> strip:  phis of the header's variables
//     |   ...                          |     |     hint [address, address + what a strip of rounds uses)
//     +-- latch: X < bound?            |     |     limit = the lesser of X + a strip's rounds, and bound
//         |                            |   +-> header
//        exit                          |   |   ...
//                                      |   +-- latch: X < limit?
//                                      |     |
//                                      +-- next:  X < bound?
//                                            |
//                                           exit
//
// Only the latch's comparison changes, and who comes before the header: the body, vectorised or not, stays
// instruction for instruction what it was. The loop goes round as often as before whatever the values are: while X is
// on the near side of the limit it is on the near side of the bound, and at the limit the old question is asked.
#pragma once

#include <optional>
#include <vector>

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/InstrTypes.h>
#include "compiler/site.hpp"

namespace hinterland::compiler {

// Memory that a loop goes through in order. In one round it uses [pointer + low, pointer + high).
struct Stream {
  llvm::Value* pointer;
  const llvm::SCEV* start;
  std::int64_t step_bytes;
  std::int64_t low, high;
  bool writes;
  llvm::SmallVector<llvm::Loop*, 2> inner;  // short loops inside, whose rounds are part of one round
  llvm::DebugLoc line;
};

// What a loop's latch asks before another round: `variable goes bound`, the variable having changed by `step`.
struct Latch {
  llvm::Value* variable;
  llvm::Value* bound;
  std::int64_t step;
  llvm::CmpInst::Predicate goes;
  unsigned to_header;  // of the branch's successors

  bool until_equal() const { return goes == llvm::CmpInst::ICMP_NE; }
};

// The loop can be cut: it ends at its latch alone, by comparing a variable that moves by a constant.
std::optional<Latch> latch_of(const llvm::Loop& loop, llvm::ScalarEvolution& evolution);

// Cuts the loop, and appends the hints to `sites`. False where an address cannot be computed where a strip begins;
// then nothing has changed. The analyses of the function no longer hold for the blocks of the loop.
bool cut_into_strips(llvm::Loop& loop, const Latch& latch, llvm::ArrayRef<Stream> streams, std::vector<Site>& sites);

}  // namespace hinterland::compiler
