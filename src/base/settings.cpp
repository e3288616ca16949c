#include "base/settings.hpp"

#include <cstdlib>
#include <iterator>

#include "base/options.hpp"

namespace hinterland {
namespace {

// Reads variables until one is wrong; then keeps that error and gives zeros.
class Reader {
 public:
  std::string text(OptionId id) {
    const Option& wanted = option(id);
    const char* value = std::getenv(variable_name(wanted).c_str());
    return value != nullptr && value[0] != '\0' ? value : wanted.default_text;
  }
  std::uint64_t number(OptionId id) {
    std::string value = text(id);
    if (failed_ || value.empty()) return 0;
    Result<std::uint64_t> parsed = parse_value(option(id), value, variable_name(option(id)));
    if (parsed) return *parsed;
    failed_ = true;
    error_ = parsed.error();
    return 0;
  }
  bool failed() const { return failed_; }
  const Error& error() const { return error_; }

 private:
  bool failed_ = false;
  Error error_;
};

// In the order of the choices of --without, behind the four features of the kernel.
constexpr bool Parts::* kParts[] = {&Parts::feedback,       &Parts::background_reclaim, &Parts::second_chance,
                                    &Parts::batching,       &Parts::second_reclaimer,   &Parts::write_back_thread,
                                    &Parts::write_forecast, &Parts::read_ahead,         &Parts::second_mapper};
constexpr unsigned kKernelFeatures = 4;

Parts parts_without(std::uint64_t without) {
  Parts parts;
  for (unsigned i = 0; i < std::size(kParts); ++i)
    if ((without >> (kKernelFeatures + i) & 1) != 0) parts.*kParts[i] = false;
  return parts;
}

}  // namespace

Result<Settings> settings_from_environment() {
  Reader reader;
  Settings settings;
  settings.local_bytes = reader.number(OptionId::local);
  settings.far_url = reader.text(OptionId::far);
  reader.number(OptionId::policy);  // one of the table's names, or a file
  settings.policy = reader.text(OptionId::policy);
  settings.read_ahead_pages = static_cast<std::uint32_t>(reader.number(OptionId::read_ahead));
  settings.window_bytes = reader.number(OptionId::window);
  settings.addresses = static_cast<Addresses>(reader.number(OptionId::addresses));
  settings.take_over_at_start = reader.number(OptionId::takeover) == 1;
  settings.take = static_cast<Settings::Take>(reader.number(OptionId::take));
  settings.key_file = reader.text(OptionId::key_file);
  settings.timeout_ns = reader.number(OptionId::timeout);
  settings.faults_by_signal = reader.number(OptionId::fault) == 1;
  settings.core = reader.text(OptionId::core);
  settings.reclaim = static_cast<Reclaim>(reader.number(OptionId::reclaim));
  std::uint64_t without = reader.number(OptionId::without);
  settings.without_write_protect = (without & 1) != 0;
  settings.without_move = (without & 2) != 0;
  settings.without_poison = (without & 4) != 0;
  settings.without_vectored_discard = (without & 8) != 0;
  settings.parts = parts_without(without);
  settings.verbosity = reader.number(OptionId::quiet) != 0 ? -1 : static_cast<int>(reader.number(OptionId::verbose));
  if (reader.failed()) return std::unexpected(reader.error());
  return settings;
}

}  // namespace hinterland
