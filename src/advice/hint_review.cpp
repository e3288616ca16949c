#include "advice/hint_review.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include "advice/hint_tally.hpp"
#include "trace/ring.hpp"

namespace hinterland::trace {

const std::array<const char*, kHintFaults> kHintFaultNames = {
    "seldom fetches", "never fetched",     "too late",       "wrong address",
    "too small",      "read-ahead unused", "priority hurts",
};

std::string ReviewedHint::name() const {
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(line) + " " + without_arguments(function);
}

namespace {

constexpr std::uint64_t kEnough = 20;  // records: of fewer nothing is said
// Each page is found at most once in a round of reclaim, however often it is hinted.
constexpr double kOfFound = 0.34;
constexpr double kSeldom = 0.1, kOften = 0.25;  // shares
// Read-ahead of which less is used is worth no miss, however long one takes: sixteen pages for each that is used.
constexpr double kHardlyAny = 1.0 / 16;
constexpr std::size_t kReplayedMax = 20;  // hints
constexpr int kNearLines = 12;
constexpr double kFaultsThatMatter = 0.01;  // of all that hints can spare

std::string percent(std::uint64_t part, std::uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%",
                100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1)));
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool same_function(const std::string& a, const std::string& b) {
  auto last = [](const std::string& name) {
    std::string plain = without_arguments(name);
    std::size_t at = plain.rfind("::");
    return at == std::string::npos ? plain : plain.substr(at + 2);
  };
  return last(a) == last(b);
}

class Review {
 public:
  Review(const TraceFile& trace, Symbols& symbols, SourceTree& sources, const FaultSites& sites, const Costs& costs,
         const ReplayOptions& settings)
      : sources_(sources),
        sites_(sites),
        costs_(costs),
        settings_(settings),
        tally_(tally_hints(trace, symbols, sites)) {
    settings_.recorded_read_ahead_pages = static_cast<std::uint32_t>(trace.process.read_ahead_pages);
    review_.noted = trace.summary.hints_only_noted != 0;
    review_.records = tally_.records.size();
    faults_of_site_.resize(sites.sites.size());
    for (const HintEventInOrder& event : tally_.events) {
      if (event.hint != HintEventInOrder::kNone || event.fault.kind == FaultKind::first_touch) continue;
      ++faults_;
      if (event.site != HintEventInOrder::kNone) ++faults_of_site_[event.site];
    }
    for (const ReviewedHint& hint : tally_.hints) with_callers_ += hint.fetched;
  }

  HintReview run() {
    if (tally_.hints.empty()) return std::move(review_);
    bool replays = review_.noted && settings_.policy != nullptr && review_.records > 0;
    if (replays) as_it_is_ = replay({}, Without::nothing);
    std::size_t replayed = 0;
    for (std::uint32_t i = 0; i < tally_.hints.size(); ++i) {
      judge_place(i);
      judge_priority(i);
      bool more = tally_.hints[i].sequential || tally_.hints[i].ahead > 0 || tally_.hints[i].priority > 0;
      if (replays && more && tally_.hints[i].fetched >= kEnough && replayed++ < kReplayedMax) judge_by_replay(i);
    }
    say_what_is_missing();
    std::stable_sort(tally_.hints.begin(), tally_.hints.end(),
                     [](const auto& a, const auto& b) { return a.fetches > b.fetches; });
    review_.hints = std::move(tally_.hints);
    return std::move(review_);
  }

 private:
  void say_what_is_missing() {
    if (!review_.noted)
      review_.remarks.push_back(
          "hints were followed: whether what they name and read ahead is used leaves no trace. "
          "Record with --hints note --read-ahead 0 --takeover start, and less local memory than the program will "
          "have");
    else if (settings_.policy == nullptr)
      review_.remarks.push_back("nothing was replayed: there is no such policy here");
  }

  static void object(ReviewedHint& hint, HintFault fault, std::string why, std::string place = "",
                     double saves_ns = 0) {
    hint.objections.push_back({fault, std::move(why), saves_ns, std::move(place)});
  }

