// One run of a program for `hinterland compare` and `check`: natively, on far memory or under swap, with what it
// printed and what it took. One thread: standard streams and the environment of this process change meanwhile, and
// are put back.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cli/command_line.hpp"
#include "cli/figures.hpp"

namespace hinterland::cli {

// How a program is run.
struct Way {
  enum class Kind : std::uint8_t { native, far, swap };
  Kind kind = Kind::native;
  std::string url;                                                  // far
  std::uint64_t local_bytes = 0;                                    // far: the budget; swap: the limit
  unsigned percent = 0;                                             // of the native peak; 0 where a size was given
  std::uint64_t swap_bytes = 0;                                     // swap: the size of the device
  std::vector<std::pair<std::string, std::string>> variables = {};  // far: more of the program's environment

  std::string name() const;  // for tables: "zmem: 50 %, 64.0 MiB"
};

struct Measured {
  int wait_status = 0;
  std::uint64_t wall_ns = 0;
  std::uint64_t processor_ns = 0;  // of all its threads, the runtime's included, and of children that it waited for
  // Far: of the largest process, what of a store lies in it included; native: of the largest process. Swap: of the
  // whole group, what it has in zram included.
  std::uint64_t peak_bytes = 0;
  std::uint64_t pages_in = 0, waited_ns = 0;  // waited: of all threads together, an estimate; 0 natively and for swap
  unsigned kills_diverted = 0;                // swap: how often the kernel would have killed it (decoys.hpp)
  std::string output_path;                    // what it printed
};

// The program's files of this comparison: its standard input again and again, and what each run printed.
class RunFiles {
 public:
  // Standard input may be a terminal or a pipe: what a pipe has is kept.
  static Result<RunFiles> make();
  RunFiles(RunFiles&& other) noexcept;
  RunFiles& operator=(RunFiles&&) = delete;
  ~RunFiles();  // removes them

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  RunFiles() = default;
  std::string folder_;
};

class Runner {
 public:
  // Borrows all of them. `library`: what LD_PRELOAD gets for far memory.
  Runner(CommandLine& line, const std::string& path, const std::string& library, const RunFiles& files);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // What it printed goes to the file of that name. `loud`: the program's error messages are shown. Errors: it could
  // not be started, or the way could not be set up.
  Result<Measured> run(const Way& way, const std::string& output_name, bool loud);

 private:
  void restore_environment();
  void set_environment(const Way& way, const std::string& figures);  // for far memory

  CommandLine& line_;
  const std::string& path_;
  const std::string& library_;
  const RunFiles& files_;
  std::vector<std::string> environment_;  // as it was
};

// The number of the first line that is not the same, from 1 on; 0 when the files are equal.
std::uint64_t first_difference(const std::string& one, const std::string& other);

}  // namespace hinterland::cli
