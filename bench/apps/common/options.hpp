// Options of an application's own (app.hpp), without the header of the library that parses them: that takes seconds
// to compile.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
}

namespace apps {

// A variable's value is the default; it has to outlive App::run().
class Options {
 public:
  explicit Options(CLI::App& parser) : parser_(parser) {}

  // For what is not offered here: with <CLI/CLI.hpp>.
  CLI::App& parser() { return parser_; }
  void flag(const char* name, bool& value, const char* help);
  void text(const char* name, std::string& value, const char* help);
  void texts(const char* name, std::vector<std::string>& values, const char* help);
  // From `least` to `most`. T: unsigned, std::uint64_t or double.
  template <typename T>
  void number(const char* name, T& value, const char* help, std::type_identity_t<T> least,
              std::type_identity_t<T> most);

 private:
  CLI::App& parser_;
};

}  // namespace apps
