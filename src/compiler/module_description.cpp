#include "compiler/module_description.hpp"

#include <string>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

// Before the program's own constructors, which may use memory. (0 to 100 are for implementations.)
constexpr int kConstructorPriority = 50;

// if (&taker != nullptr) taker(&description);
void add_constructor(Module& module, const ModuleDescription& names, GlobalVariable& description) {
  LLVMContext& context = module.getContext();
  Type *pointer = PointerType::get(context, 0), *nothing = Type::getVoidTy(context);
  auto* function =
      Function::Create(FunctionType::get(nothing, false), GlobalValue::LinkOnceODRLinkage, names.constructor, module);
  function->setVisibility(GlobalValue::HiddenVisibility);
  function->setDSOLocal(true);
  function->setComdat(description.getComdat());
  function->setDoesNotThrow();
  auto* entry = BasicBlock::Create(context, "", function);
  auto* tell = BasicBlock::Create(context, "", function);
  auto* end = BasicBlock::Create(context, "", function);
  IRBuilder<> builder(entry);
  // From the table that is filled when the program starts, also where a linker would settle a weak symbol (hint.h).
  const std::string taker = names.taker;
  auto* load = InlineAsm::get(FunctionType::get(pointer, false),
                              ".weak " + taker + "\nmovq " + taker + "@GOTPCREL(%rip), $0", "=r", false);
  Value* runtime = builder.CreateCall(load);
  builder.CreateCondBr(builder.CreateIsNull(runtime), end, tell);
  builder.SetInsertPoint(tell);
  builder.CreateCall(FunctionType::get(nothing, {pointer}, false), runtime, {&description});
  builder.CreateBr(end);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
  appendToGlobalCtors(module, function, kConstructorPriority, &description);
}

}  // namespace

GlobalVariable& add_description(Module& module, const ModuleDescription& names, Constant* value) {
  auto* made =
      new GlobalVariable(module, value->getType(), false, GlobalValue::LinkOnceODRLinkage, value, names.name);
  made->setVisibility(GlobalValue::HiddenVisibility);
  made->setDSOLocal(true);
  made->setComdat(module.getOrInsertComdat(names.name));
  made->setAlignment(Align(8));
  add_constructor(module, names, *made);
  return *made;
}

}  // namespace hinterland::compiler
