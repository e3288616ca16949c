// Names and lines for the addresses of a trace, offline: out of the files that ran, if they are still there and still
// the same, or out of their separate debug files, which may be all that there is on another machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/trace_file.hpp"

struct Dwfl_Module;

namespace hinterland::trace {

struct Frame {
  std::string function;      // demangled; or "module+0x12ab" when there is no symbol, or an address
  std::string file;          // "" when no line is known
  int line = 0, column = 0;  // 0: not known
  std::string module;        // path, "" when unknown
  bool library = false;      // the system's: its faults belong to who called it
  bool inlined = false;      // into the next frame
};

// How the code at an address was compiled, as its debug information says.
struct Unit {
  std::string source, directory;  // the file given to the compiler, and where that ran
  std::string producer;           // the compiler and, from GCC, its options
  int language = 0;               // DW_LANG_...; 0: not known
};

class Symbols {
 public:
  // `folder`, where it is not "": has the programs or their debug files, too, and is looked through first.
  explicit Symbols(const TraceFile& trace, std::string folder = {});
  explicit Symbols(const std::vector<Module>& modules, std::string folder = {});
  ~Symbols();
  // Innermost first: what was inlined there, then the function itself. At least one. Valid as long as this lives.
  const std::vector<Frame>& frames_at(std::uint64_t address);
  Unit unit_at(std::uint64_t address);
  // For libdw, at the place where it ran; nullptr when it cannot be had. Valid as long as this lives.
  Dwfl_Module* module_of(std::uint64_t address);
  // Sentences on modules without lines, symbols or the right file, with what would help. Of those asked for so far.
  std::vector<std::string> remarks() const;

 private:
  struct Loaded;
  Loaded& module_at(std::uint64_t address);
  std::vector<Frame> look_up(std::uint64_t address);

  std::string folder_;
  std::unique_ptr<Loaded> unknown_;
  std::vector<std::unique_ptr<Loaded>> modules_;
  std::unordered_map<std::uint64_t, std::vector<Frame>> known_;
};

// "std::vector<int>::push_back" rather than with its arguments, where a table has no room for them.
std::string without_arguments(const std::string& function);

}  // namespace hinterland::trace
