#include "far/url.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "base/size.hpp"
#include "base/suggest.hpp"
#include "far/device.hpp"

namespace hinterland::far {
namespace {

constexpr std::array<std::string_view, 5> kSchemes = {"mem", "zmem", "file", "tcp", "sim"};
constexpr std::array<std::string_view, 2> kCodecs = {"lz4", "zstd"};
// A simulator in a simulator in ...: nobody means more, and the recursion stays bounded.
constexpr int kNestingMax = 4;

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 200)) + "'"; }

std::unexpected<Error> refuse(const std::string& what, const std::string& remedy) {
  Error error = Error::make(0, "far URL: %s", what.c_str());
  error.remedy("%s", remedy.c_str());
  return std::unexpected(error);
}

struct Parameter {
  std::string_view name, value;
};

// Takes "name=value" off the front of `text`, up to `separator`.
Parameter take_parameter(std::string_view& text, char separator) {
  std::size_t end = std::min(text.find(separator), text.size());
  std::string_view one = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  std::size_t equals = one.find('=');
  if (equals == std::string_view::npos) return {one, {}};
  return {one.substr(0, equals), one.substr(equals + 1)};
}

std::unexpected<Error> given_twice(std::string_view scheme, std::string_view name) {
  return refuse(std::string(scheme) + ": " + std::string(name) + " is given twice", "leave one of them out");
}

// Cuts "?..." off the end of `rest`.
std::string_view take_query(std::string_view& rest, bool& is_there) {
  std::size_t mark = rest.rfind('?');
  is_there = mark != std::string_view::npos;
  if (!is_there) return {};
  std::string_view query = rest.substr(mark + 1);
  rest = rest.substr(0, mark);
  return query;
}

// "?size=64M", cut off the end of `rest`, or nothing.
Status take_size_query(std::string_view& rest, std::string_view scheme, Url& url) {
  bool more = false;
  std::string_view query = take_query(rest, more);
  while (more) {
    more = query.find('&') != std::string_view::npos;  // something has to follow
    Parameter parameter = take_parameter(query, '&');
    if (parameter.name != "size")
      return refuse(std::string(scheme) + ": has no parameter " + quoted(parameter.name),
                    suggestion(parameter.name, {"size"}));
    if (url.size_bytes != 0) return given_twice(scheme, parameter.name);
    auto size = parse_size(parameter.value, std::string(scheme) + ": size");
    if (!size) return std::unexpected(size.error());
    if (*size < kSlabBytes)
      return refuse(std::string(scheme) + ": size " + quoted(parameter.value) + " is below the smallest device",
                    "give at least " + exact_size_text(kSlabBytes));
    url.size_bytes = *size;
  }
  return {};
}

Result<Url> parse_memory(Scheme scheme, std::string_view rest) {
  Url url;
  url.scheme = scheme;
  std::string_view name = kSchemes[static_cast<std::size_t>(scheme)];
  if (auto ok = take_size_query(rest, name, url); !ok) return std::unexpected(ok.error());
  if (rest.empty()) return url;
  if (scheme == Scheme::mem)
    return refuse("mem: takes nothing but a size, not " + quoted(rest), "write mem: or mem:?size=1G");
  if (rest == "zstd")
    url.codec = Codec::zstd;
  else if (rest != "lz4")
    return refuse("zmem: has no compression " + quoted(rest), suggestion(rest, kCodecs));
  return url;
}

Result<Url> parse_file(std::string_view rest) {
  Url url;
  url.scheme = Scheme::file;
  if (auto ok = take_size_query(rest, "file", url); !ok) return std::unexpected(ok.error());
  if (rest.empty()) return refuse("file: names no path", "write for example file:/var/tmp/far?size=8G");
  if (rest.find('\0') != std::string_view::npos) return refuse("file: path holds a NUL byte", "take it out");
  url.path = rest;
  return url;
}

