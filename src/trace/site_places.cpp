#include "trace/site_places.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/site_profile_text.hpp"
#include "trace/debug_files.hpp"

namespace hinterland::trace {
namespace {

// Hints spare all but first touches, and faults that waited for another.
bool could_be_spared(FaultKind kind) { return kind != FaultKind::first_touch && kind <= FaultKind::refault; }

Site site_at(const Place& place) {
  Site site;
  site.function = place.frame->function;
  site.file = place.frame->file;
  site.line = place.frame->line;
  site.module = place.frame->module;
  return site;
}

}  // namespace

const char* text_of(SiteForm form) {
  switch (form) {
    case SiteForm::range:
      return "with its length";
    case SiteForm::strips:
      return "in strips of 64 pages";
    case SiteForm::loop_begins:
      return "where its loop begins";
    case SiteForm::single:
      break;
  }
  return "before the access";
}

SitePlaces::SitePlaces(const TraceFile& trace, const std::string& folder) {
  std::set<std::string> seen;
  for (const Module& module : trace.modules) {
    if (!seen.insert(module.path).second || !is_same_file(module)) continue;
    Result<SiteTableOfFile> table = read_site_table(module.path);
    if (!table || table->entries.empty()) continue;
    Lines lines;
    Symbols symbols(modules_at_own_addresses(module.path), folder);
    for (std::uint64_t number = 0; number < table->entries.size(); ++number) {
      const PlacedSite placed{number, table->entries[number]};
      const Site site = site_at(place_of({{placed.entry.nop}, true}, symbols));
      if (site.line > 0) lines.by_line[{site.file, site.line}].push_back(placed);
      lines.by_function[site.function].push_back(placed);
    }
    lines.table = std::move(*table);
    modules_.emplace(module.path, std::move(lines));
  }
}

const std::vector<PlacedSite>& SitePlaces::at(const Site& place) const {
  static const std::vector<PlacedSite> none;
  const auto module = modules_.find(place.module);
  if (module == modules_.end()) return none;
  const auto line = module->second.by_line.find({place.file, place.line});
  if (place.line > 0) return line != module->second.by_line.end() ? line->second : none;
  const auto function = module->second.by_function.find(place.function);
  return function != module->second.by_function.end() ? function->second : none;
}

// Pages that were missing, by module and number.
class SiteCounts {
 public:
  SiteCounts(const TraceFile& trace, Symbols& symbols, const SitePlaces& places)
      : trace_(trace), symbols_(symbols), places_(places) {
    for (const StackSample& sample : trace.samples)
      if (could_be_spared(sample.fault.kind)) add(sample.stack, static_cast<double>(sample.weight));
    trace.for_each_hint([&](const HintRecord& hint) {
      if (hint.stack != kNoStack) add(hint.stack, 1);
    });
  }

  std::string text() const {
    std::string text = std::string(site_profile::kFirstLine) + "\n# Made from a trace of " + trace_.process.program +
                       ": passes are not known, and stand as misses.\n";
    char line[128];
    for (const auto& [path, lines] : places_.modules_) {
      std::snprintf(line, sizeof line, "module %016llx %zu ", static_cast<unsigned long long>(lines.table.identity),
                    lines.table.entries.size());
      text += line + path + "\n";
      const auto counted = counts_.find(path);
      if (counted == counts_.end()) continue;
      for (const auto& [number, misses] : counted->second) {
        const auto whole = static_cast<unsigned long long>(std::max(std::ceil(misses), 1.0));
        std::snprintf(line, sizeof line, "%llu %llu %llu\n", static_cast<unsigned long long>(number), whole, whole);
        text += line;
      }
    }
    return text;
  }

 private:
  void add(std::uint64_t stack, double weight) {
    const Place place = place_of(trace_.stacks[stack], symbols_);
    if (place.frame == nullptr) return;
    const Site site = site_at(place);
    for (const PlacedSite& placed : places_.at(site)) counts_[site.module][placed.number] += weight;
  }

  const TraceFile& trace_;
  Symbols& symbols_;
  const SitePlaces& places_;
  std::map<std::string, std::map<std::uint64_t, double>> counts_;
};

Result<std::string> site_profile_of(const TraceFile& trace, Symbols& symbols, const std::string& folder) {
  const SitePlaces places(trace, folder);
  if (!places.empty()) return SiteCounts(trace, symbols, places).text();
  for (const Module& module : trace.modules) {
    if (is_same_file(module) || module.path.substr(module.path.rfind('/') + 1) != trace.process.program) continue;
    Error error = Error::make(0, "the trace is of another build of %s", module.path.c_str());
    return std::unexpected(error.remedy("trace this build: hinterland trace -- %s ...", module.path.c_str()));
  }
  Error error = Error::make(0, "what was traced, %s, has no hints by the compiler", trace.process.program.c_str());
  return std::unexpected(error.remedy("compile it with them: hinterland cc -- clang-19 -O2 -g ..."));
}

}  // namespace hinterland::trace
