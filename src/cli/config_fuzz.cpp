// The configuration file: any bytes give options of the table or an error, never an exception.
#include "base/options.hpp"
#include "base/testing/fuzz_input.hpp"
#include "cli/config_file.hpp"

using namespace hinterland;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static testing::MemoryFile file;
  file.hold({reinterpret_cast<const char*>(data), size});
  auto values = cli::read_config_file(file.path());
  if (!values) {
    HL_CHECK(values.error().what()[0] != '\0');
    return 0;
  }
  for (const Option& row : all_options())
    if (auto found = values->find(row.name); found != values->end())
      static_cast<void>(parse_value(row, found->second.text, found->second.source));
  return 0;
}
