#include "cli/replay_settings.hpp"

#include "policy/plugin.hpp"

namespace hinterland::cli {

Result<trace::ReplayOptions> replay_settings(const CommandLine& line, const trace::TraceFile& file,
                                             ReadAhead read_ahead) {
  trace::ReplayOptions options = trace::recorded_settings(file);
  if (line.is_given(OptionId::local)) options.local_bytes = line.number(OptionId::local);
  if (line.is_given(OptionId::policy)) {
    Result<NamedPolicy> named = policy_named(line.text(OptionId::policy));
    if (!named) return std::unexpected(named.error());
    if (Status works = named->is_plugin ? check_plugin(*named) : Status{}; !works)
      return std::unexpected(works.error());
    options.policy = named->ops;
    options.policy_settings = named->settings;
  }
  if (options.policy == nullptr)
    return std::unexpected(
        Error::make(0, "the trace was recorded with policy %s, which is a plug-in", file.process.policy.c_str())
            .remedy("name its file, or another policy, with --policy"));
  bool as_recorded = read_ahead == ReadAhead::as_recorded && !line.is_given(OptionId::read_ahead);
  if (!as_recorded) options.read_ahead_pages = static_cast<std::uint32_t>(line.number(OptionId::read_ahead));
  options.outlook = std::make_shared<const trace::ReplayOutlook>(file);
  return options;
}

}  // namespace hinterland::cli