  void judge_place(std::uint32_t number) {
    ReviewedHint& hint = tally_.hints[number];
    double found = static_cast<double>(hint.found * kHintCallersEvery);
    bool seldom = hint.found >= kEnough / 2 && hint.fetches < kOfFound * found;
    bool never = hint.fetched == 0 && hint.found == 0;
    if (seldom || hint.fetched == 0) {
      if (judge_late(hint)) return;
      if (seldom)
        object(hint, HintFault::seldom_fetches,
               "about " + std::to_string(std::lround(hint.fetches)) +
                   " of its calls found pages missing, and at least " + std::to_string(std::lround(found)) +
                   " found all there");
      else if (never && with_callers_ + faults_ >= kEnough)
        object(
            hint, HintFault::never_fetched,
            "it is none of the " + std::to_string(with_callers_) +
                " hints on missing pages that were recorded with their callers: it was not reached, or its pages are "
                "always there");
      return;
    }
    if (hint.fetched < kEnough) return;
    if (review_.noted && hint.named >= kEnough &&
        static_cast<double>(hint.used) < kSeldom * static_cast<double>(hint.named))
      object(hint, HintFault::wrong_address,
             "of " + std::to_string(hint.named) + " missing pages that it named " + percent(hint.used, hint.named) +
                 " were used soon after",
             fault_beside(hint));
    if (static_cast<double>(hint.behind) >= kOften * static_cast<double>(hint.fetched)) judge_small(number);
  }

  // Faults go on behind what it names.
  void judge_small(std::uint32_t number) {
    ReviewedHint& hint = tally_.hints[number];
    std::uint32_t site = HintEventInOrder::kNone;
    std::uint64_t most = 0;
    for (auto [each, count] : tally_.faults_behind[number])
      // Faults without a stack of their own are given the place of others: not of another function's.
      if (count > most && each != HintEventInOrder::kNone &&
          same_function(sites_.sites[each].function, hint.function))
        std::tie(site, most) = std::pair(each, count);
    char pages[64];
    std::snprintf(pages, sizeof pages, "%.1f",
                  static_cast<double>(hint.behind_pages) / static_cast<double>(hint.behind));
    object(hint, HintFault::too_small,
           percent(hint.behind, hint.fetched) +
               " of its fetches are followed by faults right behind what it names, " + pages +
               " each: let .size take them in",
           site != HintEventInOrder::kNone ? place_of_site(site) : "");
  }

  std::string place_of_site(std::uint32_t site) const {
    const FaultSite& fault = sites_.sites[site];
    return file_name(fault.file) + ":" + std::to_string(fault.line);
  }

  // The busiest place of faults near the hint, in its function. `above`: only up to its line.
  std::optional<std::uint32_t> busiest_near(const ReviewedHint& hint, bool above) const {
    std::optional<std::uint32_t> best;
    for (std::uint32_t i = 0; i < sites_.sites.size(); ++i) {
      const FaultSite& site = sites_.sites[i];
      bool near = std::abs(site.line - hint.line) <= kNearLines && (!above || site.line <= hint.line);
      bool matters = static_cast<double>(faults_of_site_[i]) >= kFaultsThatMatter * static_cast<double>(faults_) &&
                     faults_of_site_[i] >= kEnough;
      if (!near || !matters || site.file != hint.file || !same_function(site.function, hint.function)) continue;
      if (!best || faults_of_site_[i] > faults_of_site_[*best]) best = i;
    }
    return best;
  }
  std::string fault_beside(const ReviewedHint& hint) const {
    std::optional<std::uint32_t> site = busiest_near(hint, false);
    return site ? place_of_site(*site) : "";
  }

  // It hardly ever finds a page missing, and a line above it faults on something of the same name.
  bool judge_late(ReviewedHint& hint) {
    std::optional<std::uint32_t> site = busiest_near(hint, true);
    if (!site || static_cast<double>(faults_of_site_[*site]) * kSeldom < hint.fetches) return false;
    if (!share_names(hint.file, hint.line, sites_.sites[*site].line)) return false;
    object(hint, HintFault::too_late,
           place_of_site(*site) + " faults " + std::to_string(faults_of_site_[*site]) +
               " times, and the hint behind it finds the pages there: it belongs before that line",
           place_of_site(*site));
    return true;
  }

  std::set<std::string_view> names_on(const SourceText& source, int line) const {
    static const std::set<std::string_view> no_names = {
        "mut",   "size",     "seq",  "rdahead", "ev_prio", "sizeof", "hint",   "read",     "hl",  "write",
        "const", "volatile", "void", "char",    "true",    "if",     "return", "prefetch", "for", "while"};
    std::set<std::string_view> names;
    for (std::size_t i = source.first_token_of(line); i < source.first_token_of(line + 1); ++i)
      if (source.tokens()[i].kind == TokenKind::word && !source.word(i).starts_with("hl_") &&
          !no_names.contains(source.word(i)))
        names.insert(source.word(i));
    return names;
  }
  bool share_names(const std::string& file, int line, int other) {
    const SourceText* source = sources_.read(sources_.find(file));
    if (source == nullptr || line > source->lines() || other > source->lines()) return false;
    std::set<std::string_view> names = names_on(*source, other);
    std::set<std::string_view> own = names_on(*source, line);
    return std::any_of(own.begin(), own.end(), [&](std::string_view name) { return names.contains(name); });
  }

