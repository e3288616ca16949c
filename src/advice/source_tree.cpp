#include "advice/source_tree.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace hinterland::trace {

std::string SourceTree::find(const std::string& path) {
  auto [at, fresh] = found_.try_emplace(path);
  if (!fresh) return at->second;
  std::error_code problem;
  std::filesystem::path whole = std::filesystem::absolute(path, problem).lexically_normal(), result;
  if (folder_.empty()) {
    if (std::filesystem::is_regular_file(whole, problem)) result = whole;
  } else {
    std::filesystem::path root = std::filesystem::canonical(folder_, problem), rest = whole.relative_path();
    for (; result.empty() && !rest.empty() && !problem;) {
      std::error_code absent;
      if (std::filesystem::is_regular_file(root / rest, absent)) result = root / rest;
      std::filesystem::path shorter;
      for (auto part = std::next(rest.begin()); part != rest.end(); ++part) shorter /= *part;
      rest = shorter;
    }
  }
  at->second = result.string();
  if (result.empty() && !path.empty())
    remarks_.push_back(path + " is not there" +
                       (folder_.empty() ? ": say with --source where the sources are" : " below " + folder_));
  return at->second;
}

const SourceText* SourceTree::read(const std::string& found) {
  if (found.empty()) return nullptr;
  auto [at, fresh] = texts_.try_emplace(found);
  if (fresh) {
    Result<SourceText> text = SourceText::read(found);
    if (text)
      at->second = std::make_unique<SourceText>(std::move(*text));
    else
      remarks_.emplace_back(text.error().what());
  }
  return at->second.get();
}

void SourceTree::compare(const std::string& found, const std::string& module) {
  if (std::find(compared_.begin(), compared_.end(), found) != compared_.end()) return;
  compared_.push_back(found);
  struct stat source{}, program{};
  if (stat(found.c_str(), &source) != 0 || stat(module.c_str(), &program) != 0) return;
  if (source.st_mtime > program.st_mtime)
    remarks_.push_back(found + " was changed after " + module +
                       " was built: lines may have moved. Build and trace again to be sure");
}

}  // namespace hinterland::trace
