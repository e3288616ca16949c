#include "compiler/accesses.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

// Up to here a copy is looked at as one access: at its first byte.
constexpr std::uint64_t kSmallCopyBytes = 256;

bool is_never_far(const Value* object) {
  if (isa<AllocaInst>(object) || isa<GlobalValue>(object) || isa<ConstantPointerNull>(object) ||
      isa<UndefValue>(object))
    return true;
  if (const auto* argument = dyn_cast<Argument>(object))
    return argument->hasByValAttr() || argument->hasStructRetAttr();
  const auto* intrinsic = dyn_cast<IntrinsicInst>(object);
  return intrinsic != nullptr && intrinsic->getIntrinsicID() == Intrinsic::threadlocal_address;
}

class Collector {
 public:
  Collector(const DataLayout& layout, const TargetLibraryInfo& library) : layout_(layout), library_(library) {}

  void look_at(Instruction& instruction) {
    if (instruction.hasMetadata(LLVMContext::MD_nosanitize)) return;  // a sanitizer's own
    if (auto* load = dyn_cast<LoadInst>(&instruction))
      add(load, load->getPointerOperand(), size_of(load->getType()), false);
    else if (auto* store = dyn_cast<StoreInst>(&instruction))
      add(store, store->getPointerOperand(), size_of(store->getValueOperand()->getType()), true);
    else if (auto* change = dyn_cast<AtomicRMWInst>(&instruction))
      add(change, change->getPointerOperand(), size_of(change->getValOperand()->getType()), true);
    else if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction))
      add(exchange, exchange->getPointerOperand(), size_of(exchange->getNewValOperand()->getType()), true);
    else if (auto* copy = dyn_cast<AnyMemIntrinsic>(&instruction))
      look_at_copy(*copy);
    else if (auto* call = dyn_cast<CallInst>(&instruction))
      look_at_call(*call);
  }

  std::vector<Access> take() { return std::move(found_); }

 private:
  std::uint64_t size_of(Type* type) const { return layout_.getTypeStoreSize(type).getKnownMinValue(); }

  void add(Instruction* at, Value* pointer, std::uint64_t bytes, bool writes) {
    if (may_be_far(pointer)) found_.push_back({at, pointer, bytes, nullptr, writes});
  }
  void add_range(Instruction* at, Value* pointer, Value* length, bool writes) {
    if (!may_be_far(pointer)) return;
    auto* known = dyn_cast<ConstantInt>(length);
    if (known != nullptr && known->getZExtValue() <= kSmallCopyBytes)
      found_.push_back({at, pointer, known->getZExtValue(), nullptr, writes});
    else
      found_.push_back({at, pointer, 1, length, writes});
  }

  void look_at_copy(AnyMemIntrinsic& copy) {
    add_range(&copy, copy.getRawDest(), copy.getLength(), true);
    if (auto* transfer = dyn_cast<AnyMemTransferInst>(&copy))
      add_range(&copy, transfer->getRawSource(), copy.getLength(), false);
  }

  // Functions of libc that use what they are given from its first byte on.
  void look_at_call(CallInst& call) {
    LibFunc name;
    if (call.getCalledFunction() == nullptr || !library_.getLibFunc(*call.getCalledFunction(), name)) return;
    switch (name) {
      case LibFunc_memcmp:
      case LibFunc_bcmp:
        for (unsigned i : {0u, 1u}) add_range(&call, call.getArgOperand(i), call.getArgOperand(2), false);
        return;
      case LibFunc_strlen:
      case LibFunc_strnlen:
      case LibFunc_memchr:
        return add(&call, call.getArgOperand(0), 1, false);
      case LibFunc_strcmp:
      case LibFunc_strncmp:
      case LibFunc_strcpy:
        add(&call, call.getArgOperand(0), 1, name == LibFunc_strcpy);
        return add(&call, call.getArgOperand(1), 1, false);
      default:
        return;
    }
  }

  const DataLayout& layout_;
  const TargetLibraryInfo& library_;
  std::vector<Access> found_;
};

}  // namespace

bool may_be_far(Value* pointer) {
  if (pointer->getType()->getPointerAddressSpace() != 0) return false;
  constexpr unsigned kStepsMax = 16;
  SmallVector<const Value*, 8> objects;
  getUnderlyingObjects(pointer, objects, nullptr, kStepsMax);
  return !all_of(objects, is_never_far);
}

std::vector<Access> accesses_of(Function& function, const TargetLibraryInfo& library) {
  Collector collector(function.getParent()->getDataLayout(), library);
  for (BasicBlock& block : function) {
    if (isa<UnreachableInst>(block.getTerminator()) || block.isEHPad()) continue;
    for (Instruction& instruction : block) collector.look_at(instruction);
  }
  return collector.take();
}

}  // namespace hinterland::compiler
