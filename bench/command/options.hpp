// The command line of a benchmark, without the header of the library that parses it: that takes a compiler eight
// seconds, and options.cpp alone includes it.
//
//     bench::Options options("access", "Goes through memory in one pattern");
//     options.size("--size", work.size_bytes, "memory of all threads together", "1G");
//     if (std::optional<int> status = options.parse(argc, argv)) return *status;
//
// A variable's value is the default; it has to outlive parse(). Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace bench {

class Options {
 public:
  Options(const std::string& program, const std::string& about);
  ~Options();

  // "!--no-name" clears `value`, "--name" sets it.
  void flag(const char* name, bool& value, const char* help);
  void text(const char* name, std::string& value, const char* help, bool required = false);
  // May be given several times.
  void texts(const char* name, std::vector<std::string>& values, const char* help);
  // One of `choices`. A name without dashes is an argument that must be given.
  void choice(const char* name, std::string& value, const std::vector<std::string>& choices, const std::string& help);
  // From `least` to `most`. T: int, unsigned, long, std::uint64_t or double.
  template <typename T>
  void number(const char* name, T& value, const char* help, std::type_identity_t<T> least,
              std::type_identity_t<T> most);
  // Bytes, with K, M or G behind the number. `shown` is the default as help prints it.
  void size(const char* name, std::size_t& value, const char* help, const char* shown);
  // The option `name` means something only with `other`; both have been added.
  void needs(const char* name, const char* other);

  // Nothing: go on. Else the exit status: 0 after --help, 2 after a message about what is wrong.
  std::optional<int> parse(int argc, char** argv);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace bench
