#include "far/url_text.hpp"

#include <algorithm>

#include "base/size.hpp"
#include "base/suggest.hpp"
#include "far/device.hpp"

namespace hinterland::far {

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 200)) + "'"; }

std::unexpected<Error> refuse_url(const std::string& what, const std::string& remedy) {
  Error error = Error::make(0, "far URL: %s", what.c_str());
  error.remedy("%s", remedy.c_str());
  return std::unexpected(error);
}

std::unexpected<Error> given_twice(std::string_view scheme, std::string_view name) {
  return refuse_url(std::string(scheme) + ": " + std::string(name) + " is given twice", "leave one of them out");
}

UrlParameter take_parameter(std::string_view& text, char separator) {
  std::size_t end = std::min(text.find(separator), text.size());
  std::string_view one = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  std::size_t equals = one.find('=');
  if (equals == std::string_view::npos) return {one, {}};
  return {one.substr(0, equals), one.substr(equals + 1)};
}

Result<std::uint64_t> take_size(std::string_view& rest, std::string_view scheme) {
  std::size_t mark = rest.rfind('?');
  if (mark == std::string_view::npos) return 0;
  std::string_view query = rest.substr(mark + 1);
  rest = rest.substr(0, mark);
  std::uint64_t size_bytes = 0;
  for (bool more = true; more;) {
    more = query.find('&') != std::string_view::npos;  // something has to follow
    UrlParameter parameter = take_parameter(query, '&');
    if (parameter.name != "size")
      return refuse_url(std::string(scheme) + ": has no parameter " + quoted(parameter.name),
                        suggestion(parameter.name, {"size"}));
    if (size_bytes != 0) return given_twice(scheme, parameter.name);
    auto size = parse_size(parameter.value, std::string(scheme) + ": size");
    if (!size) return std::unexpected(size.error());
    if (*size < kSlabBytes)
      return refuse_url(std::string(scheme) + ": size " + quoted(parameter.value) + " is below the smallest device",
                        "give at least " + exact_size_text(kSlabBytes));
    size_bytes = *size;
  }
  return size_bytes;
}

}  // namespace hinterland::far
