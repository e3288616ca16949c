// hinterland cc: a compiler with the plug-in that inserts hints.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "cli/commands.hpp"
#include "cli/preload_library.hpp"

namespace hinterland::cli {
namespace {

constexpr unsigned kMajor = 19;  // of LLVM; a plug-in is for one

std::vector<char*> pointers_to(const Arguments& command) {
  std::vector<char*> pointers;
  for (const std::string& word : command) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Where the compiler stands in the command: behind a launcher that runs what follows it.
std::size_t compiler_at(const Arguments& command) {
  static constexpr std::array<std::string_view, 3> kLaunchers = {"ccache", "sccache", "distcc"};
  const bool launched = std::ranges::find(kLaunchers, file_name(command[0])) != kLaunchers.end();
  return launched && command.size() > 1 && !command[1].starts_with('-') ? 1 : 0;
}

// The beginning of what the compiler says of its version; empty when it cannot be run.
std::string version_text(const std::string& compiler) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, 0);
    dup2(ends[1], 1);
    dup2(nowhere, 2);
    execlp(compiler.c_str(), compiler.c_str(), "--version", static_cast<char*>(nullptr));
    _exit(kNotFound);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; child > 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return text;
}

// "Debian clang version 19.1.7 (3~deb12u1)", "flang-new version 19.1.7": the number, if it is one of LLVM's.
std::optional<unsigned> major_of(const std::string& text) {
  const std::string first = text.substr(0, text.find('\n'));
  constexpr std::string_view kVersion = "version ";
  const std::size_t at = first.find(kVersion);
  if (at == std::string::npos || (!first.contains("clang") && !first.contains("flang"))) return std::nullopt;
  unsigned major = 0;
  const char* begin = first.c_str() + at + kVersion.size();
  auto [end, problem] = std::from_chars(begin, first.c_str() + first.size(), major);
  return problem == std::errc() && end != begin ? std::optional(major) : std::nullopt;
}

// Why hints cannot be inserted, and what to do; no error when they can.
Status can_insert(const std::string& compiler, const Result<std::string>& plugin) {
  const std::string text = version_text(compiler);
  const std::optional<unsigned> major = major_of(text);
  if (text.empty()) return {};  // it will say itself that it is not there
  if (!major)
    return std::unexpected(
        Error::make(0, "%s is not clang", compiler.c_str())
            .remedy("hints by the compiler need clang %u: hinterland cc -- clang-%u ...", kMajor, kMajor));
  if (*major != kMajor)
    return std::unexpected(
        Error::make(0, "%s is version %u", compiler.c_str(), *major)
            .remedy("hints by the compiler need clang %u: hinterland cc -- clang-%u ...", kMajor, kMajor));
  if (!plugin) return std::unexpected(plugin.error());
  return {};
}

// Options of ours, and those of the plug-in that they stand for.
constexpr std::pair<std::string_view, const char*> kOptions[] = {{"--objects", "-hinterland-objects"},
                                                                 {"--static-hints", "-hinterland-static-hints"}};

const char* plugin_option_for(const std::string& word) {
  for (const auto& [ours, of_plugin] : kOptions)
    if (word == ours) return of_plugin;
  return nullptr;
}

// What stands before the compiler. The number of words, or -1 where one of them is not known.
int options_before(const Arguments& arguments, Arguments& for_plugin) {
  int at = 0;
  for (; at < static_cast<int>(arguments.size()) && arguments[at].starts_with('-'); ++at) {
    if (arguments[at] == "--") return at + 1;
    const char* option = plugin_option_for(arguments[at]);
    if (option == nullptr) return -1;
    for_plugin.emplace_back(option);
  }
  return at;
}

// To the compiler proper alone (-Xclang), so that the driver does not complain where it only links. Loaded by -load
// the plug-in is there before its option is read.
void insert_plugin(Arguments& command, std::size_t after, const std::string& plugin, const Arguments& options) {
  Arguments words = {"-fpass-plugin=" + plugin};
  if (!options.empty()) words.insert(words.end(), {"-Xclang", "-load", "-Xclang", plugin});
  for (const std::string& option : options) words.insert(words.end(), {"-Xclang", "-mllvm", "-Xclang", option});
  command.insert(command.begin() + static_cast<std::ptrdiff_t>(after) + 1, words.begin(), words.end());
}

int execute(const Arguments& command) {
  const std::vector<char*> values = pointers_to(command);
  execvp(values[0], values.data());
  const int problem = errno;
  Error error = Error::make(problem, "%s cannot be executed", command[0].c_str());
  return fail(problem == ENOENT ? kNotFound : kNotExecutable, error);
}

}  // namespace

int cc_main(const Arguments& arguments) {
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) return help_main({"cc"});
  Arguments for_plugin;
  const int before = options_before(arguments, for_plugin);
  Arguments command(arguments.begin() + std::max(before, 0), arguments.end());
  if (command.empty()) {
    Error error = Error::make(0, "cc: no compiler given");
    return fail(kUsage, error.remedy("for example: hinterland cc -- clang++-%u -O2 app.cpp -o app", kMajor));
  }
  if (before < 0) {
    const auto wrong =
        std::ranges::find_if(arguments, [](const std::string& word) { return plugin_option_for(word) == nullptr; });
    Error error = Error::make(0, "cc: there is no option '%s'", wrong->c_str());
    return fail(kUsage, error.remedy("the compiler's own come behind it: hinterland cc -- clang-%u ...", kMajor));
  }
  const std::size_t at = compiler_at(command);
  const Result<std::string> plugin = find_pass_plugin();
  if (Status possible = can_insert(command[at], plugin); !possible)
    log::warning("%s: built without hints; %s", possible.error().what(), possible.error().next_step());
  else if (plugin)
    insert_plugin(command, at, *plugin, for_plugin);
  return execute(command);
}

}  // namespace hinterland::cli
