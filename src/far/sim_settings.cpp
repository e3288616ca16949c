#include "far/sim_settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "base/suggest.hpp"
#include "far/url.hpp"
#include "far/url_text.hpp"

namespace hinterland::far {
namespace {

// A simulator in a simulator in ...: nobody means more, and the recursion stays bounded.
constexpr int kNestingMax = 4;
constexpr std::string_view kInner = "inner=";

int inner_simulators(std::string_view rest) {
  constexpr std::string_view kInnerSim = "inner=sim:";
  int count = 0;
  for (std::size_t at = 0; (at = rest.find(kInnerSim, at)) != std::string_view::npos; at += kInnerSim.size()) ++count;
  return count;
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

Status read_sim_parameter(UrlParameter parameter, SimSettings& sim) {
  auto bad = [&](const char* form) {
    return refuse_url("sim: " + std::string(parameter.name) + " " + quoted(parameter.value) + " is malformed", form);
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
  return refuse_url("sim: has no parameter " + quoted(parameter.name),
                    suggestion(parameter.name, {"latency", "bandwidth", "inner", "fail_reads", "fail_writes",
                                                "corrupt", "lose_after", "seed"}));
}

}  // namespace

Result<SimSettings> parse_sim(std::string_view rest) {
  SimSettings sim;
  if (inner_simulators(rest) >= kNestingMax) return refuse_url("sim: nested too deeply", "use at most 4 levels");
  std::vector<std::string_view> given;
  for (bool more = !rest.empty(); more;) {
    // inner is last, because an inner sim: has commas of its own
    if (rest.starts_with(kInner)) {
      sim.inner = rest.substr(kInner.size());
      break;
    }
    more = rest.find(',') != std::string_view::npos;  // something has to follow
    UrlParameter parameter = take_parameter(rest, ',');
    if (std::find(given.begin(), given.end(), parameter.name) != given.end())
      return given_twice("sim", parameter.name);
    given.push_back(parameter.name);
    if (auto ok = read_sim_parameter(parameter, sim); !ok) return std::unexpected(ok.error());
  }
  if (auto inner = parse_url(sim.inner); !inner) return std::unexpected(inner.error());
  return sim;
}

std::string sim_from(const std::string& folder, std::string_view rest) {
  for (std::size_t at = 0; at < rest.size(); ++at) {
    std::size_t inner = at + kInner.size();
    if (rest.substr(at).starts_with(kInner))
      return std::string(rest.substr(0, inner)) + url_from(folder, rest.substr(inner));
    at = std::min(rest.find(',', at), rest.size());
  }
  return std::string(rest);
}

}  // namespace hinterland::far
