#include "compiler/strips.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include "compiler/rematerialise.hpp"

namespace hinterland::compiler {

using namespace llvm;

namespace {

constexpr std::int64_t kLatchStepMax = 1 << 16;

bool can_be_cut_at(CmpInst::Predicate goes, std::int64_t step) {
  switch (goes) {
    case CmpInst::ICMP_NE:
      return true;
    case CmpInst::ICMP_ULT:
    case CmpInst::ICMP_SLT:
      return step > 0;
    case CmpInst::ICMP_UGT:
    case CmpInst::ICMP_SGT:
      return step < 0;
    default:
      return false;
  }
}

class Cutter {
 public:
  Cutter(Loop& loop, const Latch& latch, ArrayRef<Stream> streams, std::vector<Site>& sites)
      : loop_(loop),
        latch_(latch),
        streams_(streams),
        sites_(sites),
        preheader_(loop.getLoopPreheader()),
        header_(loop.getHeader()),
        last_(loop.getLoopLatch()),
        branch_(cast<BranchInst>(last_->getTerminator())),
        exit_(branch_->getSuccessor(1 - latch.to_header)),
        word_(Type::getInt64Ty(header_->getContext())) {}

  bool cut() {
    Function* function = header_->getParent();
    strip_ = BasicBlock::Create(function->getContext(), "hinterland.strip", function, header_);
    next_ = BasicBlock::Create(function->getContext(), "hinterland.next", function, exit_);
    make_variables();
    if (!find_addresses()) {
      take_back();
      return false;
    }
    Value* limit = make_limit();
    for (std::size_t i = 0; i < streams_.size(); ++i) make_site(streams_[i], addresses_[i]);
    rewire(limit);
    return true;
  }

 private:
  // A phi in the strip's block for each of the header's.
  void make_variables() {
    IRBuilder<> builder(strip_);
    for (PHINode& phi : header_->phis()) {
      PHINode* outer = builder.CreatePHI(phi.getType(), 2);
      outer->addIncoming(phi.getIncomingValueForBlock(preheader_), preheader_);
      outer->addIncoming(phi.getIncomingValueForBlock(last_), next_);
      outer_[&phi] = outer;
    }
    go_ = builder.CreateBr(header_);
    go_->setDebugLoc(streams_[0].line);
  }

  bool find_addresses() {
    // Copies: what is inside must not look at the cutter, which goes away.
    auto of_strip = [this](Value* value) -> Value* {
      auto found = outer_.find(value);
      return found == outer_.end() ? nullptr : found->second;
    };
    begin_ = rematerialise(latch_.variable, go_, loop_, of_strip);
    if (begin_ == nullptr) return false;
    for (const Stream& stream : streams_) {
      const StandIn inner = at_beginning_of(loop_, stream.inner);
      Value* address = rematerialise(stream.pointer, go_, loop_, [&](Value* value) {
        Value* known = of_strip(value);
        return known != nullptr ? known : inner(value);
      });
      if (address == nullptr) return false;
      addresses_.push_back(address);
    }
    return true;
  }

  void take_back() {
    for (auto& [phi, outer] : outer_) outer->replaceAllUsesWith(PoisonValue::get(outer->getType()));
    for (BasicBlock* block : {strip_, next_}) {
      block->dropAllReferences();
      block->eraseFromParent();
    }
  }

  // The rounds of a strip, so that the widest stream uses kStripBytes, as an amount of the variable.
  std::int64_t reach() const {
    std::int64_t widest = 1;
    for (const Stream& stream : streams_) widest = std::max(widest, std::abs(stream.step_bytes));
    return (std::max<std::int64_t>(1, kStripBytes / widest) - 1) * std::abs(latch_.step);
  }

  // Sets here_ and returns the limit of the strip. Differences of unsigned numbers; where the variable is past the
  // bound already, which a comparison by order allows, the strip is what is left: one round.
  Value* make_limit() {
    IRBuilder<> builder(go_);
    builder.SetCurrentDebugLocation(streams_[0].line);
    const bool is_pointer = begin_->getType()->isPointerTy();
    Type* type = is_pointer ? word_ : begin_->getType();
    auto number = [&](Value* value) {
      Value* frozen = builder.CreateFreeze(value);
      return is_pointer ? builder.CreatePtrToInt(frozen, word_) : frozen;
    };
    Value* begin = number(begin_);
    Value* bound = number(latch_.bound);
    Value* stretch = ConstantInt::get(type, static_cast<std::uint64_t>(reach()));
    Value* left = latch_.step > 0 ? builder.CreateSub(bound, begin) : builder.CreateSub(begin, bound);
    if (!latch_.until_equal()) {
      Value* goes_on = builder.CreateICmp(latch_.goes, begin, bound);
      left = builder.CreateSelect(goes_on, left, ConstantInt::get(type, 0));
    }
    Value* more = builder.CreateICmpUGT(left, stretch);
    here_ = builder.CreateZExt(builder.CreateSelect(more, stretch, left), word_);
    Value* end = latch_.step > 0 ? builder.CreateAdd(begin, stretch) : builder.CreateSub(begin, stretch);
    if (is_pointer) end = builder.CreateIntToPtr(end, begin_->getType());
    return builder.CreateSelect(more, end, latch_.bound);
  }

