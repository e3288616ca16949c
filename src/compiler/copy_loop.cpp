#include "compiler/copy_loop.hpp"

#include <algorithm>
#include <cmath>

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

// Cycles, measured by bench/trackfm/run (ADR 0073): a guard of a word and of more; a copy that is made, and written
// back; and the bytes that are copied in one.
constexpr double kGuardOfWord = 20, kGuardOfMore = 60, kCopyMade = 70, kCopyWritten = 50, kBytesACycle = 16;
// Rounds of a loop of which nothing is known, and of what the vectoriser left over; bytes of a block.
constexpr double kUsualRounds = 16, kLeftOverRounds = 4, kUsualBlockBytes = 256;
// More rounds than any loop has; so nothing overflows that follows from them.
constexpr std::uint64_t kRoundsMax = std::uint64_t{1} << 46;
constexpr std::int64_t kStepMax = 1 << 15;

const SCEV* number(ScalarEvolution& evolution, std::int64_t value) {
  return evolution.getConstant(APInt(64, static_cast<std::uint64_t>(value), true));
}

// Accesses to all of what is around a pointer, in any round: so what is said of it holds for the loop as a whole.
MemoryLocation around(const Instruction& access, bool scopes_hold) {
  AAMDNodes tags = access.getAAMetadata();
  if (!scopes_hold) tags.Scope = tags.NoAlias = nullptr;
  return MemoryLocation(getLoadStorePointerOperand(&access), LocationSize::beforeOrAfterPointer(), tags);
}

bool does_nothing(const Instruction& instruction) {
  const auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction);
  return intrinsic != nullptr && intrinsic->isAssumeLikeIntrinsic();
}

// What a scope says that begins in the loop holds for one round.
bool has_scopes(const Loop& loop) {
  for (const BasicBlock* block : loop.blocks())
    for (const Instruction& instruction : *block)
      if (isa<NoAliasScopeDeclInst>(instruction)) return true;
  return false;
}

const char* refusal_of_shape(const BlockCopy& copy) {
  const Loop& loop = *copy.loop;
  if (!loop.isLoopSimplifyForm() || !isa<BranchInst>(loop.getLoopPreheader()->getTerminator()))
    return "its loop begins at several places";
  SmallVector<BasicBlock*, 4> exits;
  loop.getUniqueExitBlocks(exits);
  if (any_of(exits, [](const BasicBlock* block) { return block->isEHPad(); })) return "its loop handles exceptions";
  if (copy.is_written && loop.getExitingBlock() != loop.getLoopLatch()) return "its loop may end early";
  return nullptr;
}

// joined.from is the lesser of both.
CopiedRange joined(ScalarEvolution& evolution, const CopiedRange& a, const CopiedRange& b) {
  return {a.from == nullptr || b.from == nullptr ? nullptr : evolution.getSMinExpr(a.from, b.from),
          a.to == nullptr || b.to == nullptr ? nullptr : evolution.getSMaxExpr(a.to, b.to)};
}

}  // namespace

std::int64_t bytes_of_access(const Instruction& access) {
  const DataLayout& layout = access.getDataLayout();
  return static_cast<std::int64_t>(
      layout.getTypeStoreSize(getLoadStoreType(const_cast<Instruction*>(&access))).getFixedValue());
}

// --- whether
// ---------------------------------------------------------------------------------------------------------

const char* CopyLoop::refusal_of(const BlockCopy& copy) const {
  if (const char* why = refusal_of_shape(copy)) return why;
  BatchAAResults aliases(analyses_.aliases);
  aliases.enableCrossIterationMode();
  const bool scopes_hold = !has_scopes(*copy.loop);
  for (BasicBlock* block : copy.loop->blocks())
    for (Instruction& other : *block) {
      if (does_nothing(other) || is_contained(copy.accesses, &other)) continue;
      if (const char* why = refusal_of(other, copy, aliases, scopes_hold)) return why;
    }
  return nullptr;
}

