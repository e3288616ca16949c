// Whether a patched program still compiles: with the commands of its compile_commands.json, or with what its debug
// information says of them. On a copy of the source folder made of links; the sources themselves are not touched.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "trace/symbols.hpp"

namespace hinterland::trace {

class CompileCheck {
 public:
  // `root`: the folder that all patched files are in. The copy lies in a directory of its own below `scratch` and is
  // removed with this object.
  static Result<std::unique_ptr<CompileCheck>> create(const std::string& root, const std::string& scratch);
  ~CompileCheck();

  // Replaces a file of the copy.
  Status put(const std::string& path, const std::string& text);
  enum class Depth : std::uint8_t { syntax, code };  // code: as the program's own build does, which takes longer
  // Compiles a unit. "" when it does, else the compiler's first error, or why it could not be run.
  std::string compile(const Unit& unit, Depth depth);

 private:
  struct Command {
    std::string directory;
    std::vector<std::string> arguments;
  };
  CompileCheck() = default;
  Status copy_links();
  void read_commands(const std::string& path);
  Command command_of(const Unit& unit) const;
  std::string in_copy(const std::string& text) const;

  std::string root_, folder_, copy_;
  std::map<std::string, Command> commands_;  // by source file
};

}  // namespace hinterland::trace
