#include "cli/hint_review_text.hpp"

#include <cstdio>

namespace hinterland::cli {
namespace {

using trace::HintObjection;
using trace::HintReview;
using trace::ReviewedHint;

std::string one_text(const ReviewedHint& hint, const HintObjection& objection) {
  std::string text = "  " + hint.name() + ": " + trace::kHintFaultNames[static_cast<std::size_t>(objection.fault)] +
                     "\n    observed: " + objection.why + "\n";
  if (!objection.other_place.empty()) text += "    the faults that are left are at " + objection.other_place + "\n";
  if (objection.saves_ns > 0) {
    char saving[64];
    std::snprintf(saving, sizeof saving, "    predicted without: %.1f ms less waiting\n", objection.saves_ns / 1e6);
    text += saving;
  }
  return text;
}

Json objection_json(const HintObjection& objection) {
  return {{"fault", trace::kHintFaultNames[static_cast<std::size_t>(objection.fault)]},
          {"why", objection.why},
          {"other_place", objection.other_place.empty() ? Json(nullptr) : Json(objection.other_place)},
          {"predicted_saving_s", objection.saves_ns / 1e9}};
}

}  // namespace

std::string hint_review_text(const HintReview& review) {
  if (review.hints.empty()) return "";
  std::string text = "\nHints that the program has: " + std::to_string(review.hints.size()) + " lines, " +
                     std::to_string(review.records) + " calls on missing pages" +
                     (review.noted ? ", which were noted and not followed" : "") + "\n";
  std::size_t good = 0;
  for (const ReviewedHint& hint : review.hints) {
    for (const HintObjection& objection : hint.objections) text += one_text(hint, objection);
    good += hint.objections.empty();
  }
  text += "  nothing speaks against " + std::to_string(good) + " of them\n";
  for (const std::string& remark : review.remarks) text += "  " + remark + "\n";
  return text;
}

Json hint_review_json(const HintReview& review) {
  Json hints = Json::array(), remarks = Json::array();
  for (const ReviewedHint& hint : review.hints) {
    Json objections = Json::array();
    for (const HintObjection& objection : hint.objections) objections.push_back(objection_json(objection));
    hints.push_back({{"function", hint.function},
                     {"file", hint.file},
                     {"line", hint.line},
                     {"calls_on_missing_pages", hint.fetches},
                     {"samples", hint.fetched},
                     {"samples_all_there", hint.found},
                     {"pages_named", review.noted ? Json(hint.named) : Json(nullptr)},
                     {"pages_named_used", review.noted ? Json(hint.used) : Json(nullptr)},
                     {"pages_ahead", review.noted ? Json(hint.ahead) : Json(nullptr)},
                     {"pages_ahead_used", review.noted ? Json(hint.ahead_used) : Json(nullptr)},
                     {"mut", hint.write},
                     {"seq", hint.sequential},
                     {"ev_prio", hint.priority},
                     {"objections", std::move(objections)}});
  }
  for (const std::string& remark : review.remarks) remarks.push_back(remark);
  return {{"followed", !review.noted}, {"hints", std::move(hints)}, {"remarks", std::move(remarks)}};
}

}  // namespace hinterland::cli
