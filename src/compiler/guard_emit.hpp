// What guards are in a module: the description by which it meets the runtime (object/guards.hpp), and calls through
// it.
#pragma once

#include <cstdint>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace hinterland::compiler {

// As in object/guards.hpp.
enum class GuardEntry : unsigned {
  read_1,
  read_2,
  read_4,
  read_8,
  write_1,
  write_2,
  write_4,
  write_8,
  read_bytes,
  write_bytes,
  move,
  fill,
  allocate,
  allocate_zeroed,
  allocate_new,
  compare,
  length,
  compare_text,
  borrow,
  give_back,
  count
};

class GuardEmitter {
 public:
  explicit GuardEmitter(llvm::Module& module) : module_(module) {}

  // Whether the address is in the object window, as an i1. Four instructions.
  llvm::Value* is_in_window(llvm::IRBuilder<>& builder, llvm::Value* address);
  // Of 1, 2, 4 or 8 bytes, as an i64 whose other bits are 0.
  llvm::Value* read(llvm::IRBuilder<>& builder, llvm::Value* address, unsigned bytes);
  void write(llvm::IRBuilder<>& builder, llvm::Value* address, llvm::Value* word, unsigned bytes);
  // By C's conventions; the entry is there.
  llvm::CallInst* call(llvm::IRBuilder<>& builder, GuardEntry entry, llvm::FunctionType* type,
                       llvm::ArrayRef<llvm::Value*> arguments);
  // The entry, which may be null.
  llvm::Value* entry(llvm::IRBuilder<>& builder, GuardEntry entry);

 private:
  llvm::GlobalVariable& description();
  llvm::GlobalVariable& make_description();
  llvm::Value* field(llvm::IRBuilder<>& builder, std::uint64_t offset, llvm::Type* type);

  llvm::Module& module_;
  llvm::GlobalVariable* description_ = nullptr;
};

}  // namespace hinterland::compiler
