#include "advice/compile_check.hpp"

#include <dwarf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/plain_file.hpp"

namespace hinterland::trace {

extern const char* const kHintHeaderC;
extern const char* const kHintHeaderCxx;

namespace {

namespace fs = std::filesystem;

constexpr int kLinksMax = 50'000;
constexpr std::uint64_t kCommandsBytesMax = 256 << 20;  // a browser has 60 MB of them
constexpr std::uint64_t kCompileNsMax = 120'000'000'000;

Status write_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  fs::remove(path, ignored);  // a link to the file itself
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return std::unexpected(Error::make(errno, "%s cannot be written", path.c_str()));
}

// As a shell splits words: compile_commands.json has a command in one string, or a list.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    char letter = command[i];
    if (letter == '\\' && quote != '\'' && i + 1 < command.size()) {
      word += command[++i];
      open = true;
    } else if (quote != 0) {
      if (letter == quote)
        quote = 0;
      else
        word += letter;
    } else if (letter == '"' || letter == '\'') {
      quote = letter;
      open = true;
    } else if (letter == ' ' || letter == '\t' || letter == '\n') {
      if (open) words.push_back(word);
      word.clear();
      open = false;
    } else {
      word += letter;
      open = true;
    }
  }
  if (open) words.push_back(word);
  return words;
}

// Without what says where results go.
std::vector<std::string> without_outputs(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-o" || word == "-MF" || word == "-MT" || word == "-MQ") {
      ++i;
      continue;
    }
    if (word == "-c" || word == "-S" || word == "-E" || word == "--" || word.starts_with("-M")) continue;
    kept.push_back(word);
  }
  return kept;
}

// Runs it, at most two minutes. Its first error, its last line, or "".
std::string run(const std::string& directory, const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> values;
  for (const std::string& argument : arguments) values.push_back(const_cast<char*>(argument.c_str()));
  values.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = 0;
  int problem = posix_spawnp(&child, values[0], &actions, nullptr, values.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return arguments[0] + " cannot be run in " + directory + ": " + strerrordesc_np(problem);
  int status = 0;
  for (std::uint64_t begun = now_ns(); waitpid(child, &status, WNOHANG) == 0; usleep(2000))
    if (now_ns() - begun > kCompileNsMax) kill(child, SIGKILL);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find("error") != std::string::npos) return line;
    if (!line.empty()) last = line;
  }
  return last.empty() ? arguments[0] + " failed" : last;
}

bool is_cxx(int language) {
  return language != DW_LANG_C && language != DW_LANG_C89 && language != DW_LANG_C99 && language != DW_LANG_C11 &&
         language != 0x2c;
}

}  // namespace

Result<std::unique_ptr<CompileCheck>> CompileCheck::create(const std::string& root, const std::string& scratch) {
  auto check = std::unique_ptr<CompileCheck>(new CompileCheck);
  check->root_ = root;
  std::string name = scratch + "/hinterland-advise.XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    return std::unexpected(Error::make(errno, "a directory below %s cannot be made", scratch.c_str()));
  check->folder_ = name;
  check->copy_ = name + "/source";
  std::error_code problem;
  fs::create_directories(name + "/include/hinterland", problem);
  for (auto [file, text] : {std::pair("hint.h", kHintHeaderC), std::pair("hint.hpp", kHintHeaderCxx)})
    if (Status written = write_file(name + "/include/hinterland/" + file, text); !written)
      return std::unexpected(written.error());
  if (Status copied = check->copy_links(); !copied) return std::unexpected(copied.error());
  for (const fs::path& folder : {fs::path(root), fs::path(root) / "build", fs::path(root) / "out"})
    check->read_commands((folder / "compile_commands.json").string());
  return check;
}

CompileCheck::~CompileCheck() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

// Folders are made, files are linked to: so a path with ".." in it stays inside the copy.
Status CompileCheck::copy_links() {
  int count = 0;
  std::error_code problem;
  fs::create_directories(copy_, problem);
  auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(root_, options, problem), end; !problem && at != end;
       at.increment(problem)) {
    if (at->path().filename() == ".git") {
      at.disable_recursion_pending();
      continue;
    }
    if (++count > kLinksMax) {
      Error error =
          Error::make(0, "%s holds more than %d files: too many to try the patch on", root_.c_str(), kLinksMax);
      return std::unexpected(error.remedy("name the folder of the program's own sources with --source"));
    }
    fs::path place = copy_ / fs::relative(at->path(), root_, problem);
    std::error_code each;
    if (at->is_directory(each) && !at->is_symlink(each))
      fs::create_directories(place, each);
    else
      fs::create_symlink(at->path(), place, each);
  }
  if (!problem) return {};
  return std::unexpected(Error::make(problem.value(), "%s cannot be read", root_.c_str()));
}

