#include "compiler/plan.hpp"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/KnownBits.h>
#include "compiler/objects.hpp"
#include "compiler/rematerialise.hpp"
#include "compiler/slow_pointers.hpp"

namespace hinterland::compiler {

using namespace llvm;

namespace {

// A step beyond this finds another page in every second round: that is not reading in order.
constexpr std::int64_t kStepBytesMax = kPageBytes / 2;
// Of a loop's rounds, the share in which an access must run to be worth a hint for its whole strip.
constexpr std::uint64_t kSeldomShare = 16;

constexpr std::uint64_t kNearBytes = 256;

// An access, and the loops that were stripped from it on the way outwards.
struct View {
  const Access& access;
  Loop* loop;         // around the place where it would be hinted
  const SCEV* where;  // its address there
  std::int64_t extent;
  Loop* hoisted_from = nullptr;      // the outermost loop in which the address does not change
  SmallVector<Loop*, 2> inner = {};  // short loops that count as one access
};

class Planner {
 public:
  Planner(const Analyses& analyses, bool all)
      : loops_(analyses.loops),
        evolution_(analyses.evolution),
        frequency_(analyses.frequency),
        objects_(analyses.dominators, analyses.post_dominators, plan_.sites),
        all_(all) {}

  void decide(const Access& access) { plan_.verdicts.push_back(verdict_on(access)); }
  Plan take() { return std::move(plan_); }

 private:
  Verdict verdict_on(const Access& access) {
    if (access.length != nullptr) return add_range(access);
    View view{access, loops_.getLoopFor(access.at->getParent()), evolution_.getSCEV(access.pointer),
              static_cast<std::int64_t>(access.bytes)};
    std::optional<std::int64_t> step = look_outwards(view);
    if (step && !all_) return in_order(view, *step);
    if (!step && view.hoisted_from == nullptr && view.loop != nullptr && !all_ && moves_slowly(access, *view.loop))
      return Verdict::moves_slowly;
    return add_single(view);
  }

  // Leaves loops in which the address stays the same, and short loops that stay within a page. Returns the step of
  // the loop where the address begins to move, when it moves in order there.
  std::optional<std::int64_t> look_outwards(View& view) {
    for (;;) {
      while (view.loop != nullptr && evolution_.isLoopInvariant(view.where, view.loop)) leave_loop(view);
      auto* moves = view.loop != nullptr ? dyn_cast<SCEVAddRecExpr>(view.where) : nullptr;
      if (moves == nullptr || moves->getLoop() != view.loop || !moves->isAffine()) return std::nullopt;
      auto* step = dyn_cast<SCEVConstant>(moves->getStepRecurrence(evolution_));
      if (step == nullptr || step->getAPInt().getSignificantBits() > 32) return std::nullopt;
      const std::int64_t bytes = step->getAPInt().getSExtValue();
      if (std::abs(bytes) > kStepBytesMax || view.loop->getLoopPreheader() == nullptr) return std::nullopt;
      const std::int64_t rounds = evolution_.getSmallConstantMaxTripCount(view.loop);
      const bool is_short = rounds > 0 && bytes > 0 && rounds * bytes + view.extent <= kPageBytes;
      if (!is_short || view.loop->getParentLoop() == nullptr) return bytes;
      view.extent += (rounds - 1) * bytes;
      view.where = moves->getStart();
      view.inner.push_back(view.loop);
      leave_loop(view);
    }
  }
  static void leave_loop(View& view) {
    view.hoisted_from = view.loop;
    view.loop = view.loop->getParentLoop();
  }

  Verdict in_order(View& view, std::int64_t step) {
    if (is_seldom(*view.access.at->getParent(), *view.loop->getHeader())) return Verdict::seldom;
    if (is_remainder(*view.loop)) return Verdict::in_order;
    if (is_worth_strips(*view.loop, step) && latch_of(*view.loop, evolution_)) {
      add_stream({view.access.pointer, cast<SCEVAddRecExpr>(view.where)->getStart(), step, 0, view.extent,
                  view.access.writes, view.inner, view.access.at->getDebugLoc()},
                 *view.loop);
      return Verdict::hinted_in_strips;
    }
    return where_loop_begins(view);
  }

  // A loop inside others may be short: what a strip costs at its beginning would be paid each time.
  bool is_worth_strips(const Loop& loop, std::int64_t step) {
    const std::uint64_t rounds = evolution_.getSmallConstantTripCount(&loop);
    if (rounds != 0) return rounds * static_cast<std::uint64_t>(std::abs(step)) >= 2 * kStripBytes;
    return loop.getParentLoop() == nullptr;
  }

