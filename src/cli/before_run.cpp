#include "cli/before_run.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/size.hpp"
#include "cli/probe.hpp"
#include "far/device.hpp"
#include "kernel/probe.hpp"
#include "policy/plugin.hpp"

namespace hinterland::cli {
namespace {

Status check_program_limits(const CommandLine& line) {
  for (const Finding& finding : examine_limits()) {
    if (finding.state != State::blocking) continue;
    Error error =
        Error::make(0, "%s: the limit is %s: %s", finding.name.c_str(), finding.value.c_str(), finding.cost.c_str());
    return std::unexpected(error.remedy("run: %s", finding.mend.c_str()));
  }
  rlimit space{};
  getrlimit(RLIMIT_AS, &space);
  if (line.is_given(OptionId::window) && space.rlim_cur < line.number(OptionId::window)) {
    Error error = Error::make(0, "%s: a window of %s does not fit the address space limit of %s",
                              line[OptionId::window].named.c_str(), line.text(OptionId::window).c_str(),
                              rounded_size_text(space.rlim_cur).c_str());
    return std::unexpected(error.remedy("run: ulimit -v unlimited, or choose a smaller --window"));
  }
  return {};
}

}  // namespace

Status check_device(const CommandLine& line, const std::string& url) {
  far::DeviceSettings settings{line.text(OptionId::key_file), line.number(OptionId::timeout)};
  Result<std::unique_ptr<far::Device>> device = far::open_device(url, settings);
  if (!device) return std::unexpected(device.error());
  return {};
}

Status check_policy(const CommandLine& line) {
  Result<NamedPolicy> policy = policy_named(line.text(OptionId::policy));
  if (!policy) return std::unexpected(policy.error());
  return policy->is_plugin ? check_plugin(*policy) : Status{};
}

// Asked for in a way that changes nothing.
Status check_catching(const CommandLine& line) {
  constexpr int kSetDispatch = 59, kOff = 0;  // PR_SET_SYSCALL_USER_DISPATCH, which Debian's headers may lack
  if (line.number(OptionId::catch_calls) == 0 || prctl(kSetDispatch, kOff, 0, 0, 0) == 0) return {};
  Error error = Error::make(errno, "--catch: this kernel has no syscall user dispatch");
  return std::unexpected(error.remedy("leave it out, or use Linux 5.11 or newer"));
}

Status check_system(const CommandLine& line) {
  Result<ProbedDescriptor> probed = open_fault_descriptor();
  if (!probed) return std::unexpected(probed.error());
  close(probed->descriptor);
  return check_program_limits(line);
}

}  // namespace hinterland::cli
