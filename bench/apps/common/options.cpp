#include "common/options.hpp"

#include <CLI/CLI.hpp>

namespace apps {

void Options::flag(const char* name, bool& value, const char* help) { parser_.add_flag(name, value, help); }

void Options::text(const char* name, std::string& value, const char* help) { parser_.add_option(name, value, help); }

void Options::texts(const char* name, std::vector<std::string>& values, const char* help) {
  parser_.add_option(name, values, help);
}

template <typename T>
void Options::number(const char* name, T& value, const char* help, std::type_identity_t<T> least,
                     std::type_identity_t<T> most) {
  parser_.add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
}
template void Options::number(const char*, unsigned&, const char*, unsigned, unsigned);
template void Options::number(const char*, std::uint64_t&, const char*, std::uint64_t, std::uint64_t);
template void Options::number(const char*, double&, const char*, double, double);

}  // namespace apps
