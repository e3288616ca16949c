// Help, the reference page and the manual pages, all from the tables of commands and options.
#pragma once

#include <string>

#include "cli/commands.hpp"

namespace hinterland::cli {

std::string overview_text();
std::string help_text(const Command& command);
std::string reference_markdown();
std::string manual_page(const Command* command);  // nullptr: hinterland(1) itself

}  // namespace hinterland::cli
