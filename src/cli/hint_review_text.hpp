// What `advise` says of the hints that a program has, as text and as JSON.
#pragma once

#include <string>

#include "advice/hint_review.hpp"
#include "cli/figures.hpp"

namespace hinterland::cli {

// "" for a program without hints.
std::string hint_review_text(const trace::HintReview& review);
Json hint_review_json(const trace::HintReview& review);

}  // namespace hinterland::cli
