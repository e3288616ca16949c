// Which operator a program means (hinterland/operator.h), without its function: what goes over the network.
#pragma once

#include <array>
#include <cstdint>
#include <expected>

#include "hinterland/operator.h"

namespace hinterland::far {

struct OperatorName {
  std::array<char, HL_OPERATOR_NAME_BYTES> name{};  // zeros behind it
  std::uint32_t version = 0, element_bytes = 0, argument_bytes = 0, result_bytes = 0;
  bool operator==(const OperatorName&) const = default;

  // What is wrong with it, as the end of a sentence, where the interface does not allow such a name or such sizes.
  // The function and the interface's version are not looked at.
  static std::expected<OperatorName, const char*> of(const hl_operator& which);
};

}  // namespace hinterland::far
