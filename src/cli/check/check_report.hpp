// What `hinterland check` found, and how it is told: as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/check/checked_sites.hpp"
#include "cli/check/experiment.hpp"

namespace hinterland::cli {

// Hints that were switched together.
struct CheckedGroup {
  std::vector<std::size_t> sites;  // indices in CheckedSites::sites
  Effect effect;

  Verdict verdict() const { return verdict_of(effect); }
  site_profile::Site sum(const CheckedSites& checked) const;
};

// Times of one choice of hints, in the order of the runs.
struct CheckedWay {
  std::string name;
  std::vector<double> seconds;

  double median_s() const;
};

struct CheckFound {
  std::string program;  // as given, without its arguments, which may hold secrets
  std::uint64_t local_bytes = 0;
  std::string far_url, clock;
  std::uint64_t pairs = 0;
  CheckedSites checked;
  std::vector<CheckedGroup> groups;  // what passed most first; none when the profile leaves no hint on
  std::vector<double> pair_seconds;  // of each run of the pairs
  std::vector<CheckedWay> ways;      // "no hints", "profile", and "choice" where it is another
  bool taken_back = false;           // without all losers together it was slower: the profile's choice stands
  std::string path;                  // the choice was written there
  bool read_by_run = false;          // and run reads it there without being told

  bool is_dropped(const CheckedGroup& group) const { return !taken_back && group.verdict() == Verdict::loses; }
  // Of each of checked.sites, in the choice.
  std::vector<bool> on() const;
  std::uint64_t dropped_sites() const;
  // Why a site that was passed is off, for the file.
  std::string why_off(std::size_t site) const;
};

std::string check_text(const CheckFound& found);
Json check_json(const CheckFound& found);
// What it means, in sentences, one a line.
std::vector<std::string> check_sentences(const CheckFound& found);

}  // namespace hinterland::cli