  void make_site(const Stream& stream, Value* address) {
    IRBuilder<> builder(go_);
    builder.SetCurrentDebugLocation(stream.line);
    const std::int64_t step = std::abs(stream.step_bytes), unit = std::abs(latch_.step);
    Value* bytes = step % unit == 0
                       ? builder.CreateMul(here_, builder.getInt64(step / unit))
                       : builder.CreateUDiv(builder.CreateMul(here_, builder.getInt64(step)), builder.getInt64(unit));
    Value* first = builder.CreatePtrAdd(builder.CreateFreeze(address), builder.getInt64(stream.low));
    if (stream.step_bytes < 0) first = builder.CreatePtrAdd(first, builder.CreateNeg(bytes));
    Value* length = builder.CreateAdd(bytes, builder.getInt64(stream.high - stream.low));
    sites_.push_back({go_, first, length, stream.writes, stream.line, SiteForm::strips});
  }

  void rewire(Value* limit) {
    preheader_->getTerminator()->replaceSuccessorWith(header_, strip_);
    for (PHINode& phi : header_->phis()) {
      const int at = phi.getBasicBlockIndex(preheader_);
      phi.setIncomingBlock(at, strip_);
      phi.setIncomingValue(at, outer_[&phi]);
    }
    MDBuilder metadata(header_->getContext());
    IRBuilder<> ask(next_);
    ask.SetCurrentDebugLocation(branch_->getDebugLoc());
    Value* again = ask.CreateICmp(latch_.goes, latch_.variable, latch_.bound);
    ask.CreateCondBr(again, strip_, exit_, metadata.createBranchWeights(1, 1));
    exit_->replacePhiUsesWith(last_, next_);
    IRBuilder<> inside(branch_);
    branch_->setCondition(inside.CreateICmp(latch_.goes, latch_.variable, limit));
    branch_->setSuccessor(latch_.to_header, header_);
    branch_->setSuccessor(1 - latch_.to_header, next_);
    if (latch_.to_header == 1) branch_->swapSuccessors();  // the condition says when it goes on
  }

  Loop& loop_;
  const Latch& latch_;
  ArrayRef<Stream> streams_;
  std::vector<Site>& sites_;
  BasicBlock *preheader_, *header_, *last_;
  BranchInst* branch_;
  BasicBlock* exit_;
  Type* word_;
  BasicBlock *strip_ = nullptr, *next_ = nullptr;
  BranchInst* go_ = nullptr;
  MapVector<Value*, PHINode*> outer_;
  Value* begin_ = nullptr;  // of the latch's variable, in the first round of the strip
  Value* here_ = nullptr;   // how far it goes within the strip
  std::vector<Value*> addresses_;
};

}  // namespace

std::optional<Latch> latch_of(const Loop& loop, ScalarEvolution& evolution) {
  BasicBlock *preheader = loop.getLoopPreheader(), *latch = loop.getLoopLatch();
  if (preheader == nullptr || latch == nullptr || loop.getExitingBlock() != latch) return std::nullopt;
  auto* branch = dyn_cast<BranchInst>(latch->getTerminator());
  if (branch == nullptr || !branch->isConditional() || !isa<BranchInst>(preheader->getTerminator()))
    return std::nullopt;
  auto* compare = dyn_cast<ICmpInst>(branch->getCondition());
  const unsigned to_header = branch->getSuccessor(0) == loop.getHeader() ? 0 : 1;
  if (compare == nullptr || loop.contains(branch->getSuccessor(1 - to_header))) return std::nullopt;
  const unsigned variable_at = loop.isLoopInvariant(compare->getOperand(1)) ? 0 : 1;
  Latch found{compare->getOperand(variable_at), compare->getOperand(1 - variable_at), 0, CmpInst::ICMP_NE, to_header};
  Type* type = found.variable->getType();
  if (!loop.isLoopInvariant(found.bound) || loop.isLoopInvariant(found.variable)) return std::nullopt;
  if (!type->isPointerTy() && !type->isIntegerTy(64) && !type->isIntegerTy(32)) return std::nullopt;
  auto* moves = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(found.variable));
  if (moves == nullptr || moves->getLoop() != &loop || !moves->isAffine()) return std::nullopt;
  auto* step = dyn_cast<SCEVConstant>(moves->getStepRecurrence(evolution));
  if (step == nullptr || step->getAPInt().getSignificantBits() > 32) return std::nullopt;
  found.step = step->getAPInt().getSExtValue();
  found.goes = to_header == 0 ? compare->getPredicate() : compare->getInversePredicate();
  if (variable_at == 1) found.goes = CmpInst::getSwappedPredicate(found.goes);
  if (type->isPointerTy() && CmpInst::isSigned(found.goes)) return std::nullopt;
  if (found.step == 0 || std::abs(found.step) > kLatchStepMax || !can_be_cut_at(found.goes, found.step))
    return std::nullopt;
  return found;
}

bool cut_into_strips(Loop& loop, const Latch& latch, ArrayRef<Stream> streams, std::vector<Site>& sites) {
  return Cutter(loop, latch, streams, sites).cut();
}

}  // namespace hinterland::compiler
