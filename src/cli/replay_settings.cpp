#include "cli/replay_settings.hpp"

#include "policy/policies.hpp"

namespace hinterland::cli {

Result<trace::ReplayOptions> replay_settings(const CommandLine& line, const trace::TraceFile& file,
                                             ReadAhead read_ahead) {
  trace::ReplayOptions options = trace::recorded_settings(file);
  if (line.is_given(OptionId::local)) options.local_bytes = line.number(OptionId::local);
  const std::string& name = line.is_given(OptionId::policy) ? line.text(OptionId::policy) : file.process.policy;
  if (line.is_given(OptionId::policy)) options.policy = find_policy(name.c_str());
  if (options.policy == nullptr)
    return std::unexpected(Error::make(0, "there is no policy %s", name.c_str()).remedy("choose one with --policy"));
  bool as_recorded = read_ahead == ReadAhead::as_recorded && !line.is_given(OptionId::read_ahead);
  if (!as_recorded) options.read_ahead_pages = static_cast<std::uint32_t>(line.number(OptionId::read_ahead));
  options.outlook = std::make_shared<const trace::ReplayOutlook>(file);
  return options;
}

}  // namespace hinterland::cli
