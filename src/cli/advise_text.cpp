#include "cli/advise_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/size.hpp"
#include "cli/hint_review_text.hpp"

namespace hinterland::cli {
namespace {

using trace::AccessPattern;
using trace::Advice;
using trace::AdviceReport;
using trace::Verdict;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.095 && share > 0 ? "%.1f %%" : "%.0f %%", share * 100);
  return text;
}

std::string milliseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, ns < 9.95e6 && ns > -9.95e6 ? "%.1f ms" : "%.0f ms", ns / 1e6);
  return text;
}

std::string kinds_text(const AccessPattern& pattern) {
  std::string text;
  for (std::size_t kind = 0; kind < trace::kFaultKinds; ++kind) {
    double share =
        static_cast<double>(pattern.faults[kind]) / static_cast<double>(std::max<std::uint64_t>(pattern.all, 1));
    if (share >= 0.01)
      text += (text.empty() ? "" : ", ") + std::string(trace::kFaultKindNames[kind]) + " " + percent(share);
  }
  return text;
}

// "scattered, writes 4 %, pages come back (73 %, after 2410 faults)"
std::string pattern_text(const AccessPattern& pattern) {
  char text[128];
  std::string all = "scattered";
  if (pattern.sequential >= 0.3) {
    std::snprintf(text, sizeof text, "%s, %s, in runs of %.0f pages",
                  pattern.sequential >= 0.8 ? "in order" : "partly in order",
                  pattern.direction < 0 ? "downwards" : "upwards", pattern.run_pages);
    all = text;
  }
  if (pattern.next_page >= 0.01 && pattern.sequential < 0.3)
    all += ", goes on to the next page " + percent(pattern.next_page);
  all += ", writes " + percent(pattern.writes());
  if (pattern.written_later >= 0.01) all += ", reads and then writes " + percent(pattern.written_later);
  all += ", pages come back " + percent(pattern.used_again);
  if (pattern.back_after > 0) all += " (after " + std::to_string(pattern.back_after) + " faults)";
  return all;
}

std::string prediction_text(const Advice& advice, const AdviceReport& report) {
  if (!report.predicted || advice.saves_ns == 0) return "";
  std::string text = "    predicted alone: " + std::to_string(advice.spares) + " faults fewer, " +
                     milliseconds(std::abs(advice.saves_ns)) + (advice.saves_ns < 0 ? " more" : " less") +
                     " waiting (" + percent(std::abs(advice.saves_ns) / std::max(report.now.waiting_ns, 1.0)) + ")\n";
  if (!advice.priority_policy.empty())
    text += "    its priority is heard by --policy " + advice.priority_policy + "\n";
  return text;
}

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::hint:
      return "hint";
    case Verdict::little:
      return "gains little";
    case Verdict::none:
      return "needs none";
    case Verdict::not_found:
      return "not found";
  }
  return "";
}

std::string one_text(const Advice& advice, const AdviceReport& report, std::size_t number) {
  std::string text = std::to_string(number) + ". " + advice.site.name() + ": " + percent(advice.share) +
                     " of the faults that hints can spare (" + kinds_text(advice.pattern) + ")";
  if (!advice.site.via.empty()) text += ", in " + trace::without_arguments(advice.site.via);
  text += "\n";
  if (!advice.source_line.empty()) text += "      | " + advice.source_line + "\n";
  if (advice.pattern.fetches > 0) text += "    observed: " + pattern_text(advice.pattern) + "\n";
  if (advice.verdict == Verdict::none)
    return text + "    needs no hint: " + advice.why + "\n" + prediction_text(advice, report);
  if (advice.verdict == Verdict::not_found) return text + "    no hint: " + advice.why + "\n";
  if (!advice.why.empty()) text += std::string(advice.sure ? "    " : "    NOT SURE: ") + advice.why + "\n";
  for (const trace::ReadyHint& hint : advice.hints)
    text += "    " + hint.ways.front().where + ":\n      + " + hint.ways.front().statement + "\n";
  if (advice.verdict == Verdict::little)
    text += report.predicted
                ? "    gains little: read-ahead, or the program's pace, hides these faults, or they are few\n"
                : "";
  return text + prediction_text(advice, report);
}

std::string head_text(const trace::TraceFile& file, const AdviceReport& report) {
  const trace::ProcessFacts& process = file.process;
  const trace::ReplayOptions& settings = report.settings;
  std::string text = process.program + ", predicted for " + rounded_size_text(settings.local_bytes) +
                     " local, policy " + (settings.policy != nullptr ? settings.policy->name : process.policy) +
                     ", read-ahead " + std::to_string(settings.read_ahead_pages) + ": " +
                     std::to_string(report.spareable) + " faults that hints can spare, " +
                     std::to_string(report.first_touches) + " first touches that they cannot\n";
  text += percent(report.with_stack) +
          " of the faults have a stack of their own; the others are taken to be where the like of them are\n\n";
  return text;
}

