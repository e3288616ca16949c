// Which accesses of a function get a hint, and where: one check for an object, before the first use of it.
//
// An access is left without a hint where a fault does as well, because it reads ahead (memory used in order by a loop
// inside another, or by a pointer that moves slowly), where the page has just been asked for, and where the program
// hardly ever comes. (TrackFM 3.1 to 3.4 guards all of them, and takes guards away again; a hint that is missing
// costs a fault, so here it is the other way round.)
#pragma once

#include <string>
#include <vector>

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include "compiler/accesses.hpp"
#include "compiler/site.hpp"
#include "compiler/strips.hpp"

namespace hinterland::compiler {

struct Analyses {
  llvm::LoopInfo& loops;
  llvm::DominatorTree& dominators;
  llvm::PostDominatorTree& post_dominators;
  llvm::ScalarEvolution& evolution;
  llvm::BlockFrequencyInfo& frequency;
};

// What became of an access, for remarks.
enum class Verdict : std::uint8_t {
  hinted,
  hinted_as_range,
  hinted_in_strips,
  hinted_where_loop_begins,
  same_object,
  moves_slowly,
  in_order,
  seldom,
};
constexpr unsigned kVerdicts = 8;
bool is_hinted(Verdict verdict);
const char* text_of(Verdict verdict);

struct Plan {
  std::vector<Site> sites;
  llvm::MapVector<llvm::Loop*, std::vector<Stream>> streams;  // of loops that latch_of() can cut
  std::vector<Verdict> verdicts;                              // one an access
};

// May insert instructions that compute addresses before loops; changes nothing else. `all`: also the accesses that
// faults would serve as well.
Plan plan_of(const std::vector<Access>& accesses, const Analyses& analyses, bool all);

}  // namespace hinterland::compiler