  // As it happened: what it sent away first came back before as much as half of local memory was fetched.
  void judge_priority(std::uint32_t number) {
    ReviewedHint& hint = tally_.hints[number];
    if (review_.noted || hint.priority == 0 || hint.fetched < kEnough) return;
    if (static_cast<double>(hint.early) < kOften * static_cast<double>(hint.fetched)) return;
    object(hint, HintFault::priority_hurts,
           percent(hint.early, hint.fetched) +
               " of its pages were fetched again before as many pages as half of local "
               "memory holds had come: .ev_prio sends them away too early");
  }

  // --- with and without
  enum class Without : std::uint8_t { nothing, read_ahead, priority };

  Prediction replay(std::uint32_t hint, Without without) const {
    Replay model(settings_);
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> last_pages;
    for (const HintEventInOrder& event : tally_.events) {
      if (event.hint == HintEventInOrder::kNone) {
        model.fault(event.fault);
        continue;
      }
      const HintRecord& record = tally_.records[event.hint];
      std::uint32_t own = tally_.hint_of(record.stack);
      ReplayHint form;
      form.write = record.write;
      form.sequential = record.sequential;
      form.read_ahead = record.sequential
                            ? 0
                            : static_cast<std::int32_t>(std::clamp<std::int64_t>(record.read_ahead, -65536, 65536));
      form.pages_after = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(record.pages, 1, 65536) - 1);
      form.priority = record.priority;
      if (own == hint && without == Without::read_ahead) form.sequential = false, form.read_ahead = 0;
      if (own == hint && without == Without::priority) form.priority = 0;
      model.access(event.fault, &form, form.sequential ? &last_pages[{own, record.thread_id}] : nullptr);
    }
    return {model.result(), waiting_of(model.result(), costs_)};
  }

  void judge_by_replay(std::uint32_t number) {
    ReviewedHint& hint = tally_.hints[number];
    if (hint.sequential || hint.ahead > 0) {
      Prediction without = replay(number, Without::read_ahead);
      double saves = as_it_is_.waiting_ns - without.waiting_ns;
      auto less = [](std::uint64_t with, std::uint64_t other) { return with > other ? with - other : 0; };
      std::uint64_t ahead = hint.ahead, used = hint.ahead_used;
      if (hint.sequential) {
        ahead = less(as_it_is_.result.ahead, without.result.ahead);
        used = less(as_it_is_.result.ahead_used, without.result.ahead_used);
      }
      if (reads_ahead_in_vain(ahead, used, saves))
        object(
            hint, HintFault::ahead_unused,
            "of " + std::to_string(ahead) + " pages that it reads ahead " + percent(used, ahead) + " are used soon",
            "", std::max(saves, 0.0));
    }
    if (hint.priority > 0) {
      Prediction without = replay(number, Without::priority);
      double saves = as_it_is_.waiting_ns - without.waiting_ns;
      std::uint64_t before = as_it_is_.result.pages_in, after = without.result.pages_in;
      bool comes_back =
          before > after && static_cast<double>(before - after) >= kOften * static_cast<double>(hint.fetched);
      if (!comes_back || saves <= 0) return;
      object(hint, HintFault::priority_hurts,
             "with .ev_prio " + std::to_string(hint.priority) + " " + std::to_string(before) +
                 " pages are fetched, and without " + std::to_string(after),
             "", saves);
    }
  }

  SourceTree& sources_;
  const FaultSites& sites_;
  const Costs& costs_;
  ReplayOptions settings_;
  HintTally tally_;
  HintReview review_;
  std::vector<std::uint64_t> faults_of_site_;  // first touches are not among them
  std::uint64_t faults_ = 0, with_callers_ = 0;
  Prediction as_it_is_;
};

}  // namespace

bool reads_ahead_in_vain(std::uint64_t ahead, std::uint64_t used, double saves_ns) {
  if (ahead < kEnough) return false;
  const double share = static_cast<double>(used) / static_cast<double>(ahead);
  return share < kHardlyAny || (share < kOften && saves_ns >= 0);
}

HintReview review_hints(const TraceFile& trace, Symbols& symbols, SourceTree& sources, const FaultSites& sites,
                        const Costs& costs, const ReplayOptions& settings) {
  return Review(trace, symbols, sources, sites, costs, settings).run();
}

}  // namespace hinterland::trace