  // One look at where the loop begins, unless the beginnings of the loop are in order themselves: rows of an array.
  Verdict where_loop_begins(View& view) {
    const SCEV* start = cast<SCEVAddRecExpr>(view.where)->getStart();
    Loop* around = view.loop->getParentLoop();
    auto* moves = around != nullptr ? dyn_cast<SCEVAddRecExpr>(start) : nullptr;
    if (moves != nullptr && isa<SCEVConstant>(moves->getStepRecurrence(evolution_))) return Verdict::in_order;
    Instruction* at = view.loop->getLoopPreheader()->getTerminator();
    Value* first = rematerialise(view.access.pointer, at, *view.loop, at_beginning_of(*view.loop, view.inner));
    if (first == nullptr || !may_be_far(first)) return Verdict::in_order;
    if (begins_as_another(*view.loop, start, view.access.writes)) return Verdict::same_object;
    const bool is_new =
        objects_.add({at, first, nullptr, view.access.writes, view.access.at->getDebugLoc(), SiteForm::loop_begins});
    return is_new ? Verdict::hinted_where_loop_begins : Verdict::same_object;
  }

  // What the unroller made of one access begins on the same page.
  bool begins_as_another(Loop& loop, const SCEV* start, bool writes) {
    for (const Beginning& other : beginnings_[&loop]) {
      auto* apart = dyn_cast<SCEVConstant>(evolution_.getMinusSCEV(start, other.start));
      if (apart != nullptr && apart->getAPInt().abs().ule(kNearBytes) && (other.writes || !writes)) return true;
    }
    beginnings_[&loop].push_back({start, writes});
    return false;
  }

  Verdict add_single(View& view) {
    Site site{view.access.at, view.access.pointer, nullptr, view.access.writes, view.access.at->getDebugLoc()};
    if (Loop* from = view.hoisted_from; from != nullptr && from->getLoopPreheader() != nullptr) {
      BasicBlock* before = from->getLoopPreheader();
      const std::uint64_t runs = frequency_.getBlockFreq(view.access.at->getParent()).getFrequency();
      if (runs * 2 >= frequency_.getBlockFreq(before).getFrequency()) {
        Value* address =
            rematerialise(site.address, before->getTerminator(), *from, at_beginning_of(*from, view.inner));
        if (address != nullptr) {
          site.address = address;
          site.before = before->getTerminator();
        }
      }
    }
    return objects_.add(site) ? Verdict::hinted : Verdict::same_object;
  }

  Verdict add_range(const Access& access) {
    plan_.sites.push_back(
        {access.at, access.pointer, access.length, access.writes, access.at->getDebugLoc(), SiteForm::range});
    return Verdict::hinted_as_range;
  }

  // Streams that go side by side through the same array are one.
  void add_stream(Stream stream, Loop& loop) {
    for (Stream& old : plan_.streams[&loop]) {
      auto* apart = dyn_cast<SCEVConstant>(evolution_.getMinusSCEV(stream.start, old.start));
      if (apart == nullptr || old.step_bytes != stream.step_bytes || apart->getAPInt().getSignificantBits() > 32)
        continue;
      const std::int64_t offset = apart->getAPInt().getSExtValue();
      if (std::abs(offset) > kPageBytes) continue;
      old.low = std::min(old.low, offset + stream.low);
      old.high = std::max(old.high, offset + stream.high);
      old.writes |= stream.writes;
      return;
    }
    plan_.streams[&loop].push_back(std::move(stream));
  }

  bool is_seldom(const BasicBlock& block, const BasicBlock& header) const {
    return frequency_.getBlockFreq(&block).getFrequency() * kSeldomShare <
           frequency_.getBlockFreq(&header).getFrequency();
  }

  // What a vectorised loop leaves over: a few rounds.
  static bool is_remainder(const Loop& loop) {
    if (!getBooleanLoopAttribute(&loop, "llvm.loop.isvectorized")) return false;
    for (const BasicBlock* block : loop.blocks())
      for (const Instruction& instruction : *block) {
        auto* store = dyn_cast<StoreInst>(&instruction);
        if (instruction.getType()->isVectorTy() ||
            (store != nullptr && store->getOperand(0)->getType()->isVectorTy()))
          return false;
      }
    return true;
  }

  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  BlockFrequencyInfo& frequency_;
  Plan plan_;
  Objects objects_;
  bool all_;
  struct Beginning {
    const SCEV* start;
    bool writes;
  };
  DenseMap<Loop*, SmallVector<Beginning, 4>> beginnings_;
};

}  // namespace

bool is_hinted(Verdict verdict) { return verdict <= Verdict::same_object; }

const char* text_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::hinted:
      return "hinted";
    case Verdict::hinted_as_range:
      return "hinted with its length";
    case Verdict::hinted_in_strips:
      return "hinted in strips of 64 pages";
    case Verdict::hinted_where_loop_begins:
      return "hinted where its loop begins; from there on it is in order, and faults read ahead";
    case Verdict::same_object:
      return "hinted together with an access to the same object before it";
    case Verdict::moves_slowly:
      return "not hinted: its pointer moves slowly, and faults read ahead";
    case Verdict::in_order:
      return "not hinted: it is in order within a loop that may be short, and faults read ahead";
    case Verdict::seldom:
      return "not hinted: it runs in few of its loop's rounds";
  }
  return "";
}

Plan plan_of(const std::vector<Access>& accesses, const Analyses& analyses, bool all) {
  Planner planner(analyses, all);
  for (const Access& access : accesses) planner.decide(access);
  return planner.take();
}

}  // namespace hinterland::compiler
