// What a loop must be like to work on a copy of a block, and what one copy costs and saves.
#pragma once

#include "compiler/copy_plan.hpp"

namespace hinterland::compiler {

class CopyLoop {
 public:
  explicit CopyLoop(const CopyAnalyses& analyses) : analyses_(analyses) {}

  // Why copy.loop may not work on a copy; null when it may.
  const char* refusal_of(const BlockCopy& copy) const;
  // Of what the copy's accesses use in one run of copy.loop.
  CopiedRange range_of(const BlockCopy& copy) const;
  // Sets copy.written. False: some byte between the first and the last that is written may stay as it was.
  bool find_written(BlockCopy& copy) const;
  // Cycles that guards take in one run of copy.loop, and that the copy takes.
  double saved_by(const BlockCopy& copy) const;
  double cost_of(const BlockCopy& copy) const;
  // How often the loop's body runs each time that it is entered: by a profile (-fprofile-use), or what is known.
  double rounds_of(const llvm::Loop& loop) const;

 private:
  CopiedRange range_of(llvm::Instruction& access, llvm::Value* object, const llvm::Loop& loop) const;
  const char* refusal_of(llvm::Instruction& other, const BlockCopy& copy, llvm::BatchAAResults& aliases,
                         bool scopes_hold) const;
  double runs_of(const llvm::Instruction& access, const llvm::Loop& loop) const;
  double bytes_of(const BlockCopy& copy, const CopiedRange& range) const;

  CopyAnalyses analyses_;
};

// Of a load or store.
std::int64_t bytes_of_access(const llvm::Instruction& access);

}  // namespace hinterland::compiler
