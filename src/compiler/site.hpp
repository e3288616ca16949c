// Places of a program where the runtime may be told which memory comes next.
//
// A site is a nop of five bytes, and beside the function's code two instructions that compute the address and go on
// to the runtime (emit.hpp). While the nop is a nop, the program computes nothing for it.
#pragma once

#include <cstdint>

#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/Instruction.h>

namespace hinterland::compiler {

constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t kStripBytes = 64 * kPageBytes;  // as much as a fault reads ahead at most

// How it was put there, for people who ask later (`hinterland report`): the runtime does not care. In the table from
// bit 8 of an entry's kind on; trace/site_table.hpp reads it.
enum class SiteForm : std::uint8_t { single, range, strips, loop_begins };

// What stands in the program: a nop that the runtime patches, or a call where there is a runtime (emit.hpp).
enum class SiteCode : std::uint8_t { patched, always };

struct Site {
  llvm::Instruction* before;
  llvm::Value* address;
  llvm::Value* length;  // bytes that will be used, of 64 bits; null for an address alone
  bool writes;
  llvm::DebugLoc line;
  SiteForm form = SiteForm::single;
};

}  // namespace hinterland::compiler
