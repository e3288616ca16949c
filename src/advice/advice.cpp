#include "advice/advice.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "advice/expression_types.hpp"
#include "advice/locate.hpp"
#include "base/units.hpp"
#include "policy/policies.hpp"

namespace hinterland::trace {
namespace {

constexpr std::uint64_t kFaultsMax = 2'000'000;  // replayed some dozen times: seconds
constexpr double kSmall = 0.01;                  // of the faults: of smaller places nothing is said...
constexpr double kCovered = 0.99;                // ... once the others have so many
constexpr double kPays = 0.01;                   // of all waiting
constexpr double kReplayedShare = 0.01;          // smaller places get the plain form without trying others
constexpr double kRoundsCost = 0.15;             // of all waiting: a hint in a loop over rows (docs/performance.md)
constexpr double kFewerPagesPay = 0.05;          // of all waiting: else better a page too many than a fault
constexpr double kOrdered = 0.3, kSpans = 0.05, kWrites = 0.5, kSeldom = 0.1, kMostly = 0.8;
constexpr int kEvictSoon = 15;
// A hint in a loop whose page is there: three instructions that depend on each other, and loops that are simple no
// more.
constexpr double kRoundNs = 1;
constexpr double kRoundsPerIndexPage = 512;  // of 8 bytes an element; smaller ones go round more often still
constexpr std::uint32_t kPiecePages = 64;    // as place_in_pieces() writes it: as far as a request reaches

class Adviser {
 public:
  Adviser(const TraceFile& trace, Symbols& symbols, SourceTree& sources)
      : trace_(trace), symbols_(symbols), locator_(symbols, sources) {}

  AdviceReport run(const AdviceOptions& options) {
    report_.settings = options.settings;
    progress_ = options.progress;
    say("finding the lines of the faults");
    sites_ = find_fault_sites(trace_, symbols_, kFaultsMax);
    report_.with_stack = sites_.with_stack;
    report_.looked_at = sites_.of_fault.size();
    locate();
    patterns_ = access_patterns(trace_, sites_);
    report_.costs =
        costs_of(trace_.samples, fault_way(trace_.summary), read_ahead_cost(trace_, options.settings.outlook.get()));
    for (const AccessPattern& pattern : patterns_) {
      std::uint64_t first = pattern.faults[static_cast<std::size_t>(FaultKind::first_touch)];
      report_.first_touches += first;
      report_.spareable += pattern.all - first;
    }
    Predictor predictor(trace_, sites_, report_.costs, options.settings);
    report_.predicted = predictor.works();
    if (!report_.predicted)
      report_.remarks.push_back("there is no policy " + trace_.process.policy +
                                " here: nothing is predicted, and the forms come from what was observed alone");
    predictor_ = &predictor;
    say("replaying the faults");
    if (report_.predicted) report_.now = predictor.with({});
    judge(options.top);
    if (report_.predicted) report_.advised = predictor.with(advised_);
    if (report_.predicted) say("replaying the faults with all hints");
    if (report_.predicted) leave_out_next_pages();
    predictor_ = nullptr;
    for (const std::string& remark : locator_.remarks()) report_.remarks.push_back(remark);
    report_.sites = std::move(sites_);
    report_.forms = std::move(advised_);
    return std::move(report_);
  }

 private:
  // Finds the expressions; places with the same one become one.
  void locate() {
    std::vector<std::array<std::uint64_t, 2>> kinds(sites_.sites.size());
    std::uint64_t number = 0;
    trace_.for_each_fault([&](const FaultRecord& fault) {
      if (number >= sites_.of_fault.size()) return;
      std::uint32_t site = sites_.of_fault[number++];
      if (site != FaultSites::kNone && fault.kind != FaultKind::first_touch) ++kinds[site][fault.write ? 1 : 0];
    });
    std::map<std::tuple<std::string, std::size_t, std::size_t>, std::uint32_t> known;
    std::vector<std::uint32_t> becomes(sites_.sites.size());
    std::iota(becomes.begin(), becomes.end(), 0u);
    std::vector<std::uint32_t> order = becomes;  // the busiest gives a place its name
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return kinds[a][0] + kinds[a][1] > kinds[b][0] + kinds[b][1];
    });
    located_.resize(sites_.sites.size());
    for (std::uint32_t site : order) {
      if (kinds[site][0] + kinds[site][1] == 0) continue;
      located_[site] = locator_.look_up(sites_.sites[site], kinds[site][1] > kinds[site][0]);
      std::uint64_t less = std::min(kinds[site][0], kinds[site][1]), more = std::max(kinds[site][0], kinds[site][1]);
      if (static_cast<double>(less) >= kSeldom * static_cast<double>(more)) locator_.add_other_side(located_[site]);
      const Chosen& chosen = located_[site].chosen;
      if (chosen.accesses.empty()) continue;
      const Access& access = chosen.accesses.front();
      std::size_t last =
          chosen.sure ? access.last : SourceText::kNone - static_cast<std::size_t>(located_[site].line);
      becomes[site] =
          known.try_emplace({located_[site].path, chosen.sure ? access.first : 0, last}, site).first->second;
    }
    for (std::uint32_t& site : sites_.of_fault)
      if (site != FaultSites::kNone) site = becomes[site];
  }