std::string total_text(const AdviceReport& report) {
  if (!report.predicted || report.advised.result.hinted() == 0) return "";
  const trace::ReplayResult& result = report.advised.result;
  std::uint64_t left = result.fetches + result.refaults + result.protection;
  double covered =
      static_cast<double>(result.hinted()) / static_cast<double>(std::max<std::uint64_t>(result.hinted() + left, 1));
  return "\nAll of these together: " + percent(covered) + " of such faults become hints (" + std::to_string(left) +
         " are left), and threads wait " + milliseconds(report.advised.waiting_ns) + " instead of " +
         milliseconds(report.now.waiting_ns) +
         (report.costs.measured ? "" : " (at 10 us a fault: the trace measured none)") + ".\n";
}

Json hint_json(const trace::ReadyHint& hint) {
  return {{"file", hint.path}, {"where", hint.ways.front().where}, {"text", hint.ways.front().statement}};
}

Json pattern_json(const AccessPattern& pattern) {
  Json kinds = Json::object();
  for (std::size_t kind = 0; kind < trace::kFaultKinds; ++kind)
    if (pattern.faults[kind] > 0) kinds[trace::kFaultKindNames[kind]] = pattern.faults[kind];
  return {{"faults_by_kind", std::move(kinds)},
          {"sequential_share", pattern.sequential},
          {"run_pages", pattern.run_pages},
          {"direction", pattern.direction},
          {"next_page_share", pattern.next_page},
          {"fetched_again_share", pattern.used_again},
          {"fetched_again_after_faults", pattern.back_after},
          {"writes_share", pattern.writes()},
          {"written_after_read_share", pattern.written_later}};
}

Json one_json(const Advice& advice) {
  Json hints = Json::array();
  for (const trace::ReadyHint& hint : advice.hints) hints.push_back(hint_json(hint));
  return {
      {"function", advice.site.function},
      {"file", advice.site.file.empty() ? Json(nullptr) : Json(advice.site.file)},
      {"line", advice.site.line > 0 ? Json(advice.site.line) : Json(nullptr)},
      {"column", advice.site.column > 0 ? Json(advice.site.column) : Json(nullptr)},
      {"in_library_function", advice.site.via.empty() ? Json(nullptr) : Json(advice.site.via)},
      {"share", advice.share},
      {"verdict", verdict_text(advice.verdict)},
      {"sure", advice.sure},
      {"why", advice.why},
      {"mut", advice.form.write},
      {"seq", advice.form.sequential},
      {"rdahead", advice.form.read_ahead},
      {"size", advice.form.size.empty() ? Json(nullptr) : Json(advice.form.size)},
      {"ev_prio", advice.form.priority},
      {"policy_for_ev_prio", advice.priority_policy.empty() ? Json(nullptr) : Json(advice.priority_policy)},
      {"before_loop", advice.loop_place == trace::LoopPlace::before || advice.loop_place == trace::LoopPlace::pieces},
      {"hints", std::move(hints)},
      {"observed", pattern_json(advice.pattern)},
      {"predicted_faults_fewer", advice.spares},
      {"predicted_saving_s", advice.saves_ns / 1e9}};
}

}  // namespace

std::string advice_text(const trace::TraceFile& file, const AdviceReport& report, bool patched) {
  std::string text = head_text(file, report);
  std::size_t number = 0;
  for (const Advice& advice : report.advice) text += one_text(advice, report, ++number);
  return text + total_text(report) + hint_review_text(report.review) +
         (patched ? "" : "\nNo compiler has seen these lines: --patch FILE tries them, and writes them.\n");
}

Json advice_json(const trace::TraceFile& file, const AdviceReport& report) {
  Json places = Json::array(), remarks = Json::array();
  for (const Advice& advice : report.advice) places.push_back(one_json(advice));
  for (const std::string& remark : report.remarks) remarks.push_back(remark);
  const trace::ReplayResult& result = report.advised.result;
  return {{"schema_version", kSchemaVersion},
          {"program", file.process.program},
          {"budget_bytes", file.process.local_bytes},
          {"faults_looked_at", report.looked_at},
          {"faults_spareable", report.spareable},
          {"faults_first_touch", report.first_touches},
          {"faults_with_own_stack_share", report.with_stack},
          {"costs_measured", report.costs.measured},
          {"waiting_s", report.predicted ? Json(report.now.waiting_ns / 1e9) : Json(nullptr)},
          {"waiting_advised_s", report.predicted ? Json(report.advised.waiting_ns / 1e9) : Json(nullptr)},
          {"predicted_hinted", result.hinted()},
          {"predicted_unhinted", result.fetches + result.refaults + result.protection},
          {"remarks", std::move(remarks)},
          {"hint_review", hint_review_json(report.review)},
          {"places", std::move(places)}};
}

}  // namespace hinterland::cli
