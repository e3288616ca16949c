#include "far/operator_name.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace hinterland::far {
namespace {

bool is_of_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_' || letter == '-' || letter == '.';
}

}  // namespace

std::expected<OperatorName, const char*> OperatorName::of(const hl_operator& which) {
  if (which.name == nullptr) return std::unexpected("has no name");
  const std::string_view name(which.name, ::strnlen(which.name, HL_OPERATOR_NAME_BYTES));
  if (name.empty() || name.size() == HL_OPERATOR_NAME_BYTES || !std::ranges::all_of(name, is_of_name))
    return std::unexpected("has a name that is not 1 to 31 letters, digits and any of _-.");
  if (which.element_bytes == 0 || which.element_bytes > HL_OPERATOR_ELEMENT_MAX)
    return std::unexpected("has element_bytes that are not 1 to 4096");
  if (which.argument_bytes > HL_OPERATOR_ARGUMENT_MAX) return std::unexpected("has argument_bytes above 256");
  if (which.result_bytes == 0 || which.result_bytes > HL_OPERATOR_RESULT_MAX)
    return std::unexpected("has result_bytes that are not 1 to 512");
  if (which.reserved != 0) return std::unexpected("has something in the field that is reserved");
  OperatorName made{{}, which.version, which.element_bytes, which.argument_bytes, which.result_bytes};
  std::ranges::copy(name, made.name.begin());
  return made;
}

}  // namespace hinterland::far
