#include "cli/replay_settings.hpp"

#include "policy/policies.hpp"

namespace hinterland::cli {

Result<trace::ReplayOptions> replay_settings(const CommandLine& line, const trace::TraceFile& file,
                                             ReadAhead read_ahead) {
  trace::ReplayOptions options;
  options.local_bytes = line.is_given(OptionId::local) ? line.number(OptionId::local) : file.process.local_bytes;
  const std::string& name = line.is_given(OptionId::policy) ? line.text(OptionId::policy) : file.process.policy;
  options.policy = find_policy(name.c_str());
  if (options.policy == nullptr)
    return std::unexpected(Error::make(0, "there is no policy %s", name.c_str()).remedy("choose one with --policy"));
  bool as_recorded = read_ahead == ReadAhead::as_recorded && !line.is_given(OptionId::read_ahead);
  options.read_ahead_pages =
      static_cast<std::uint32_t>(as_recorded ? file.process.read_ahead_pages : line.number(OptionId::read_ahead));
  options.far_answers_at_once = trace::answers_at_once(file.process.far_url);
  options.outlook = std::make_shared<const trace::ReplayOutlook>(file);
  return options;
}

}  // namespace hinterland::cli
