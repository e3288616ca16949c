#include "compiler/guards.hpp"

#include <optional>

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/Statistic.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include "compiler/accesses.hpp"
#include "compiler/copies.hpp"
#include "compiler/pass.hpp"
#include "compiler/wishes.hpp"

#define GUARDS_TYPE "hinterland"

namespace hinterland::compiler {

using namespace llvm;

namespace {

TrackingStatistic guards_made(GUARDS_TYPE, "Guards", "Accesses that got a guard");
TrackingStatistic guards_left(GUARDS_TYPE, "GuardsLeft", "Accesses to memory that may be far, left to page faults");
TrackingStatistic objects_asked(GUARDS_TYPE, "GuardedObjects", "Pointers that were compared with the object window");
TrackingStatistic allocations_redirected(GUARDS_TYPE, "Allocations", "Allocations that may be in the object window");

// Larger values are read and written by pages.
constexpr std::uint64_t kValueBytesMax = 64;

bool is_word(std::uint64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

// Why an access gets no guard; null when it does.
const char* refusal_of(const Instruction& instruction, const DataLayout& layout) {
  const auto bytes_of = [&](const Type* type) { return layout.getTypeStoreSize(const_cast<Type*>(type)); };
  if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
    const TypeSize bytes = bytes_of(load->getType());
    if (bytes.isScalable() || bytes.getFixedValue() > kValueBytesMax || load->getType()->isAggregateType() ||
        load->getType()->isX86_AMXTy())
      return "its type is too large";
    if (load->isAtomic() && !is_word(bytes.getFixedValue())) return "it is atomic, of more than 8 bytes";
    return nullptr;
  }
  if (const auto* store = dyn_cast<StoreInst>(&instruction)) {
    const Type* type = store->getValueOperand()->getType();
    const TypeSize bytes = bytes_of(type);
    if (bytes.isScalable() || bytes.getFixedValue() > kValueBytesMax || type->isAggregateType() ||
        type->isX86_AMXTy())
      return "its type is too large";
    if (!store->isAtomic()) return nullptr;
    if (!is_word(bytes.getFixedValue())) return "it is atomic, of more than 8 bytes";
    return isStrongerThan(store->getOrdering(), AtomicOrdering::Release) ? "it is a barrier as well" : nullptr;
  }
  return isa<MemIntrinsic, CallInst>(instruction) ? nullptr : "it reads and writes at once";
}

struct Guarded {
  Instruction* at;
  SmallVector<Value*, 2> pointers;  // those of its operands that may be far
  bool writes;
};

// What is called of libc for strings and bytes; none for other calls.
std::optional<LibFunc> text_function_of(const Instruction& instruction, const TargetLibraryInfo& library) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  LibFunc name;
  if (call == nullptr || call->isMustTailCall() || call->getCalledFunction() == nullptr ||
      !library.getLibFunc(*call->getCalledFunction(), name))
    return std::nullopt;
  const bool known = name == LibFunc_memcmp || name == LibFunc_bcmp || name == LibFunc_strlen ||
                     name == LibFunc_strcmp || name == LibFunc_strncmp;
  return known ? std::optional(name) : std::nullopt;
}

// Where an access's pointers are.
Guarded guarded_of(Instruction& instruction, const TargetLibraryInfo& library) {
  Guarded found{&instruction, {}, true};
  if (auto* load = dyn_cast<LoadInst>(&instruction)) {
    found.pointers.push_back(load->getPointerOperand());
    found.writes = false;
  } else if (auto* store = dyn_cast<StoreInst>(&instruction)) {
    found.pointers.push_back(store->getPointerOperand());
  } else if (auto* change = dyn_cast<AtomicRMWInst>(&instruction)) {
    found.pointers.push_back(change->getPointerOperand());
  } else if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
    found.pointers.push_back(exchange->getPointerOperand());
  } else if (auto* copy = dyn_cast<MemIntrinsic>(&instruction)) {
    if (copy->getDestAddressSpace() == 0) found.pointers.push_back(copy->getRawDest());
    if (auto* transfer = dyn_cast<MemTransferInst>(copy);
        transfer != nullptr && transfer->getSourceAddressSpace() == 0)
      found.pointers.push_back(transfer->getRawSource());
  }
  if (text_function_of(instruction, library)) {
    found.writes = false;
    for (Value* argument : cast<CallInst>(instruction).args())
      if (argument->getType()->isPointerTy()) found.pointers.push_back(argument);
  }
  erase_if(found.pointers, [](Value* pointer) { return !may_be_far(pointer); });
  return found;
}

class FunctionGuards {
 public:
  FunctionGuards(Function& function, const TargetLibraryInfo& library, GuardEmitter& emitter)
      : function_(function),
        library_(library),
        layout_(function.getParent()->getDataLayout()),
        emitter_(emitter),
        remarks_(&function) {}

