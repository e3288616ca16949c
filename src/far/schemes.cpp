// The kinds of far device. A new one is a file pair and a row in kSchemes.
#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>
#include <utility>

#include "base/suggest.hpp"
#include "far/device.hpp"
#include "far/file_device.hpp"
#include "far/mem_device.hpp"
#include "far/sim_device.hpp"
#include "far/tcp/tcp_device.hpp"
#include "far/url.hpp"
#include "far/url_text.hpp"
#include "far/zmem_device.hpp"

namespace hinterland::far {
namespace {

struct Scheme {
  std::string_view name;
  // From what stands behind the colon.
  Result<DeviceOpener> (*parse)(std::string_view rest);
  // The same for a process in another folder; nullptr where no path is in it.
  std::string (*from)(const std::string& folder, std::string_view rest) = nullptr;
};

// `kParse` reads settings, with which `kOpen` opens the device.
template <auto kParse, auto kOpen>
Result<DeviceOpener> opener(std::string_view rest) {
  auto own = kParse(rest);
  if (!own) return std::unexpected(own.error());
  return [own = std::move(*own)](const DeviceSettings& settings) {
    if constexpr (std::invocable<decltype(kOpen), decltype(own), const DeviceSettings&>)
      return kOpen(own, settings);
    else
      return kOpen(own);
  };
}

constexpr Scheme kSchemes[] = {
    {"mem", opener<parse_mem, open_mem_device>},
    {"zmem", opener<parse_zmem, open_zmem_device>},
    {"file", opener<parse_file, open_file_device>, file_from},
    {"tcp", opener<parse_tcp, open_tcp_device>},
    {"sim", opener<parse_sim, open_sim_device>, sim_from},
};

const Scheme* find_scheme(std::string_view name) {
  const Scheme* found = std::ranges::find(kSchemes, name, &Scheme::name);
  return found != std::end(kSchemes) ? found : nullptr;
}

std::string suggest_scheme(std::string_view name) {
  std::array<std::string_view, std::size(kSchemes)> names;
  std::ranges::transform(kSchemes, names.begin(), &Scheme::name);
  return suggestion(name, names);
}

}  // namespace

Result<DeviceOpener> parse_url(std::string_view text) {
  if (text.empty()) return refuse_url("is empty", "write for example zmem: or tcp://HOST:PORT");
  std::size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) return refuse_url("unknown scheme " + quoted(name), suggest_scheme(name));
  if (colon == std::string_view::npos)
    return refuse_url(quoted(text) + " lacks its colon", "did you mean '" + std::string(text) + ":'?");
  return scheme->parse(text.substr(colon + 1));
}

std::string url_from(const std::string& folder, std::string_view text) {
  std::size_t colon = text.find(':');
  const Scheme* scheme = colon != std::string_view::npos ? find_scheme(text.substr(0, colon)) : nullptr;
  if (folder.empty() || scheme == nullptr || scheme->from == nullptr) return std::string(text);
  return std::string(text.substr(0, colon + 1)) + scheme->from(folder, text.substr(colon + 1));
}

Result<std::unique_ptr<Device>> open_device(const std::string& url, const DeviceSettings& settings) {
  Result<DeviceOpener> open = parse_url(url);
  if (!open) return std::unexpected(open.error());
  return (*open)(settings);
}

}  // namespace hinterland::far
