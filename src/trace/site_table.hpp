// The hints that the compiler put into a file, as the file has them: what the runtime sees when the file is loaded
// (runtime/sites.hpp), read without running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

// How the compiler put it there: the order of compiler/site.hpp.
enum class SiteForm : std::uint8_t { single, range, strips, loop_begins };

struct TableEntry {
  std::uint64_t nop = 0;  // address, by the file's own numbering
  bool writes = false, has_length = false;
  bool is_static = false;            // always on
  SiteForm form = SiteForm::single;  // also where an earlier compiler, or a later one, says nothing that is known
};

struct SiteTableOfFile {
  std::vector<TableEntry> entries;  // by number; none where the file has no hints
  std::uint64_t identity = 0;       // as the runtime computes it
  bool is_program = false;          // has a loader's name: it is started, where a library is loaded
};

// Errors: the file cannot be read, is no ELF file, or its table is damaged.
Result<SiteTableOfFile> read_site_table(const std::string& path);

// The file's mappings of code as if it lay at the addresses of its own numbering, for Symbols.
std::vector<Module> modules_at_own_addresses(const std::string& path);

}  // namespace hinterland::trace