Result<Url> parse_tcp(std::string_view rest) {
  const std::string remedy = "write tcp://HOST:PORT, for example tcp://10.0.0.7:7700 or tcp://[fe80::1]:7700";
  if (!rest.starts_with("//")) return refuse("tcp: is not followed by //", remedy);
  rest.remove_prefix(2);
  Url url;
  url.scheme = Scheme::tcp;
  std::size_t colon;
  if (rest.starts_with('[')) {
    std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return refuse("tcp: address in " + quoted(rest) + " lacks its ]", remedy);
    url.host = rest.substr(1, end - 1);
    colon = end + 1;
  } else {
    colon = std::min(rest.find(':'), rest.size());
    url.host = rest.substr(0, colon);
    if (rest.find(':', colon + 1) != std::string_view::npos)
      return refuse("tcp: " + quoted(rest) + " has several colons", remedy);
  }
  if (url.host.empty()) return refuse("tcp: names no host", remedy);
  if (url.host.find_first_of("/?@ ") != std::string::npos)
    return refuse("tcp: " + quoted(url.host) + " is not a host", remedy);
  if (colon >= rest.size() || rest[colon] != ':') return refuse("tcp: names no port", remedy);
  std::string_view port = rest.substr(colon + 1);
  auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (failure != std::errc() || end != port.data() + port.size() || url.port == 0)
    return refuse("tcp: " + quoted(port) + " is not a port (1 to 65535)", remedy);
  return url;
}

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 5> kTimeUnits = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 0}}};
constexpr std::array<Unit, 5> kRateUnits = {
    {{"bps", 1}, {"Kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}, {"Tbps", 1e12}}};

std::optional<double> parse_number(std::string_view& text) {
  double value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (failure != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::uint64_t> parse_unit(std::string_view text, std::span<const Unit> units) {
  auto value = parse_number(text);
  if (!value) return std::nullopt;
  if (text.empty() && *value == 0) return 0;
  for (const Unit& unit : units)
    if (!text.empty() && unit.name == text && *value * unit.factor < 1e18)
      return static_cast<std::uint64_t>(std::llround(*value * unit.factor));
  return std::nullopt;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Status read_sim_parameter(Parameter parameter, SimSettings& sim) {
  auto bad = [&](const char* form) {
    return refuse("sim: " + std::string(parameter.name) + " " + quoted(parameter.value) + " is malformed", form);
  };
  auto count = [&](std::uint64_t& into) -> Status {
    auto value = parse_count(parameter.value);
    if (!value) return bad("give a whole number");
    into = *value;
    return {};
  };
  auto share = [&](double& into) -> Status {
    std::string_view text = parameter.value;
    auto value = parse_number(text);
    if (!value || !text.empty() || *value > 1) return bad("give a probability from 0 to 1, for example 0.01");
    into = *value;
    return {};
  };
  auto unit = [&](std::uint64_t& into, std::span<const Unit> units, const char* form) -> Status {
    auto value = parse_unit(parameter.value, units);
    if (!value) return bad(form);
    into = *value;
    return {};
  };
  if (parameter.name == "latency") return unit(sim.latency_ns, kTimeUnits, "give a time with ns, us, ms or s: 5us");
  if (parameter.name == "bandwidth")
    return unit(sim.bandwidth_bits_per_s, kRateUnits, "give a rate with bps, Kbps, Mbps, Gbps or Tbps: 100Gbps");
  if (parameter.name == "fail_reads") return share(sim.fail_reads);
  if (parameter.name == "fail_writes") return share(sim.fail_writes);
  if (parameter.name == "corrupt") return share(sim.corrupt);
  if (parameter.name == "lose_after") return count(sim.lose_after);
  if (parameter.name == "seed") return count(sim.seed);
  return refuse("sim: has no parameter " + quoted(parameter.name),
                suggestion(parameter.name, {"latency", "bandwidth", "inner", "fail_reads", "fail_writes", "corrupt",
                                            "lose_after", "seed"}));
}

Result<Url> parse(std::string_view text, int nesting);

Result<Url> parse_sim(std::string_view rest, int nesting) {
  Url url;
  url.scheme = Scheme::sim;
  std::vector<std::string_view> given;
  for (bool more = !rest.empty(); more;) {
    // inner is last, because an inner sim: has commas of its own
    if (rest.starts_with("inner=")) {
      url.sim.inner = rest.substr(6);
      break;
    }
    more = rest.find(',') != std::string_view::npos;  // something has to follow
    Parameter parameter = take_parameter(rest, ',');
    if (std::find(given.begin(), given.end(), parameter.name) != given.end())
      return given_twice("sim", parameter.name);
    given.push_back(parameter.name);
    if (auto ok = read_sim_parameter(parameter, url.sim); !ok) return std::unexpected(ok.error());
  }
  if (nesting >= kNestingMax) return refuse("sim: nested too deeply", "use at most 4 levels");
  if (auto inner = parse(url.sim.inner, nesting + 1); !inner) return std::unexpected(inner.error());
  return url;
}

Result<Url> parse(std::string_view text, int nesting) {
  std::size_t colon = text.find(':');
  std::string_view name = text.substr(0, std::min(colon, text.size()));
  if (text.empty()) return refuse("is empty", "write for example zmem: or tcp://HOST:PORT");
  std::size_t index = 0;
  while (index < kSchemes.size() && kSchemes[index] != name) ++index;
  if (index == kSchemes.size()) return refuse("unknown scheme " + quoted(name), suggestion(name, kSchemes));
  if (colon == std::string_view::npos)
    return refuse(quoted(text) + " lacks its colon", "did you mean '" + std::string(text) + ":'?");
  std::string_view rest = text.substr(colon + 1);
  switch (static_cast<Scheme>(index)) {
    case Scheme::mem:
    case Scheme::zmem:
      return parse_memory(static_cast<Scheme>(index), rest);
    case Scheme::file:
      return parse_file(rest);
    case Scheme::tcp:
      return parse_tcp(rest);
    case Scheme::sim:
      return parse_sim(rest, nesting);
  }
  __builtin_unreachable();
}

}  // namespace

Result<Url> parse_url(std::string_view text) { return parse(text, 0); }

std::string url_from(const std::string& folder, std::string_view text) {
  constexpr std::string_view kFile = "file:", kSim = "sim:", kInner = "inner=";
  if (folder.empty()) return std::string(text);
  if (text.starts_with(kFile) && text.size() > kFile.size() && text[kFile.size()] != '/')
    return std::string(kFile) + folder + "/" + std::string(text.substr(kFile.size()));
  for (std::size_t at = kSim.size(); text.starts_with(kSim) && at < text.size(); ++at) {
    std::size_t inner = at + kInner.size();
    if (text.substr(at).starts_with(kInner))
      return std::string(text.substr(0, inner)) + url_from(folder, text.substr(inner));
    at = std::min(text.find(',', at), text.size());
  }
  return std::string(text);
}

}  // namespace hinterland::far
