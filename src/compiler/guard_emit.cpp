#include "compiler/guard_emit.hpp"

#include <llvm/IR/InlineAsm.h>
#include "compiler/module_description.hpp"

namespace hinterland::compiler {

using namespace llvm;

namespace {

// As in object/guards.hpp.
constexpr unsigned kGuardsVersion = 2, kBaseOffset = 8, kSizeOffset = 16, kEntriesOffset = 24;
constexpr const char* kGuardsDescription = "__hinterland_guards";
constexpr auto kGuardEntries = static_cast<unsigned>(GuardEntry::count);

unsigned offset_of(GuardEntry entry) { return kEntriesOffset + 8 * static_cast<unsigned>(entry); }
GuardEntry of_size(GuardEntry first, unsigned bytes) {
  return static_cast<GuardEntry>(static_cast<unsigned>(first) + (bytes == 1   ? 0
                                                                 : bytes == 2 ? 1
                                                                 : bytes == 4 ? 2
                                                                              : 3));
}

std::string call_of(GuardEntry entry, const char* description) {
  return std::string("callq *${") + description + ":c}+" + std::to_string(offset_of(entry)) + "(%rip)";
}

}  // namespace

Value* GuardEmitter::field(IRBuilder<>& builder, std::uint64_t offset, Type* type) {
  Value* at = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), &description(), offset);
  return builder.CreateAlignedLoad(type, at, Align(8));
}

// Loaded each time, so that base and size are operands of the instructions that use them, and cost no registers.
Value* GuardEmitter::is_in_window(IRBuilder<>& builder, Value* address) {
  Type* word = builder.getInt64Ty();
  Value* within = builder.CreateSub(builder.CreatePtrToInt(address, word), field(builder, kBaseOffset, word));
  return builder.CreateICmpULT(within, field(builder, kSizeOffset, word), "hinterland.window");
}

// What is said to align the stack has no red zone below it, as for sites of hints (emit.cpp).
Value* GuardEmitter::read(IRBuilder<>& builder, Value* address, unsigned bytes) {
  auto* type = FunctionType::get(builder.getInt64Ty(), {builder.getPtrTy(), builder.getPtrTy()}, false);
  auto* code = InlineAsm::get(type, call_of(of_size(GuardEntry::read_1, bytes), "2"),
                              "={rax},{r11},i,~{rcx},~{r10},~{memory},~{flags},~{dirflag},~{fpsr}", true, true);
  CallInst* made = builder.CreateCall(code, {address, &description()});
  made->setDoesNotThrow();
  made->getFunction()->addFnAttr(Attribute::NoRedZone);
  return made;
}

void GuardEmitter::write(IRBuilder<>& builder, Value* address, Value* word, unsigned bytes) {
  auto* type =
      FunctionType::get(builder.getVoidTy(), {builder.getPtrTy(), builder.getInt64Ty(), builder.getPtrTy()}, false);
  auto* code = InlineAsm::get(type, call_of(of_size(GuardEntry::write_1, bytes), "2"),
                              "{r11},{rdx},i,~{rax},~{rcx},~{r10},~{memory},~{flags},~{dirflag},~{fpsr}", true, true);
  CallInst* made = builder.CreateCall(code, {address, word, &description()});
  made->setDoesNotThrow();
  made->getFunction()->addFnAttr(Attribute::NoRedZone);
}

Value* GuardEmitter::entry(IRBuilder<>& builder, GuardEntry entry) {
  return field(builder, offset_of(entry), builder.getPtrTy());
}

CallInst* GuardEmitter::call(IRBuilder<>& builder, GuardEntry which, FunctionType* type, ArrayRef<Value*> arguments) {
  CallInst* made = builder.CreateCall(type, entry(builder, which), arguments);
  made->setDoesNotThrow();
  return made;
}

GlobalVariable& GuardEmitter::description() {
  if (description_ == nullptr) description_ = module_.getNamedGlobal(kGuardsDescription);  // by another pass
  if (description_ == nullptr) description_ = &make_description();
  return *description_;
}

GlobalVariable& GuardEmitter::make_description() {
  LLVMContext& context = module_.getContext();
  Type *pointer = PointerType::get(context, 0), *number = Type::getInt32Ty(context),
       *word = Type::getInt64Ty(context);
  auto* entries = ArrayType::get(pointer, kGuardEntries);
  auto* type = StructType::get(context, {number, number, word, word, entries});
  Constant* value = ConstantStruct::get(
      type, {ConstantInt::get(number, kGuardsVersion), ConstantInt::get(number, kEntriesOffset + 8 * kGuardEntries),
             ConstantInt::get(word, 0), ConstantInt::get(word, 0), ConstantAggregateZero::get(entries)});
  GlobalVariable& made =
      add_description(module_, {kGuardsDescription, "__hinterland_guards_begin", "hl_guarded_module"}, value);
  // The runtime writes base and size, which nobody here sees, and the code here reads them.
  made.setExternallyInitialized(true);
  return made;
}

}  // namespace hinterland::compiler
