// Which loops work on a copy of a block, on which of its bytes, and whether that pays
// (docs/adr/0073-loops-on-copies-of-blocks.md).
//
// A loop that calls nothing and synchronises with nobody cannot see what others write to a block meanwhile, so it may
// read all of it before it begins, and write what it writes when it has ended. Then it needs no guard in it, and
// nothing keeps the object in place: who leaves the loop in any way leaves a copy behind, and no more.
#pragma once

#include <string>
#include <vector>

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>

namespace hinterland::compiler {

enum class CopyChoice : std::uint8_t { none, worth_it, all };

// Bytes, counted from the pointer to the object, the end excluded. Null: as far as the block goes.
struct CopiedRange {
  const llvm::SCEV *from = nullptr, *to = nullptr;
};

struct BlockCopy {
  llvm::Loop* loop;     // made when it is entered
  llvm::Value* object;  // a pointer into the block, the same in all of the loop
  llvm::SmallVector<llvm::Instruction*, 4> accesses;
  CopiedRange range;
  bool is_written = false;  // then every byte of `written` is, in each run of the loop
  CopiedRange written;
};

struct CopyAnalyses {
  llvm::LoopInfo& loops;
  llvm::DominatorTree& dominators;
  llvm::ScalarEvolution& evolution;
  llvm::AAResults& aliases;
  llvm::BlockFrequencyInfo& frequency;
};

// Of simplified loops. What is refused is said by remarks.
std::vector<BlockCopy> copies_of(llvm::Function& function, const CopyAnalyses& analyses, CopyChoice choice);

}  // namespace hinterland::compiler
