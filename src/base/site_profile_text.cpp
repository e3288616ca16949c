#include "base/site_profile_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace hinterland::site_profile {
namespace {

constexpr std::uint64_t kPrime = 0x100000001b3;  // of FNV-1a

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::optional<std::uint64_t> next_number(std::string_view& line, int base = 10) {
  std::uint64_t value = 0;
  auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), value, base);
  if (problem != std::errc() || end == line.data()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  return value;
}

std::optional<Module> module_of(std::string_view line) {
  const auto identity = next_number(line, 16);
  const auto sites = next_number(line);
  if (!identity || !sites) return std::nullopt;
  return Module{*identity, *sites, line};
}

std::optional<Site> site_of(std::string_view line) {
  const auto number = next_number(line);
  const auto passes = next_number(line);
  const auto misses = next_number(line);
  if (!number || !passes || !misses) return std::nullopt;
  return Site{*number, *passes, *misses};
}

}  // namespace

Status read(std::string_view text, const std::function<void(const Module&)>& module,
            const std::function<void(const Site&)>& site) {
  if (next_line(text) != kFirstLine) {
    Error error = Error::make(0, "it is no profile of hints: its first line is not '%s'", kFirstLine.data());
    return std::unexpected(error.remedy("write one with 'hinterland run --record-sites FILE -- PROGRAM'"));
  }
  constexpr std::string_view kModule = "module ";
  std::uint64_t sites = 0;  // of the module that the lines are about: none yet
  for (std::size_t number = 2; !text.empty(); ++number) {
    std::string_view line = next_line(text);
    if (line.empty() || line.starts_with('#')) continue;
    bool good = false;
    if (line.starts_with(kModule)) {
      const std::optional<Module> found = module_of(line.substr(kModule.size()));
      good = found.has_value();
      if (good) module(*found);
      if (good) sites = found->sites;
    } else {
      const std::optional<Site> found = site_of(line);
      good = found && found->number < sites;
      if (good) site(*found);
    }
    if (!good)
      return std::unexpected(Error::make(0, "line %zu of it is none of a profile of hints", number)
                                 .remedy("write it anew with 'hinterland run --record-sites FILE -- PROGRAM'"));
  }
  return {};
}

void Identity::add(std::uint64_t value) {
  for (int i = 0; i < 8; ++i) digest_ = (digest_ ^ (value >> (8 * i) & 255)) * kPrime;
}

void Identity::add(std::uint64_t nop, std::uint64_t call, std::uint64_t kind) {
  add(nop);
  add(call);
  add(kind);
}

std::string path_beside(const std::string& program) { return program + ".sites"; }

std::string path_in_cache(const std::string& program) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string folder;
  if (cache != nullptr && cache[0] == '/')
    folder = cache;
  else if (home != nullptr && home[0] == '/')
    folder = std::string(home) + "/.cache";
  else
    return "";
  std::uint64_t digest = 0xcbf29ce484222325;  // programs of one name in several folders have a file each
  for (char letter : program) digest = (digest ^ static_cast<unsigned char>(letter)) * kPrime;
  char end[32];
  std::snprintf(end, sizeof end, "-%016llx.sites", static_cast<unsigned long long>(digest));
  return folder + "/hinterland/" + program.substr(program.rfind('/') + 1) + end;
}

}  // namespace hinterland::site_profile