  void judge(std::size_t top) {
    std::vector<std::uint32_t> order(sites_.sites.size());
    std::iota(order.begin(), order.end(), 0u);
    auto spareable = [&](std::uint32_t site) {
      return patterns_[site].all - patterns_[site].faults[static_cast<std::size_t>(FaultKind::first_touch)];
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(spareable(a), patterns_[a].all) > std::pair(spareable(b), patterns_[b].all);
    });
    double all = static_cast<double>(std::max<std::uint64_t>(report_.spareable, 1)), covered = 0;
    double first_touches = static_cast<double>(report_.first_touches);
    for (std::uint32_t site : order) {
      double share = static_cast<double>(spareable(site)) / all;
      double first = static_cast<double>(patterns_[site].all - spareable(site));
      bool small = share < kSmall && covered >= kCovered;
      if (report_.advice.size() == top || patterns_[site].all == 0) break;
      if (small && first < first_touches / 10) continue;
      say("place " + std::to_string(report_.advice.size() + 1) + ": " + sites_.sites[site].name());
      report_.advice.push_back(judge_one(site));
      judged_.push_back(site);
      covered += share;
    }
  }

  // Of a hint alone the next page seems needed, which a fault brings else. With the others there may be one for it.
  void leave_out_next_pages() {
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      Advice& advice = report_.advice[i];
      auto found = advised_.find(judged_[i]);
      if (found == advised_.end() || !is_for_next_page(advice, found->second)) continue;
      std::map<std::uint32_t, ReplayHint> fewer = advised_;
      ReplayHint& hint = fewer[judged_[i]];
      hint.pages_after = 0;
      double with_it = predictor_->with(advised_, steady_policy()).waiting_ns;
      if (predictor_->with(fewer, steady_policy()).waiting_ns > with_it) continue;
      note_gain(advice, predictor_->with({{judged_[i], hint}}));
      advice.hints.clear();
      write_hints(located_[judged_[i]], advice, hint);
      advised_ = std::move(fewer);
      report_.advised = predictor_->with(advised_);
    }
  }
  bool is_for_next_page(const Advice& advice, const ReplayHint& hint) const {
    return advice.loop_place == LoopPlace::inside && hint.pages_after == 1 && !hint.sequential &&
           hint.read_ahead == 0 && advice.site.via.empty() && advice.form.size.empty();
  }

  Advice judge_one(std::uint32_t site) {
    Advice advice;
    advice.site = sites_.sites[site];
    advice.pattern = patterns_[site];
    const AccessPattern& pattern = advice.pattern;
    std::uint64_t first = pattern.faults[static_cast<std::size_t>(FaultKind::first_touch)];
    advice.share =
        static_cast<double>(pattern.all - first) / static_cast<double>(std::max<std::uint64_t>(report_.spareable, 1));
    Located& located = located_[site];
    if (located.dialect != Dialect::c && pattern.sequential >= kOrdered) Locator::add_index(located);
    hoist_to_caller(located, advice);
    leave_out_chosen(located, pattern);
    if (located.source != nullptr) advice.source_line = trimmed(located.source->line_text(located.line));
    if (first * 10 >= pattern.all * 9) {
      advice.why = "it uses memory for the first time, which a hint does not spare";
      return advice;
    }
    if (located.chosen.accesses.empty()) {
      advice.verdict = Verdict::not_found;
      advice.why = located.chosen.why;
      return advice;
    }
    advice.sure = located.chosen.sure;
    advice.why = located.chosen.why;
    ReplayHint hint = choose_form(site, advice);
    if (advice.verdict == Verdict::none) return advice;
    write_hints(located, advice, hint);
    if (advice.hints.empty()) {
      advice.verdict = Verdict::not_found;
      return advice;
    }
    advised_[site] = hint;
    return advice;
  }

  // What goes in order through a function's parameter often goes through a row of its caller: there one hint does for
  // many calls. Only where it can stand before a loop or go along with one; and where it is not sure what faulted,
  // only if nearly all goes in order, which is then the outermost.
  void hoist_to_caller(Located& located, const Advice& advice) {
    const AccessPattern& pattern = advice.pattern;
    const std::vector<Access>& accesses = located.chosen.accesses;
    if (accesses.empty() || pattern.sequential < (accesses.size() > 1 ? kMostly : kOrdered)) return;
    bool write = pattern.writes() >= kWrites;
    std::optional<Located> best;
    std::size_t depth = 0;
    for (const Access& access : accesses) {
      std::optional<GivenBy> given = locator_.given_by_caller(advice.site, located, access);
      if (!given || given->depth <= depth) continue;
      Located there{given->path, given->line, located.dialect, given->source, {{given->access}, true, ""}, 0};
      if (loop_place_of(there, write) == LoopPlace::inside) continue;
      best = std::move(there);
      depth = given->depth;
    }
    if (best) located = std::move(*best);
  }

  // Of `a[*p]` with p in order, most faults are the index's, and a hint before the loop brings those. One of a[]
  // would stand in the loop: it is left out where its rounds cost more than the faults that it spares. Each fault of
  // a[] between those of the index looks like two that do not go on.
  void leave_out_chosen(Located& located, const AccessPattern& pattern) const {
    std::vector<Access>& accesses = located.chosen.accesses;
    if (located.indexes_from != 1 || accesses.size() != 2) return;
    Located index = located;
    index.chosen.accesses = {accesses[1]};
    bool outside =
        walking_loop_around(*located.source, accesses[1]) || loop_place_of(index, false) != LoopPlace::inside;
    auto fetches = static_cast<double>(pattern.fetches);
    double rounds = pattern.sequential * fetches * kRoundsPerIndexPage,
           spared = (1 - pattern.sequential) / 2 * fetches;
    if (!outside || rounds * kRoundNs <= spared * (report_.costs.fetch_fault - report_.costs.fetch_hint)) return;
    located.chosen = {
        {accesses[1]}, true, "what the index chooses seldom misses, and a hint of it would stand in the loop"};
    located.indexes_from = 0;
  }

  static std::string trimmed(std::string_view line) {
    std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? "" : std::string(line.substr(first, 160));
  }

  // --- what the hint says
  struct Candidate {
    ReplayHint hint;
    LoopPlace place = LoopPlace::inside;
  };

  // What is tried. A hint in a loop costs in each round, and keeps compilers from what they do with simple loops: one
  // that can stand before it does.
  static std::vector<Candidate> candidates(const AccessPattern& pattern, bool write, bool has_size, bool in_library,
                                           bool is_begin, LoopPlace loop, Dialect dialect) {
    std::vector<Candidate> all;
    ReplayHint plain;
    plain.write = write;
    if ((has_size || pattern.next_page >= kSpans) && pattern.sequential < kOrdered)
      plain.pages_after = pattern.next_page >= kSpans ? 1 : 0;
    // Several rows that a loop goes through side by side look scattered.
    bool scattered = pattern.sequential < kOrdered, up = scattered || pattern.direction > 0;
    if (loop == LoopPlace::range) {  // what is given to an algorithm
      if (!scattered || pattern.in_rows >= kOrdered) plain.pages_after = kPiecePages - 1;
      return {{plain, LoopPlace::range}};
    }
    if (is_begin) {
      plain.pages_after = std::min(static_cast<std::uint32_t>(pages_of_run(pattern)), kPiecePages - 1);
      return {{plain, LoopPlace::inside}};
    }
    bool row = !scattered && pattern.run_pages < kPiecePages;
    if (loop == LoopPlace::pieces && up && !row) {
      ReplayHint piece = plain;
      if (!scattered || pattern.in_rows >= kOrdered) piece.pages_after = kPiecePages - 1;
      return {{piece, LoopPlace::pieces}};
    }
    if (loop != LoopPlace::inside && scattered) return {{plain, LoopPlace::before}};
    all.push_back({plain, LoopPlace::inside});
    // The next page may be another place's, which has a hint of its own. (What a library is given, it goes on from.)
    if (plain.pages_after != 0 && !has_size && !in_library) {
      ReplayHint one = plain;
      one.pages_after = 0;
      all.push_back({one, LoopPlace::inside});
    }
    if (pattern.sequential >= kOrdered) {
      ReplayHint sequential = plain;
      sequential.sequential = true;
      all.push_back({sequential, LoopPlace::inside});
      ReplayHint ahead = plain;
      std::int32_t pages = pages_of_run(pattern);
      ahead.read_ahead = pattern.direction * pages;
      if (dialect != Dialect::cxx) all.push_back({ahead, LoopPlace::inside});
      ReplayHint whole = plain;
      whole.pages_after = static_cast<std::uint32_t>(pages);
      if (loop != LoopPlace::inside && pattern.direction > 0 && row) all.push_back({whole, LoopPlace::before});
    }
    return all;
  }

  // The best place that there is for a hint of the first of its accesses, if it is one of a row.
  static LoopPlace loop_place_of(const Located& located, bool write) {
    const Access& access = located.chosen.accesses.front();
    std::optional<CountingLoop> loop = counting_loop_around(*located.source, access.first);
    HintForm whole;
    whole.write = write;
    bool can_say = located.dialect != Dialect::cxx && can_say_size(located.dialect, whole);
    if (can_say && access.is_range() && !access.size.empty()) return LoopPlace::range;
    if (!can_say || !loop || !hoisted(*located.source, *loop, access)) return LoopPlace::inside;
    return can_be_cut(*located.source, *loop) && !has_fixed_length(*loop) ? LoopPlace::pieces : LoopPlace::before;
  }

  // A pointer that a library is given, and goes on from: one call touches more than the page of its address, and how
  // much the source does not say.
  static bool is_begin_for_library(const Advice& advice, const Access& access) {
    const AccessPattern& pattern = advice.pattern;
    bool in_order = pattern.sequential >= kMostly && pattern.direction > 0;
    return in_order && !advice.site.via.empty() && access.whole_object && !access.is_range() && access.size.empty() &&
           access.vector.empty();
  }

  ReplayHint choose_form(std::uint32_t site, Advice& advice) {
    const Located& located = located_[site];
    const Access& access = located.chosen.accesses.front();
    Dialect dialect = located.dialect;
    // What reads and writes the same object in one step (`x++`) faults by its read, and where the runtime expects the
    // write, by nothing else.
    bool modifies = located.chosen.accesses.size() == 1 && access.reads && access.writes;
    bool write = modifies || advice.pattern.writes() >= kWrites;
    LoopPlace loop = loop_place_of(located, write);
    bool is_begin = is_begin_for_library(advice, access);
    std::vector<Candidate> all =
        candidates(advice.pattern, write, !access.size.empty(), !advice.site.via.empty(), is_begin, loop, dialect);
    Candidate best = all.front();
    bool tried = report_.predicted && advice.share >= kReplayedShare;
    if (tried) {
      Prediction outcome;
      const Costs idle = report_.costs.when_idle();
      double least_ns = INFINITY;
      auto attempt = [&](const Candidate& each, double at_least) {
        Prediction tried_out = predictor_->with({{site, each.hint}}, steady_policy());
        double waiting_ns = waiting_of(tried_out.result, idle);
        if (each.hint.write && !best.hint.write)
          waiting_ns += written_for_nothing(tried_out.result, outcome.result, idle);
        if (waiting_ns >= least_ns * (1 - at_least)) return;
        least_ns = waiting_ns;
        outcome = tried_out;
        best = each;
      };
      // Simpler ones come first, and win a draw. Replays do not know what a hint costs in each round: one before the
      // loop next to nothing, and seq, where it goes in order, a comparison with the last page.
      auto needed = [&](const Candidate& each) {
        if (each.place == LoopPlace::before) return -kRoundsCost;
        if (each.hint.pages_after < all.front().hint.pages_after) return kFewerPagesPay;
        if (each.hint.sequential && advice.pattern.sequential >= kMostly) return -0.01;
        return each.hint.read_ahead != 0 ? 0.03 : 0.001;
      };
      for (const Candidate& each : all) attempt(each, needed(each));
      if (!best.hint.write && advice.pattern.written_later >= kSeldom) {
        Candidate written = best;
        written.hint.write = true;
        attempt(written, 0.001);
      }
      if (steady_policy() != nullptr) outcome = predictor_->with({{site, best.hint}});
      try_priority(site, best, outcome, advice);
      note_gain(advice, outcome);
      double share = advice.saves_ns / std::max(report_.now.waiting_ns, 1.0);
      advice.verdict = share >= kPays ? Verdict::hint : share >= -kPays ? Verdict::little : Verdict::none;
      if (advice.verdict == Verdict::none) advice.why = "replayed with a hint, threads wait longer than without";
    } else {
      advice.verdict = report_.predicted ? Verdict::little : Verdict::hint;
      advice.spares = advice.pattern.fetches;
    }
    advice.loop_place = best.place;
    advice.form.write = best.hint.write;
    advice.form.sequential = best.hint.sequential;
    advice.form.read_ahead = best.hint.read_ahead;
    advice.form.priority = best.hint.priority;
    return best.hint;
  }

  // What forms of a hint are compared under: nullptr for the program's policy. The learner's victims differ with
  // everything that is different, which changes more than one form has before another.
  const hl_policy_ops* steady_policy() const {
    return report_.settings.policy == &kLearnerPolicy ? &kSecondChancePolicy : nullptr;
  }

  // Of the hint alone.
  void note_gain(Advice& advice, const Prediction& alone) const {
    advice.saves_ns = report_.now.waiting_ns - alone.waiting_ns;
    std::uint64_t before = report_.now.result.faults() + report_.now.result.protection,
                  after = alone.result.faults() + alone.result.protection;
    advice.spares = before > after ? before - after : 0;
  }

  // Pages that nobody comes back to could leave first: if the policy listens, and it pays.
  void try_priority(std::uint32_t site, Candidate& best, Prediction& outcome, Advice& advice) const {
    if (advice.pattern.used_again >= kSeldom) return;
    Candidate soon = best;
    soon.hint.priority = kEvictSoon;
    for (const hl_policy_ops* policy : {report_.settings.policy, find_policy("priority")}) {
      if (policy == nullptr || policy->name == advice.priority_policy) continue;
      Prediction tried = predictor_->with({{site, soon.hint}}, policy);
      if (tried.waiting_ns >= outcome.waiting_ns * (1 - kPays)) continue;
      outcome = tried;
      best = soon;
      advice.priority_policy = policy->name;
    }
  }

  // --- and how it is written
  void write_hints(const Located& located, Advice& advice, const ReplayHint& hint) {
    Dialect dialect = located.dialect;
    for (std::size_t number = 0; number < located.chosen.accesses.size(); ++number) {
      const Access& access = located.chosen.accesses[number];
      ReadyHint ready;
      ready.path = located.path;
      ready.line = located.line;
      ready.dialect = dialect;
      ready.code_address = advice.site.code_address;
      ready.expression_tokens = access.last - access.first;
      HintForm form = advice.form;
      // In order goes the index, not what it chooses.
      bool chosen_by_index = number < located.indexes_from;
      if (chosen_by_index) form.sequential = false, form.read_ahead = 0;
      if (located.chosen.accesses.size() > 1 && access.whole_object && !access.size.empty())
        form.write = access.writes;
      bool spans = hint.pages_after > 0 && advice.loop_place == LoopPlace::inside;
      if (spans && is_begin_for_library(advice, access) && can_say_size(dialect, form))
        form.size = std::to_string(hint.pages_after + 1) + " * 4096";
      if (!access.size.empty() && !form.sequential && can_say_size(dialect, form)) form.size = access.size;
      AddressKind kind = dialect == Dialect::c ? AddressKind::plain
                                               : address_kind(symbols_.module_of(advice.site.code_address),
                                                              advice.site.code_address, *located.source, access);
      if ((form.sequential || form.read_ahead > 0) && !chosen_by_index)
        add(ready, place_walk_before_loop(*located.source, dialect, with_next_rows(form, advice.pattern), access));
      if (advice.loop_place == LoopPlace::before || advice.loop_place == LoopPlace::pieces)
        add_before_loop(located, dialect, form, access, advice, ready);
      // Where that cannot be written, the next best is in the loop after all.
      if (advice.loop_place == LoopPlace::pieces) form.sequential = true;
      Access object = object_of(*located.source, access);
      bool has_object = object.address_last != access.address_last || located.source->is(access.sign, "*");
      if (spans && form.size.empty() && dialect != Dialect::cxx && kind == AddressKind::plain && has_object)
        add(ready, place_hint(*located.source, dialect, with_object(*located.source, form, object), object, false));
      // Of what has no size, the next page; of what a library goes on from, which may be there already, only what it
      // is likely to reach.
      if (spans && form.size.empty() && form.read_ahead == 0 && !form.sequential && dialect != Dialect::cxx) {
        if (!advice.site.via.empty() && can_say_size(dialect, form))
          form.size = std::to_string(likely_bytes(advice.pattern));
        else
          form.read_ahead = 1;
      }
      bool unknown = kind == AddressKind::unknown && !access.whole_object;
      Access written = access;
      if (kind == AddressKind::iterator) written.is_iterator = true;
      add(ready, place_hint(*located.source, dialect, form, written, unknown));
      if (!unknown) add(ready, place_hint(*located.source, dialect, form, written, true));
      // A bit-field has no address: that of its object, then.
      if (!unknown && object.address_last != access.address_last)
        add(ready, place_hint(*located.source, dialect, form, object, false));
      if (ready.ways.empty()) continue;
      if (advice.form.size.empty()) advice.form.size = form.size;
      advice.hints.push_back(std::move(ready));
    }
    if (advice.hints.empty()) advice.why = "there is no place for a hint: it does not stand in a function's body";
  }
  // What a loop walks is often one of many rows side by side, each too short to be worth a request of its own.
  static HintForm with_next_rows(HintForm form, const AccessPattern& pattern) {
    form.read_ahead = pages_of_run(pattern);
    return form;
  }
  static std::int32_t pages_of_run(const AccessPattern& pattern) {
    return static_cast<std::int32_t>(std::clamp(std::lround(pattern.run_pages) - 1, 1L, long{kPiecePages}));
  }
  // Of what begins anywhere on a page and goes on to the next in such a share of the calls, so much is used in the
  // mean. Twice that, as not all are alike.
  static std::uint64_t likely_bytes(const AccessPattern& pattern) {
    auto bytes = static_cast<std::uint64_t>(2 * pattern.next_page * static_cast<double>(kPageSize));
    return std::clamp<std::uint64_t>(std::bit_ceil(bytes), 64, kPageSize);
  }
  static void add(ReadyHint& ready, PlacedHint placed) {
    if (!placed.insertions.empty()) ready.ways.push_back(std::move(placed));
  }
  static void add_before_loop(const Located& located, Dialect dialect, const HintForm& form, const Access& access,
                              const Advice& advice, ReadyHint& ready) {
    std::optional<CountingLoop> loop = counting_loop_around(*located.source, access.first);
    std::optional<Hoisted> whole = loop ? hoisted(*located.source, *loop, access) : std::nullopt;
    if (!whole) return;
    if (advice.loop_place == LoopPlace::pieces)
      add(ready, place_in_pieces(*located.source, dialect, form, *loop, access));
    else
      add(ready, place_before_loop(*located.source, dialect, form, *loop, *whole));
  }

  // The object that a member belongs to: p of p->x, a[i] of a[i].x
  static Access object_of(const SourceText& source, const Access& access) {
    Access object = access;
    if (source.is(access.sign, "->")) {
      object.address_last = access.sign - 1;
      object.needs_ampersand = false;
    } else if (source.is(access.sign, "[") && !access.whole_object) {
      object.address_last = source.partner(access.sign);
    }
    return object;
  }
  // All of it: one that lies on two pages is brought by one hint.
  static HintForm with_object(const SourceText& source, HintForm form, const Access& object) {
    std::string text = source.between(object.address_first, object.address_last);
    form.size = "sizeof " + (object.needs_ampersand ? text : "*" + text);
    return form;
  }

  const TraceFile& trace_;
  Symbols& symbols_;
  Locator locator_;
  AdviceReport report_;
  FaultSites sites_;
  std::vector<Located> located_;  // by site
  std::vector<AccessPattern> patterns_;
  std::vector<std::uint32_t> judged_;  // sites, in the order of the report
  std::map<std::uint32_t, ReplayHint> advised_;
  void say(const std::string& what) const {
    if (progress_) progress_(what);
  }

  const Predictor* predictor_ = nullptr;
  std::function<void(const std::string&)> progress_;
};

}  // namespace

AdviceReport advise(const TraceFile& trace, Symbols& symbols, SourceTree& sources, const AdviceOptions& options) {
  AdviceReport report = Adviser(trace, symbols, sources).run(options);
  report.review = review_hints(trace, symbols, sources, report.sites, report.costs, report.settings);
  if (report.review.noted)
    report.remarks.push_back("hints were noted and not followed: the advice is for the program without them");
  for (const std::string& remark : symbols.remarks()) report.remarks.push_back(remark);
  for (const std::string& remark : sources.remarks()) report.remarks.push_back(remark);
  return report;
}

}  // namespace hinterland::trace
