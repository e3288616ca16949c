// Where a guarded program's blocks come from.
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include "compiler/guards.hpp"

namespace hinterland::compiler {

using namespace llvm;

namespace {

constexpr std::uint64_t kBlockBytesMax = 2048;  // Window::kBlockMax

struct Allocator {
  LibFunc name;
  const char* instead;
  GuardEntry entry;
};
constexpr Allocator kAllocators[] = {
    {LibFunc_malloc, "__hinterland_malloc", GuardEntry::allocate},
    {LibFunc_calloc, "__hinterland_calloc", GuardEntry::allocate_zeroed},
    {LibFunc_realloc, "__hinterland_realloc",
     GuardEntry::allocate},  // of nothing; of a block, the runtime knows where it is
    {LibFunc_Znwm, "__hinterland_new", GuardEntry::allocate_new},
    {LibFunc_Znam, "__hinterland_new_array", GuardEntry::allocate_new},
};

const Allocator* allocator_of(const CallBase& call, const TargetLibraryInfo& library) {
  LibFunc name;
  if (call.getCalledFunction() == nullptr || !library.getLibFunc(*call.getCalledFunction(), name)) return nullptr;
  for (const Allocator& each : kAllocators)
    if (each.name == name) return &each;
  return nullptr;
}

// False: known to be too large.
bool may_fit(const CallBase& call) {
  if (call.getArgOperand(0)->getType()->isPointerTy()) return true;
  std::uint64_t bytes = 1;
  for (const Use& argument : call.args()) {
    const auto* known = dyn_cast<ConstantInt>(argument);
    if (known == nullptr) return true;
    if (known->getValue().ugt(kBlockBytesMax)) return false;
    bytes *= known->getZExtValue();
  }
  return bytes <= kBlockBytesMax;
}

// block = asked > kBlockBytesMax || entry == nullptr ? nullptr : entry(asked); return block ? block : original(...);
Function* make_instead(Function& original, const Allocator& allocator, GuardEmitter& emitter) {
  Module& module = *original.getParent();
  if (Function* there = module.getFunction(allocator.instead)) return there;
  LLVMContext& context = module.getContext();
  auto* made =
      Function::Create(original.getFunctionType(), GlobalValue::LinkOnceODRLinkage, allocator.instead, module);
  made->setVisibility(GlobalValue::HiddenVisibility);
  made->setDSOLocal(true);
  made->setComdat(module.getOrInsertComdat(allocator.instead));
  made->addFnAttr(Attribute::NoInline);  // at each allocation, it would be more code than the call of malloc
  made->addFnAttr(Attribute::UWTable);
  auto* begin = BasicBlock::Create(context, "", made);
  auto* ask = BasicBlock::Create(context, "", made);
  auto* use = BasicBlock::Create(context, "", made);
  auto* fall_back = BasicBlock::Create(context, "", made);
  SmallVector<Value*, 2> arguments;
  for (Argument& argument : made->args()) arguments.push_back(&argument);
  IRBuilder<> builder(begin);
  const bool resizes = arguments[0]->getType()->isPointerTy();
  Value* bytes = arguments[resizes ? 1 : 0];
  Value* too_large = builder.CreateICmpUGT(bytes, builder.getInt64(kBlockBytesMax));
  if (resizes) {
    too_large = builder.CreateOr(too_large, builder.CreateIsNotNull(arguments[0]));
  } else if (arguments.size() == 2) {  // no product of two that are small enough overflows
    too_large = builder.CreateOr(too_large, builder.CreateICmpUGT(arguments[1], builder.getInt64(kBlockBytesMax)));
    bytes = builder.CreateMul(bytes, arguments[1]);
    too_large = builder.CreateOr(too_large, builder.CreateICmpUGT(bytes, builder.getInt64(kBlockBytesMax)));
  }
  Value* runtime = emitter.entry(builder, allocator.entry);
  builder.CreateCondBr(builder.CreateOr(too_large, builder.CreateIsNull(runtime)), fall_back, ask);
  builder.SetInsertPoint(ask);
  auto* type = FunctionType::get(builder.getPtrTy(), {builder.getInt64Ty()}, false);
  Value* block = builder.CreateCall(type, runtime, {bytes});
  builder.CreateCondBr(builder.CreateIsNull(block), fall_back, use);
  builder.SetInsertPoint(use);
  builder.CreateRet(block);
  builder.SetInsertPoint(fall_back);
  builder.CreateRet(builder.CreateCall(original.getFunctionType(), &original, arguments));
  return made;
}

}  // namespace

unsigned redirect_allocations(Function& function, const TargetLibraryInfo& library, GuardEmitter& emitter) {
  unsigned redirected = 0;
  for (BasicBlock& block : function)
    for (Instruction& instruction : block) {
      auto* call = dyn_cast<CallBase>(&instruction);
      if (call == nullptr || call->isMustTailCall()) continue;
      const Allocator* allocator = allocator_of(*call, library);
      if (allocator == nullptr || !may_fit(*call)) continue;
      call->setCalledFunction(make_instead(*call->getCalledFunction(), *allocator, emitter));
      ++redirected;
    }
  return redirected;
}

}  // namespace hinterland::compiler
