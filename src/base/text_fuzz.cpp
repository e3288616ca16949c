// Texts of people: sizes, durations, every option of the table, and names that are nearly right.
#include "base/duration.hpp"
#include "base/options.hpp"
#include "base/size.hpp"
#include "base/suggest.hpp"
#include "base/testing/fuzz_input.hpp"

using namespace hinterland;

namespace {

void check_size(std::string_view text) {
  Result<std::uint64_t> bytes = parse_size(text);
  if (!bytes) return;
  HL_CHECK(*bytes > 0 && *bytes <= kSizeMax);
  Result<std::uint64_t> again = parse_size(exact_size_text(*bytes));
  HL_CHECK(again && *again == *bytes);
  HL_CHECK(!rounded_size_text(*bytes).empty());
}

void check_duration(std::string_view text) {
  constexpr std::uint64_t kLongest = 1000ull * 3600 * 1'000'000'000;
  Result<std::uint64_t> ns = parse_duration_ns(text);
  if (ns) HL_CHECK_OP(*ns, <=, kLongest);
  if (ns) HL_CHECK(!duration_text(*ns).empty());
}

void check_option(const Option& row, std::string_view text) {
  Result<std::uint64_t> value = parse_value(row, text, "source");
  bool number = row.type == OptionType::size || row.type == OptionType::duration || row.type == OptionType::integer;
  if (value && number) HL_CHECK(*value >= row.minimum && *value <= row.maximum);
  if (value && row.type == OptionType::choice) HL_CHECK_OP(*value, <, choices_of(row).size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  testing::FuzzInput input(data, size);
  auto which = input.take<std::uint8_t>();
  std::string text = input.take_rest();
  if (text.size() > 4096) return 0;  // a suggestion costs the product of the lengths
  check_size(text);
  check_duration(text);
  check_option(all_options()[which % all_options().size()], text);
  static_cast<void>(suggestion(text, {"mem", "zmem", "file", "tcp", "sim"}));
  return 0;
}
