// What the floor says: a table on stdout, JSON in a file, progress on a terminal.
#pragma once

#include <string>
#include <vector>

#include "floor/figure.hpp"

namespace hinterland::bench {

void print_table(const std::vector<Figure>& figures);
// Throws Failed when the file cannot be written. An existing one is replaced.
void write_json(const std::string& path, const Settings& settings, const std::vector<Figure>& figures);
void show_progress(std::size_t done, std::size_t of, const std::string& name);
void end_progress();

}  // namespace hinterland::bench