const char* CopyLoop::refusal_of(Instruction& other, const BlockCopy& copy, BatchAAResults& aliases,
                                 bool scopes_hold) const {
  if (other.mayThrow() || isa<InvokeInst, CallBrInst>(other)) return "its loop may be left by an exception";
  const bool writes = other.mayWriteToMemory();
  if (copy.is_written && !other.willReturn()) return "its loop may be left by a call";
  if (!writes && !(copy.is_written && other.mayReadFromMemory())) return nullptr;
  const auto* store = dyn_cast<StoreInst>(&other);
  const auto* load = dyn_cast<LoadInst>(&other);
  if ((store == nullptr || !store->isSimple()) && (load == nullptr || !load->isSimple()))
    return "its loop calls, or synchronises";
  for (const Instruction* access : copy.accesses) {
    if (!writes && !isa<StoreInst>(access)) continue;
    if (aliases.alias(around(*access, scopes_hold), around(other, scopes_hold)) != AliasResult::NoAlias)
      return writes ? "its loop may write to it by another pointer" : "its loop may read it by another pointer";
  }
  return nullptr;
}

// --- which bytes
// -----------------------------------------------------------------------------------------------------

CopiedRange CopyLoop::range_of(const BlockCopy& copy) const {
  CopiedRange range;
  bool first = true;
  for (Instruction* access : copy.accesses) {
    const CopiedRange one = range_of(*access, copy.object, *copy.loop);
    range = first ? one : joined(analyses_.evolution, range, one);
    first = false;
  }
  return range;
}

CopiedRange CopyLoop::range_of(Instruction& access, Value* object, const Loop& loop) const {
  ScalarEvolution& evolution = analyses_.evolution;
  const SCEV* offset =
      evolution.getMinusSCEV(evolution.getSCEV(getLoadStorePointerOperand(&access)), evolution.getSCEV(object));
  if (isa<SCEVCouldNotCompute>(offset)) return {};
  const SCEV* bytes = number(evolution, bytes_of_access(access));
  if (evolution.isLoopInvariant(offset, &loop)) return {offset, evolution.getAddExpr(offset, bytes)};
  const auto* moves = dyn_cast<SCEVAddRecExpr>(offset);
  if (moves == nullptr || !moves->isAffine()) return {};
  const auto* step = dyn_cast<SCEVConstant>(moves->getStepRecurrence(evolution));
  if (step == nullptr || !evolution.isLoopInvariant(moves->getStart(), &loop)) return {};
  if (step->getAPInt().getSignificantBits() > 16) return {};
  const SCEV* start = moves->getStart();
  const SCEV* rounds = evolution.getSymbolicMaxBackedgeTakenCount(moves->getLoop());
  const SCEV* end = nullptr;
  if (!isa<SCEVCouldNotCompute>(rounds) && evolution.isLoopInvariant(rounds, &loop) &&
      evolution.getTypeSizeInBits(rounds->getType()) <= 64) {
    rounds =
        evolution.getUMinExpr(evolution.getNoopOrZeroExtend(rounds, Type::getInt64Ty(loop.getHeader()->getContext())),
                              number(evolution, kRoundsMax));
    end = evolution.getAddExpr(start, evolution.getMulExpr(rounds, step));
  }
  if (step->getAPInt().isNegative()) return {end, evolution.getAddExpr(start, bytes)};
  return {start, end == nullptr ? nullptr : evolution.getAddExpr(end, bytes)};
}

