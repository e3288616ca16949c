#include "runtime/start.hpp"

#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/stats.hpp"
#include "far/device.hpp"
#include "kernel/kernel.hpp"
#include "kernel/probe.hpp"
#include "policy/plugin.hpp"
#include "policy/policies.hpp"
#include "runtime/entry.hpp"
#include "signal/self_paging.hpp"

namespace hinterland::hint {
Result<Pager*> start_pager(const char* program, Take take, void (*on_managed)(),
                           FaultObserver* (*observer_of)(const Settings&), ObserveOnRequest observe_on_request) {
  Result<Settings> settings = settings_from_environment();
  if (!settings) return std::unexpected(settings.error());
  log::set_level(static_cast<log::Level>(settings->verbosity + 1));
  // Without it there are no figures for others to see, and the program runs. `hinterland run` has warned of what can
  // be known before the start, once for all that is started.
  if (int problem = open_stat_page(program); problem < 0)
    log::info("%s runs without figures: %s", program, strerrordesc_np(-problem));
  Result<NamedPolicy> policy = policy_named(settings->policy);
  if (!policy) return std::unexpected(policy.error());
  disable_kernel_features({settings->without_write_protect, settings->without_move, settings->without_poison,
                           settings->without_vectored_discard});
  Kernel& kernel = real_kernel();
  const FaultDelivery faults = settings->faults_by_signal ? FaultDelivery::signals : FaultDelivery::messages;
  kernel.deliver_faults_by(faults);
  if (Status opened = kernel.open(); !opened) return std::unexpected(opened.error());
  auto device = far::open_device(settings->far_url, {settings->key_file, settings->timeout_ns});
  if (!device) return std::unexpected(device.error());
  std::snprintf(stat_page()->far_url, sizeof stat_page()->far_url, "%s", (*device)->info().url.c_str());
  std::snprintf(stat_page()->policy, sizeof stat_page()->policy, "%s", policy->ops->name);
  stat_page()->faults_by_signal = settings->faults_by_signal ? 1 : 0;
  PagerOptions options;
  options.far_url = settings->far_url;
  options.device_settings = {settings->key_file, settings->timeout_ns};
  options.budget_bytes = settings->local_bytes;
  options.window_bytes = settings->window_bytes;
  options.addresses = settings->addresses;
  options.manage_at_once = take == Take::at_once || settings->take_over_at_start;
  options.read_ahead_pages_max = settings->read_ahead_pages;
  options.policy = policy->ops;
  options.policy_settings = strdup(policy->settings.c_str());
  options.policy_instead = policy->is_plugin ? policies().front() : nullptr;
  options.on_managed = on_managed;
  options.faults = faults;
  options.take_by_move = settings->take != Settings::Take::protect;
  options.parts = settings->parts;
  options.reclaim = settings->reclaim;
  if (observer_of != nullptr) options.observer = observer_of(*settings);
  options.observe_on_request = observe_on_request;
  Result<Pager*> started = Pager::start(options, kernel, std::move(*device));
  if (started && (settings->faults_by_signal || !(*started)->sees_pins())) {
    if (&hl_signal_library == nullptr && settings->faults_by_signal)
      log::warning(
          "faults are served by signal, but libhinterland-signal.so is not loaded: system calls on far memory fail "
          "with "
          "EFAULT; link it or name it in LD_PRELOAD, or use --fault message");
    begin_self_paging();
  }
  return started;
}

}  // namespace hinterland::hint
