#include "advice/patch_plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "advice/compile_check.hpp"
#include "advice/patch.hpp"

namespace hinterland::trace {
namespace {

namespace fs = std::filesystem;

fs::path common(const fs::path& a, const fs::path& b) {
  fs::path result;
  for (auto one = a.begin(), two = b.begin(); one != a.end() && two != b.end() && *one == *two; ++one, ++two)
    result /= *one;
  return result;
}

// A hint, and which of the ways to write it was taken.
struct Choice {
  ReadyHint* hint;
  std::size_t way = 0;
};

class PatchPlanner {
 public:
  PatchPlanner(Symbols& symbols, SourceTree& sources) : symbols_(symbols), sources_(sources) {}

  PatchPlan run(AdviceReport& report, const std::string& source_folder) {
    for (Advice& advice : report.advice)
      for (ReadyHint& hint : advice.hints) all_.push_back(&hint);
    if (all_.empty()) return std::move(plan_);
    plan_.root = root_of(source_folder);
    Result<std::unique_ptr<CompileCheck>> check =
        CompileCheck::create(plan_.root, fs::temp_directory_path().string());
    if (check) {
      check_ = std::move(*check);
      choose();
    } else {
      plan_.why_not_compiled = check.error().what();
      for (ReadyHint* hint : all_) chosen_.push_back({hint, 0});
    }
    write();
    update(report);
    return std::move(plan_);
  }

 private:
  // What the sources have in common, with the folder that the compiler ran in where that is near.
  std::string root_of(const std::string& source_folder) {
    if (!source_folder.empty()) {
      std::error_code problem;
      return fs::canonical(source_folder, problem).string();
    }
    fs::path files = fs::path(all_.front()->path).parent_path(), with_units = files;
    for (const ReadyHint* hint : all_) {
      files = common(files, fs::path(hint->path).parent_path());
      with_units = common(with_units, fs::path(hint->path).parent_path());
      with_units = common(with_units, fs::path(symbols_.unit_at(hint->code_address).directory));
    }
    bool near = std::distance(with_units.begin(), with_units.end()) > 2;  // not /, not /home
    return (near ? with_units : files).string();
  }

  // Everything at once, if that compiles; else without those that do not, and each way to write them.
  void choose() {
    if (std::string problem = compile_all(); !problem.empty()) {
      plan_.why_not_compiled = "the sources do not compile as they are here: " + problem;
      for (ReadyHint* hint : all_) chosen_.push_back({hint, 0});
      return;
    }
    if (std::string unseen = file_not_compiled(); !unseen.empty()) {
      plan_.why_not_compiled = "the compiler does not read " + unseen + " where it was patched";
      for (ReadyHint* hint : all_) chosen_.push_back({hint, 0});
      return;
    }
    plan_.compiled = true;
    // What a compiler reads without complaint may still be too much for it.
    for (CompileCheck::Depth depth : {CompileCheck::Depth::syntax, CompileCheck::Depth::code}) {
      depth_ = depth;
      if (depth == CompileCheck::Depth::code && compile_all().empty()) return;
      plan_.dropped.clear();
      chosen_.clear();
      for (ReadyHint* hint : all_) chosen_.push_back({hint, 0});
      if (compile_all().empty()) continue;
      chosen_.clear();
      choose_among(all_.begin(), all_.end());
    }
  }

  // In halves: few hints do not compile, and each try takes as long as the program's own files.
  using Place = std::vector<ReadyHint*>::iterator;
  void choose_among(Place begin, Place end) {
    if (end - begin == 1) return choose_way(**begin);
    for (auto [first, last] :
         {std::pair(begin, begin + (end - begin) / 2), std::pair(begin + (end - begin) / 2, end)}) {
      std::size_t before = chosen_.size();
      for (Place each = first; each != last; ++each) chosen_.push_back({*each, 0});
      if (compile_all().empty()) continue;
      chosen_.resize(before);
      choose_among(first, last);
    }
  }

  void choose_way(ReadyHint& hint) {
    std::string problem = "there is no way to write it";
    chosen_.push_back({&hint, 0});
    for (; chosen_.back().way < hint.ways.size(); ++chosen_.back().way)
      if (problem = compile_all(); problem.empty()) return;
    plan_.dropped.push_back(fs::path(hint.path).filename().string() + ":" + std::to_string(hint.line) +
                            ": the hint is left out, because it does not compile: " + hint.ways.front().statement +
                            " (" + problem + ")");
    chosen_.pop_back();
  }

