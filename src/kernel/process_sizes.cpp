#include "kernel/process_sizes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/units.hpp"
#include "kernel/proc_file.hpp"

namespace hinterland {
namespace {

constexpr const char* kPath = "/proc/thread-self/statm";

ProcFile& file() {
  // Never destroyed: asked until the process is gone.
  alignas(ProcFile) static char storage[sizeof(ProcFile)];
  static ProcFile* file = new (storage) ProcFile;
  return *file;
}

ProcessSizes read_sizes() {
  std::array<char, 160> text{};
  ProcessSizes sizes;
  if (file().read_at(text.data(), text.size() - 1, 0) <= 0) return sizes;
  // total, resident, shared, text, libraries, data; pages
  std::array<std::uint64_t, 6> fields{};
  char* at = text.data();
  for (std::uint64_t& field : fields) field = bytes_of_pages(std::strtoull(at, &at, 10));
  return {fields[0], fields[1], std::min(fields[1], fields[2]), fields[5]};
}

}  // namespace

void open_process_sizes() { file().open(kPath); }

ProcessSizes process_sizes() {
  ProcessSizes sizes = read_sizes();
  if (sizes.space != 0) return sizes;
  open_process_sizes();  // the thread that opened it is over, of which the kernel says nothing
  return read_sizes();
}

}  // namespace hinterland
