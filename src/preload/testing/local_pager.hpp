// Starts the pager that does not page (local_pager.cpp), which needs neither kernel room nor device.
#pragma once

#include "paging/pager.hpp"

namespace hinterland {

Result<Pager*> start_local_pager(std::uint64_t budget_bytes);

}  // namespace hinterland