  static void add_insertions(std::vector<Insertion>& list, const std::vector<Insertion>& more) {
    auto known = [&](const Insertion& each) { return std::find(list.begin(), list.end(), each) != list.end(); };
    bool there = std::all_of(more.begin(), more.end(), [&](const Insertion& each) {  // of another place on the line
      return each.shared || known(each);
    });
    if (there) return;
    for (const Insertion& each : more) {
      bool once = each.shared && std::any_of(list.begin(), list.end(), [&](const Insertion& other) {
                    return other.shared && other.offset == each.offset;
                  });
      if (!once) list.push_back(each);
    }
  }

  std::map<std::string, std::vector<Insertion>> insertions() {
    std::map<std::string, std::vector<Insertion>> by_file;
    std::map<std::string, std::pair<Dialect, int>> headers;  // and the first line that needs it
    // Inner expressions first: the address of the outer one takes their values.
    std::vector<Choice> in_order = chosen_;
    std::stable_sort(in_order.begin(), in_order.end(), [](const Choice& a, const Choice& b) {
      return a.hint->expression_tokens < b.hint->expression_tokens;
    });
    for (const Choice& choice : in_order) {
      std::vector<Insertion>& list = by_file[choice.hint->path];
      const std::vector<Insertion>& more = choice.hint->ways[choice.way].insertions;
      add_insertions(list, more);
      auto [at, fresh] = headers.try_emplace(choice.hint->path, choice.hint->dialect, choice.hint->line);
      at->second.second = std::min(at->second.second, choice.hint->line);
    }
    for (const auto& [path, need] : headers) {
      const SourceText& source = *sources_.read(path);
      for (Insertion& each : include_header(source, need.first, need.second)) by_file[path].push_back(each);
    }
    return by_file;
  }

  // That it compiles says nothing of a file that the compiler never opens. One with an error in it must not compile.
  std::string file_not_compiled() {
    std::vector<std::string> done;
    for (const ReadyHint* hint : all_) {
      if (std::find(done.begin(), done.end(), hint->path) != done.end()) continue;
      done.push_back(hint->path);
      const SourceText& source = *sources_.read(hint->path);
      Status put = check_->put(hint->path, std::string(source.text()) + "\n#error patched\n");
      bool refused = put && !compile_units(hint->path).empty();
      if (put) put = check_->put(hint->path, std::string(source.text()));
      if (!put || !refused) return hint->path;
    }
    return {};
  }

  // "" or the first problem, of the units of all hints.
  std::string compile_all() {
    std::map<std::string, std::vector<Insertion>> by_file = insertions();
    for (const ReadyHint* hint : all_) {
      const SourceText& source = *sources_.read(hint->path);
      if (Status put = check_->put(hint->path, with_insertions(source, by_file[hint->path])); !put)
        return put.error().what();
    }
    return compile_units("");
  }
  // Of hints in this file, or of all.
  std::string compile_units(const std::string& path) {
    std::vector<std::string> done;
    for (const ReadyHint* hint : all_) {
      if (!path.empty() && hint->path != path) continue;
      Unit unit = symbols_.unit_at(hint->code_address);
      std::string name = unit.directory + "/" + unit.source;
      if (std::find(done.begin(), done.end(), name) != done.end()) continue;
      done.push_back(name);
      if (std::string problem = check_->compile(unit, depth_); !problem.empty()) return problem;
    }
    return {};
  }

  void write() {
    for (const auto& [path, list] : insertions()) {
      std::string name = fs::path(path).lexically_relative(plan_.root).string();
      plan_.diff += unified_diff(name, *sources_.read(path), list);
    }
    plan_.hints = chosen_.size();
  }

  void update(AdviceReport& report) {
    for (const Choice& choice : chosen_)
      std::rotate(choice.hint->ways.begin(), choice.hint->ways.begin() + static_cast<std::ptrdiff_t>(choice.way),
                  choice.hint->ways.begin() + static_cast<std::ptrdiff_t>(choice.way) + 1);
    for (Advice& advice : report.advice) {
      if (advice.hints.empty()) continue;
      std::vector<ReadyHint> kept;
      for (ReadyHint& hint : advice.hints)
        if (std::any_of(chosen_.begin(), chosen_.end(), [&](const Choice& choice) { return choice.hint == &hint; }))
          kept.push_back(std::move(hint));
      advice.hints = std::move(kept);
      if (!advice.hints.empty()) continue;
      advice.verdict = Verdict::not_found;
      advice.why = "what would have to be written does not compile";
    }
  }

  Symbols& symbols_;
  SourceTree& sources_;
  std::vector<ReadyHint*> all_;
  std::vector<Choice> chosen_;
  CompileCheck::Depth depth_ = CompileCheck::Depth::syntax;
  std::unique_ptr<CompileCheck> check_;
  PatchPlan plan_;
};

}  // namespace

PatchPlan plan_patch(AdviceReport& report, Symbols& symbols, SourceTree& sources, const std::string& source_folder) {
  return PatchPlanner(symbols, sources).run(report, source_folder);
}

}  // namespace hinterland::trace
