#include "preload/runtime.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/stats.hpp"
#include "base/suggest.hpp"
#include "far/device.hpp"
#include "hint/entry.hpp"
#include "kernel/kernel.hpp"
#include "kernel/probe.hpp"
#include "paging/pager.hpp"
#include "policy/policies.hpp"
#include "preload/far_heap.hpp"
#include "trace/ring_observer.hpp"

namespace hinterland {

bool runtime_wanted() {
  return std::getenv("HINTERLAND_LOCAL") != nullptr || std::getenv("HINTERLAND_FAR") != nullptr;
}

bool runtime_permitted() { return faults_permitted(); }

Status start_runtime(const char* program) {
  Result<Settings> settings = settings_from_environment();
  if (!settings) return std::unexpected(settings.error());
  log::set_level(static_cast<log::Level>(settings->verbosity + 1));
  open_stat_page(program);  // without it there are no figures for others to see, and the program runs
  const hl_policy_ops* policy = find_policy(settings->policy.c_str());
  if (policy == nullptr) {
    std::array<std::string_view, 8> names;
    std::size_t count = 0;
    for (const hl_policy_ops* known : policies()) names[count++] = known->name;
    return std::unexpected(Error::make(0, "there is no policy %s", settings->policy.c_str())
                               .remedy("%s", suggestion(settings->policy, std::span(names.data(), count)).c_str()));
  }
  disable_kernel_features({settings->without_write_protect, settings->without_move, settings->without_poison,
                           settings->without_vectored_discard});
  Kernel& kernel = real_kernel();
  if (Status opened = kernel.open(); !opened) return opened;
  auto device = far::open_device(settings->far_url, {settings->key_file, settings->timeout_ns});
  if (!device) return std::unexpected(device.error());
  std::snprintf(stat_page()->far_url, sizeof stat_page()->far_url, "%s", (*device)->info().url.c_str());
  std::snprintf(stat_page()->policy, sizeof stat_page()->policy, "%s", policy->name);
  PagerOptions options;
  options.budget_bytes = settings->local_bytes;
  options.window_bytes = settings->window_bytes;
  options.manage_at_once = settings->take_over_at_start;
  options.read_ahead_pages_max = settings->read_ahead_pages;
  options.policy = policy;
  options.on_managed = [] {
    far_heap::give_back_promptly();
    hint::begin();
  };
  options.take_by_move = settings->take != Settings::Take::protect;
  options.observer = trace::observer_from_environment(settings->read_ahead_pages, settings->local_bytes);
  Result<Pager*> pager = Pager::start(options, kernel, std::move(*device));
  if (!pager) return std::unexpected(pager.error());
  return {};
}

}  // namespace hinterland