  bool insert() {
    SmallVector<Guarded, 32> accesses;  // before blocks are split
    for (BasicBlock& block : function_) {
      if (isa<UnreachableInst>(block.getTerminator()) || block.isEHPad()) continue;
      for (Instruction& instruction : block) {
        if (instruction.hasMetadata(LLVMContext::MD_nosanitize)) continue;  // a sanitizer's own
        if (is_of_copy(instruction)) continue;
        Guarded found = guarded_of(instruction, library_);
        if (!found.pointers.empty() && !is_left(found)) accesses.push_back(std::move(found));
      }
    }
    for (const Guarded& access : accesses) guard(access);
    return !accesses.empty();
  }

 private:
  const char* kind_of(const Guarded& access) const {
    return isa<MemIntrinsic>(access.at) ? "copy"
           : isa<CallInst>(access.at)   ? "comparison"
           : access.writes              ? "write"
                                        : "read";
  }

  bool is_left(const Guarded& access) {
    const char* why = refusal_of(*access.at, layout_);
    if (why == nullptr) {
      ++guards_made;
      remarks_.emit([&] {
        return OptimizationRemark(GUARDS_TYPE, "Guarded", access.at)
               << kind_of(access) << " of memory that may be far: guarded";
      });
      return false;
    }
    ++guards_left;
    remarks_.emit([&] {
      return OptimizationRemarkMissed(GUARDS_TYPE, "NotGuarded", access.at)
             << kind_of(access) << " of memory that may be far: left to page faults, for " << why;
    });
    return true;
  }

