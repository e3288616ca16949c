// The source files that debug information names, where they are now.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "advice/source_text.hpp"

namespace hinterland::trace {

class SourceTree {
 public:
  // `folder`: where the sources are; "": where debug information says.
  explicit SourceTree(std::string folder) : folder_(std::move(folder)) {}

  // "" when it is not there. With a folder, the longest end of the path that is a file in it.
  std::string find(const std::string& path);
  // nullptr when it cannot be read. Valid as long as this lives.
  const SourceText* read(const std::string& found);
  // Sentences: files that are not there, or younger than the program that was built from them (`module`).
  void compare(const std::string& found, const std::string& module);
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  std::string folder_;
  std::map<std::string, std::string> found_;
  std::map<std::string, std::unique_ptr<SourceText>> texts_;
  std::vector<std::string> compared_, remarks_;
};

}  // namespace hinterland::trace
