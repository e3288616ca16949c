#include "compiler/emit.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include "compiler/module_description.hpp"

namespace hinterland::compiler {

using namespace llvm;

namespace {

// As in runtime/sites.hpp.
constexpr unsigned kVersion = 1, kEntryBytes = 12, kChecks = 4, kChecksOffset = 24;
constexpr unsigned kWrites = 1, kHasLength = 2, kStatic = 4, kFormShift = 8;
constexpr const char* kDescription = "__hinterland_hints";

// $0 is the address, ${1:c} the description.
std::string patched_assembly_of(unsigned kind, SiteForm form) {
  const std::string check = std::to_string(kChecksOffset + 8 * kind);
  return ".Lhinterland_site${:uid}:\n"
         ".byte 0x0f,0x1f,0x44,0x00,0x00\n"
         ".pushsection .text.hinterland,\"ax?\",@progbits\n"
         ".Lhinterland_call${:uid}:\n"
         "leaq $0, %r11\n"
         "jmpq *${1:c}+" +
         check +
         "(%rip)\n"
         ".popsection\n"
         // R: kept although nothing refers to it when the linker drops what is not used.
         ".pushsection hinterland_sites,\"aR?\",@progbits\n"
         ".p2align 2\n"
         ".long .Lhinterland_site${:uid}-., .Lhinterland_call${:uid}-., " +
         std::to_string(kind | static_cast<unsigned>(form) << kFormShift) +
         "\n"
         ".popsection";
}

std::string static_assembly_of(unsigned kind, SiteForm form) {
  const std::string check = "${1:c}+" + std::to_string(kChecksOffset + 8 * kind) + "(%rip)";
  return "cmpq $$0, " + check +
         "\n"
         "je .Lhinterland_past${:uid}\n"
         "leaq $0, %r11\n"
         "callq *" +
         check +
         "\n"
         ".Lhinterland_past${:uid}:\n"
         ".pushsection hinterland_sites,\"aR?\",@progbits\n"
         ".p2align 2\n"
         ".long .Lhinterland_past${:uid}-5-., .Lhinterland_past${:uid}-5-., " +
         std::to_string(kind | kStatic | static_cast<unsigned>(form) << kFormShift) +
         "\n"
         ".popsection";
}

// Instructions of a function with debug information have a line, or the verifier complains once they are inlined.
DebugLoc line_of(const Site& site) {
  if (site.line) return site.line;
  DISubprogram* function = site.before->getFunction()->getSubprogram();
  return function != nullptr ? DebugLoc(DILocation::get(site.before->getContext(), 0, 0, function)) : DebugLoc();
}

}  // namespace

void Emitter::emit(const Site& site) {
  LLVMContext& context = module_.getContext();
  Type *pointer = PointerType::get(context, 0), *word = Type::getInt64Ty(context);
  IRBuilder<> builder(site.before);
  builder.SetCurrentDebugLocation(line_of(site));
  const unsigned kind = (site.writes ? kWrites : 0) | (site.length != nullptr ? kHasLength : 0);
  SmallVector<Type*, 3> types{pointer, pointer};
  SmallVector<Value*, 3> arguments{site.address, &description()};
  std::string constraints = "*m,i";
  if (site.length != nullptr) {
    types.push_back(word);
    arguments.push_back(builder.CreateZExtOrTrunc(site.length, word));
    constraints += ",{r10}";
  }
  constraints += ",~{r11},~{flags},~{dirflag},~{fpsr}";
  auto* type = FunctionType::get(Type::getVoidTy(context), types, false);
  // It calls, and so writes below the stack pointer. Of code that aligns the stack LLVM knows that; the attribute
  // says it of this function, but is lost where the function is inlined after that (with -flto).
  constexpr bool kHasEffects = true, kAlignsStack = true;
  const std::string assembly =
      code_ == SiteCode::patched ? patched_assembly_of(kind, site.form) : static_assembly_of(kind, site.form);
  auto* code = InlineAsm::get(type, assembly, constraints, kHasEffects, kAlignsStack);
  CallInst* call = builder.CreateCall(code, arguments);
  call->addParamAttr(0, Attribute::get(context, Attribute::ElementType, Type::getInt8Ty(context)));
  call->setDoesNotThrow();
  site.before->getFunction()->addFnAttr(Attribute::NoRedZone);
}

GlobalVariable& Emitter::description() {
  if (description_ == nullptr) description_ = &make_description();
  return *description_;
}

GlobalVariable& Emitter::make_description() {
  LLVMContext& context = module_.getContext();
  Type *pointer = PointerType::get(context, 0), *number = Type::getInt32Ty(context);
  auto end_of_table = [&](const char* name) {
    auto* symbol = cast<GlobalVariable>(module_.getOrInsertGlobal(name, Type::getInt8Ty(context)));
    symbol->setVisibility(GlobalValue::HiddenVisibility);
    symbol->setDSOLocal(true);
    return symbol;
  };
  auto* checks = ArrayType::get(pointer, kChecks);
  auto* type = StructType::get(context, {number, number, pointer, pointer, checks});
  Constant* value =
      ConstantStruct::get(type, {ConstantInt::get(number, kVersion), ConstantInt::get(number, kEntryBytes),
                                 end_of_table("__start_hinterland_sites"), end_of_table("__stop_hinterland_sites"),
                                 ConstantAggregateZero::get(checks)});
  return add_description(module_, {kDescription, "__hinterland_begin", "hl_hinted_module"}, value);
}

}  // namespace hinterland::compiler