// The stores of a round follow each other without a gap, in each round, and rounds do as well.
bool CopyLoop::find_written(BlockCopy& copy) const {
  ScalarEvolution& evolution = analyses_.evolution;
  if (isa<SCEVCouldNotCompute>(evolution.getBackedgeTakenCount(copy.loop))) return false;
  struct Store {
    std::int64_t at, bytes;
  };
  SmallVector<Store, 8> stores;
  const SCEVAddRecExpr* first = nullptr;
  CopiedRange range;
  for (Instruction* access : copy.accesses) {
    auto* store = dyn_cast<StoreInst>(access);
    if (store == nullptr) continue;
    if (!analyses_.dominators.dominates(store->getParent(), copy.loop->getLoopLatch())) return false;
    const auto* moves = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(store->getPointerOperand()));
    if (moves == nullptr || moves->getLoop() != copy.loop || !moves->isAffine()) return false;
    const CopiedRange one = range_of(*store, copy.object, *copy.loop);
    if (one.from == nullptr || one.to == nullptr) return false;
    range = first == nullptr ? one : joined(evolution, range, one);
    if (first == nullptr) first = moves;
    const auto* apart = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(moves, first));
    if (apart == nullptr || apart->getAPInt().getSignificantBits() > 32) return false;
    stores.push_back({apart->getAPInt().getSExtValue(), bytes_of_access(*store)});
  }
  if (first == nullptr) return false;
  sort(stores, [](const Store& a, const Store& b) { return a.at < b.at; });
  std::int64_t end = stores.front().at;
  for (const Store& store : stores) {
    if (store.at != end) return false;
    end += store.bytes;
  }
  const auto* step = dyn_cast<SCEVConstant>(first->getStepRecurrence(evolution));
  if (step == nullptr || step->getAPInt().abs() != static_cast<std::uint64_t>(end - stores.front().at)) return false;
  copy.written = range;
  return true;
}

// --- what for
// --------------------------------------------------------------------------------------------------------

double CopyLoop::rounds_of(const Loop& loop) const {
  const BasicBlock *header = loop.getHeader(), *before = loop.getLoopPreheader();
  if (header->getParent()->hasProfileData() && before != nullptr) {
    const auto entered = static_cast<double>(analyses_.frequency.getBlockFreq(before).getFrequency());
    const auto runs = static_cast<double>(analyses_.frequency.getBlockFreq(header).getFrequency());
    return runs / std::max(entered, 1.0);
  }
  ScalarEvolution& evolution = analyses_.evolution;
  if (const unsigned known = evolution.getSmallConstantTripCount(&loop)) return known;
  double rounds = getBooleanLoopAttribute(&loop, "llvm.loop.unroll.runtime.disable") ? kLeftOverRounds : kUsualRounds;
  if (const unsigned most = evolution.getSmallConstantMaxTripCount(&loop)) rounds = std::min<double>(rounds, most);
  return rounds;
}

double CopyLoop::runs_of(const Instruction& access, const Loop& loop) const {
  const Loop* inner = analyses_.loops.getLoopFor(access.getParent());
  const auto of_round = static_cast<double>(analyses_.frequency.getBlockFreq(inner->getHeader()).getFrequency());
  double runs = static_cast<double>(analyses_.frequency.getBlockFreq(access.getParent()).getFrequency()) /
                std::max(of_round, 1.0);
  for (;; inner = inner->getParentLoop()) {
    runs *= rounds_of(*inner);
    if (inner == &loop) return runs;
  }
}

double CopyLoop::saved_by(const BlockCopy& copy) const {
  double cycles = 0;
  for (const Instruction* access : copy.accesses)
    cycles += runs_of(*access, *copy.loop) * (bytes_of_access(*access) <= 8 ? kGuardOfWord : kGuardOfMore);
  return cycles;
}

double CopyLoop::bytes_of(const BlockCopy& copy, const CopiedRange& range) const {
  if (range.from == nullptr || range.to == nullptr) return kUsualBlockBytes;
  if (const auto* known = dyn_cast<SCEVConstant>(analyses_.evolution.getMinusSCEV(range.to, range.from)))
    return static_cast<double>(known->getAPInt().getSExtValue());
  double most = 0;
  for (const Instruction* access : copy.accesses)
    most = std::max(most, runs_of(*access, *copy.loop) * static_cast<double>(bytes_of_access(*access)));
  return most;
}

double CopyLoop::cost_of(const BlockCopy& copy) const {
  const double made = kCopyMade + bytes_of(copy, copy.range) / kBytesACycle;
  return made + (copy.is_written ? kCopyWritten + bytes_of(copy, copy.written) / kBytesACycle : 0);
}

}  // namespace hinterland::compiler