  // Asked where the object's pointer comes from, so once for all that is done with it, and outside of loops that go
  // through the object.
  Value* is_in_window(Value* pointer, Instruction* at) {
    Value* object = getUnderlyingObject(pointer, 0);
    Value*& known = in_window_[object];
    if (known != nullptr) return known;
    IRBuilder<> builder(at);
    bool everywhere = false;
    if (auto* instruction = dyn_cast<Instruction>(object)) {
      if (auto after = instruction->getInsertionPointAfterDef()) {
        builder.SetInsertPoint((*after)->getParent(), *after);
        everywhere = true;
      }
    } else if (isa<Argument>(object)) {
      BasicBlock& entry = function_.getEntryBlock();
      builder.SetInsertPoint(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
      everywhere = true;
    }
    builder.SetCurrentDebugLocation(at->getDebugLoc());
    Value* made = emitter_.is_in_window(builder, everywhere ? object : pointer);
    ++objects_asked;
    if (everywhere)
      known = made;
    else
      in_window_.erase(object);
    return made;
  }

  void guard(const Guarded& access) {
    Value* in_window = nullptr;
    for (Value* pointer :
         guarded_of(*access.at, library_).pointers) {  // anew: one that was read by a guard is another value now
      Value* found = is_in_window(pointer, access.at);
      IRBuilder<> builder(access.at);
      in_window = in_window == nullptr ? found : builder.CreateOr(in_window, found);
    }
    Instruction *guarded = nullptr, *plain = nullptr;
    SplitBlockAndInsertIfThenElse(in_window, access.at, &guarded, &plain);
    BasicBlock* tail = access.at->getParent();
    IRBuilder<> builder(guarded);
    builder.SetCurrentDebugLocation(access.at->getDebugLoc());
    access.at->moveBefore(plain);
    if (!access.writes) {
      auto* load = dyn_cast<LoadInst>(access.at);
      Value* value = load != nullptr ? read(builder, *load) : call_text(builder, *cast<CallInst>(access.at));
      auto* both = PHINode::Create(access.at->getType(), 2, "", tail->begin());
      access.at->replaceAllUsesWith(both);
      both->addIncoming(value, builder.GetInsertBlock());
      both->addIncoming(access.at, access.at->getParent());
    } else if (auto* store = dyn_cast<StoreInst>(access.at)) {
      write(builder, *store);
    } else {
      copy(builder, *cast<MemIntrinsic>(access.at));
    }
  }

  Value* read(IRBuilder<>& builder, LoadInst& load) {
    Type* type = load.getType();
    const std::uint64_t bytes = layout_.getTypeStoreSize(type).getFixedValue();
    if (!is_word(bytes)) {
      AllocaInst* between = room_for(type);
      call_bytes(builder, GuardEntry::read_bytes, between, load.getPointerOperand(), bytes);
      return builder.CreateAlignedLoad(type, between, between->getAlign());
    }
    Value* word = emitter_.read(builder, load.getPointerOperand(), static_cast<unsigned>(bytes));
    const std::uint64_t bits = layout_.getTypeSizeInBits(type).getFixedValue();
    return builder.CreateBitOrPointerCast(builder.CreateTrunc(word, builder.getIntNTy(static_cast<unsigned>(bits))),
                                          type);
  }

  void write(IRBuilder<>& builder, StoreInst& store) {
    Value* value = store.getValueOperand();
    Type* type = value->getType();
    const std::uint64_t bytes = layout_.getTypeStoreSize(type).getFixedValue();
    if (!is_word(bytes)) {
      AllocaInst* between = room_for(type);
      builder.CreateAlignedStore(value, between, between->getAlign());
      return call_bytes(builder, GuardEntry::write_bytes, store.getPointerOperand(), between, bytes);
    }
    const std::uint64_t bits = layout_.getTypeSizeInBits(type).getFixedValue();
    Value* number = builder.CreateBitOrPointerCast(value, builder.getIntNTy(static_cast<unsigned>(bits)));
    emitter_.write(builder, store.getPointerOperand(), builder.CreateZExt(number, builder.getInt64Ty()),
                   static_cast<unsigned>(bytes));
  }

  Value* call_text(IRBuilder<>& builder, CallInst& call) {
    const LibFunc name = *text_function_of(call, library_);
    Type *pointer = builder.getPtrTy(), *word = builder.getInt64Ty();
    if (name == LibFunc_strlen)
      return emitter_.call(builder, GuardEntry::length, FunctionType::get(word, {pointer}, false),
                           {call.getArgOperand(0)});
    auto* type = FunctionType::get(builder.getInt32Ty(), {pointer, pointer, word}, false);
    const bool text = name == LibFunc_strcmp || name == LibFunc_strncmp;
    Value* most = name == LibFunc_strcmp ? builder.getInt64(~std::uint64_t{0}) : call.getArgOperand(2);
    return emitter_.call(builder, text ? GuardEntry::compare_text : GuardEntry::compare, type,
                         {call.getArgOperand(0), call.getArgOperand(1), most});
  }

  void copy(IRBuilder<>& builder, MemIntrinsic& intrinsic) {
    Value* length = builder.CreateZExtOrTrunc(intrinsic.getLength(), builder.getInt64Ty());
    if (auto* fill = dyn_cast<MemSetInst>(&intrinsic)) {
      auto* type = FunctionType::get(builder.getVoidTy(),
                                     {builder.getPtrTy(), builder.getInt32Ty(), builder.getInt64Ty()}, false);
      Value* byte = builder.CreateZExt(fill->getValue(), builder.getInt32Ty());
      emitter_.call(builder, GuardEntry::fill, type, {fill->getRawDest(), byte, length});
    } else {
      call_bytes(builder, GuardEntry::move, intrinsic.getRawDest(), cast<MemTransferInst>(intrinsic).getRawSource(),
                 length);
    }
  }

  void call_bytes(IRBuilder<>& builder, GuardEntry entry, Value* to, Value* from, std::uint64_t bytes) {
    call_bytes(builder, entry, to, from, builder.getInt64(bytes));
  }
  void call_bytes(IRBuilder<>& builder, GuardEntry entry, Value* to, Value* from, Value* bytes) {
    auto* type =
        FunctionType::get(builder.getVoidTy(), {builder.getPtrTy(), builder.getPtrTy(), builder.getInt64Ty()}, false);
    emitter_.call(builder, entry, type, {to, from, bytes});
  }

  // On the stack, one for each type.
  AllocaInst* room_for(Type* type) {
    AllocaInst*& room = rooms_[type];
    if (room == nullptr) {
      BasicBlock& entry = function_.getEntryBlock();
      room = new AllocaInst(type, 0, "", entry.begin());
    }
    return room;
  }

  Function& function_;
  const TargetLibraryInfo& library_;
  const DataLayout& layout_;
  GuardEmitter& emitter_;
  OptimizationRemarkEmitter remarks_;
  DenseMap<Value*, Value*> in_window_;
  DenseMap<Type*, AllocaInst*> rooms_;
};

}  // namespace

PreservedAnalyses GuardPass::run(Module& module, ModuleAnalysisManager& analyses) {
  if (!is_for_our_machine(module)) return PreservedAnalyses::all();
  FunctionAnalysisManager& manager = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  const auto wishes = wishes_of(module, true);  // HintPass has said it
  GuardEmitter emitter(module);
  bool changed = false;
  for (Function* function : functions_to_change(module, wishes)) {
    const auto& library = manager.getResult<TargetLibraryAnalysis>(*function);
    const unsigned redirected = redirect_allocations(*function, library, emitter);
    allocations_redirected += redirected;
    const bool guarded = FunctionGuards(*function, library, emitter).insert();
    if (redirected == 0 && !guarded) continue;
    manager.invalidate(*function, PreservedAnalyses::none());
    changed = true;
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace hinterland::compiler