void CompileCheck::read_commands(const std::string& path) {
  Result<std::string> text = read_plain_file(path, "the commands", kCommandsBytesMax);
  if (!text) return;
  bool well_formed = false;
  for (const Json& entry : Json::parse(*text, &well_formed)) {
    const Json *name = entry.find("file"), *directory = entry.find("directory");
    const Json *arguments = entry.find("arguments"), *words = entry.find("command");
    if (name == nullptr || !name->is_string()) continue;
    Command command;
    command.directory = directory != nullptr ? directory->text() : root_;
    if (arguments != nullptr && arguments->is_array()) {
      for (const Json& word : *arguments)
        if (word.is_string()) command.arguments.push_back(word.text());
    } else if (words != nullptr && words->is_string()) {
      command.arguments = words_of(words->text());
    }
    if (command.arguments.empty()) continue;
    command.arguments = without_outputs(command.arguments);
    fs::path source = fs::path(command.directory) / name->text();
    commands_.try_emplace(source.lexically_normal().string(), std::move(command));
  }
}

Status CompileCheck::put(const std::string& path, const std::string& text) { return write_file(in_copy(path), text); }

// Paths of the root become paths of the copy, wherever they stand in an argument.
std::string CompileCheck::in_copy(const std::string& text) const {
  std::string out = text;
  for (std::size_t at = 0; (at = out.find(root_, at)) != std::string::npos;) {
    std::size_t end = at + root_.size();
    bool whole = (end == out.size() || out[end] == '/') && (at == 0 || out[at - 1] != '/');
    if (whole) out.replace(at, root_.size(), copy_);
    at += whole ? copy_.size() : 1;
  }
  return out;
}

CompileCheck::Command CompileCheck::command_of(const Unit& unit) const {
  fs::path source = (fs::path(unit.directory) / unit.source).lexically_normal();
  if (auto known = commands_.find(source.string()); known != commands_.end()) return known->second;
  // Another place by now (--source): the end of the path tells.
  for (fs::path rest = source.relative_path(); !rest.empty();) {
    std::error_code absent;
    fs::path here = fs::path(root_) / rest;
    if (fs::is_regular_file(here, absent)) {
      if (auto known = commands_.find(here.string()); known != commands_.end()) return known->second;
      source = here;
      break;
    }
    fs::path shorter;
    for (auto part = std::next(rest.begin()); part != rest.end(); ++part) shorter /= *part;
    rest = shorter;
  }
  Command command;
  bool clang = unit.producer.find("clang") != std::string::npos, cxx = is_cxx(unit.language);
  command.arguments = {clang ? cxx ? "clang++" : "clang" : cxx ? "c++" : "cc"};
  if (clang && access("/usr/bin/clang", X_OK) != 0) command.arguments[0] = cxx ? "c++" : "cc";
  std::istringstream words(unit.producer);
  for (std::string word; words >> word;)
    if (word.starts_with("-std=") || (word.starts_with("-f") && !clang)) command.arguments.push_back(word);
  std::error_code absent;
  // Programs configured by autoconf are not themselves without this, which debug information does not tell.
  for (const fs::path& folder : {fs::path(unit.directory), fs::path(root_)})
    if (fs::is_regular_file(folder / "config.h", absent)) command.arguments.push_back("-DHAVE_CONFIG_H");
  command.directory = fs::is_directory(unit.directory, absent) ? unit.directory : root_;
  for (const fs::path& folder : {fs::path(unit.directory), source.parent_path(), fs::path(root_),
                                 fs::path(root_) / "include", fs::path(root_) / "src"})
    command.arguments.push_back("-I" + folder.string());
  command.arguments.push_back(source.string());
  return command;
}

std::string CompileCheck::compile(const Unit& unit, Depth depth) {
  Command command = command_of(unit);
  fs::path source = (fs::path(unit.directory) / unit.source).lexically_normal();
  for (std::string& argument : command.arguments) {
    // A relative name would be that of the file itself, where the compiler runs outside the root.
    if ((fs::path(command.directory) / argument).lexically_normal() == source) argument = source.string();
    argument = in_copy(argument);
  }
  for (const std::string& more : {std::string("-isystem"), folder_ + "/include", std::string("-g0")})
    command.arguments.push_back(more);
  // C would take a hint without its header for a function to be found when linking.
  if (!is_cxx(unit.language)) command.arguments.push_back("-Werror=implicit-function-declaration");
  if (depth == Depth::syntax)
    command.arguments.push_back("-fsyntax-only");  // templates included
  else
    command.arguments.insert(command.arguments.end(), {"-S", "-o", "/dev/null"});
  return run(in_copy(command.directory), command.arguments, folder_ + "/log");
}

}  // namespace hinterland::trace
