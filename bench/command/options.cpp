#include "command/options.hpp"

#include <CLI/CLI.hpp>

namespace bench {

struct Options::Parser {
  CLI::App app;
};

Options::Options(const std::string& program, const std::string& about)
    : parser_(new Parser{CLI::App(about, program)}) {}
Options::~Options() = default;

void Options::flag(const char* name, bool& value, const char* help) { parser_->app.add_flag(name, value, help); }

void Options::text(const char* name, std::string& value, const char* help, bool required) {
  parser_->app.add_option(name, value, help)->required(required)->capture_default_str();
}

void Options::texts(const char* name, std::vector<std::string>& values, const char* help) {
  parser_->app.add_option(name, values, help)->type_name("TEXT");
}

void Options::choice(const char* name, std::string& value, const std::vector<std::string>& choices,
                     const std::string& help) {
  CLI::Option* option = parser_->app.add_option(name, value, help)->check(CLI::IsMember(choices));
  if (name[0] == '-')
    option->capture_default_str();
  else
    option->required();
}

template <typename T>
void Options::number(const char* name, T& value, const char* help, std::type_identity_t<T> least,
                     std::type_identity_t<T> most) {
  parser_->app.add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
}
template void Options::number(const char*, int&, const char*, int, int);
template void Options::number(const char*, unsigned&, const char*, unsigned, unsigned);
template void Options::number(const char*, long&, const char*, long, long);
template void Options::number(const char*, std::uint64_t&, const char*, std::uint64_t, std::uint64_t);
template void Options::number(const char*, double&, const char*, double, double);

void Options::size(const char* name, std::size_t& value, const char* help, const char* shown) {
  parser_->app.add_option(name, value, help)->transform(CLI::AsSizeValue(false))->default_str(shown);
}

void Options::needs(const char* name, const char* other) {
  parser_->app.get_option(name)->needs(parser_->app.get_option(other));
}

std::optional<int> Options::parse(int argc, char** argv) {
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parser_->app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace bench
