// What a mapping is for, as policies are told of it (hl_mapping).
#pragma once

#include "hinterland/policy.h"

namespace hinterland {

struct MappedAs {
  hl_mapping_kind kind = HL_MAPPING_MMAP;
  const char* tag = "";
};

}  // namespace hinterland
