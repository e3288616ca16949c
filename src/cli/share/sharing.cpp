#include "cli/share/sharing.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/claims.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/options.hpp"
#include "base/size.hpp"
#include "base/units.hpp"

namespace hinterland::cli {
namespace {

// A program touches new memory with a gigabyte a second or so: in this time less than a first share of most totals,
// so that one that was just started seldom pages only because nobody has looked at it yet. A look at ten processes
// takes 0.1 ms.
constexpr std::uint64_t kLookEveryNs = 20'000'000;
// Misses are a mean of about so long: longer than the bursts of one program, shorter than phases that people mean.
constexpr double kMeanSeconds = 0.3;
// A second. A thousandth of the time of one thread.
constexpr double kUrgentMisses = 100;
// A change that is smaller than a part in so many is not worth waking the program up.
constexpr std::uint64_t kSmallPart = 32;

std::uint64_t gauge_of(const StatPage& page, Gauge gauge) {
  return page.gauges[static_cast<std::size_t>(gauge)].load(std::memory_order_relaxed);
}

std::uint64_t missed_by(const StatPage& page) {
  return page.counters[Counter::faults_read] + page.counters[Counter::faults_write] +
         page.counters[Counter::faults_refault] + page.counters[Counter::hint_pages_in] +
         page.counters[Counter::hint_refaults];
}

// Resident memory that is no file's and not shared: what paging will take over. 0 when the process is gone.
std::uint64_t anonymous_bytes(pid_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(pid));
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  unsigned long long all = 0, resident = 0, shared = 0;
  int fields = std::fscanf(file, "%llu %llu %llu", &all, &resident, &shared);
  std::fclose(file);
  return fields == 3 && resident > shared ? bytes_of_pages(static_cast<std::size_t>(resident - shared)) : 0;
}

std::uint64_t used_by(const StatPage& page) {
  if (gauge_of(page, Gauge::managed) == 0) return anonymous_bytes(page.pid);
  return gauge_of(page, Gauge::resident_bytes) + gauge_of(page, Gauge::frames_bytes);
}

// As tune does, without waiting for the answer.
void ask_for(StatPage& page, std::uint64_t bytes) {
  page.budget_request_bytes.store(bytes, std::memory_order_relaxed);  // sent by what follows
  // release: the reader that sees the new sequence (acquire) sees what is asked for
  page.request_sequence.fetch_add(1, std::memory_order_release);
  futex_wake(&page.request_sequence, 1 << 20, true);
}

std::uint64_t least_budget() { return option(OptionId::local).minimum; }

// A sixteenth is kept for the next process; each has as much whatever happens, as far as half of the total goes.
SharedTotal shared_by(std::uint64_t total_bytes, std::size_t processes) {
  const std::uint64_t kept = first_share(total_bytes), half = total_bytes / 2 / std::max<std::size_t>(processes, 1);
  return {total_bytes, kept, std::max(page_floor(std::min(kept, half)), least_budget()), 2 * kept, kUrgentMisses};
}

bool is_worth_asking(std::uint64_t now, std::uint64_t wanted) {
  std::uint64_t change = now > wanted ? now - wanted : wanted - now;
  return change > now / kSmallPart;
}

}  // namespace

std::uint64_t first_share(std::uint64_t total_bytes) {
  return std::max(page_floor(total_bytes / 16), least_budget());
}

Sharing::Sharing(std::string folder, std::uint64_t total_bytes)
    : folder_(std::move(folder)),
      total_bytes_(total_bytes),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Sharing::~Sharing() = default;  // the thread is asked to stop, and waited for

void Sharing::run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any called;
  std::unique_lock lock(mutex);
  for (std::uint64_t before = now_ns(); !stop.stop_requested();) {
    called.wait_for(lock, stop, std::chrono::nanoseconds(kLookEveryNs), [] { return false; });
    std::uint64_t now = now_ns();
    look(static_cast<double>(now - std::exchange(before, now)) / 1e9);
  }
}

// Those that ended go; those that began come in, with what they missed until now not counted. After an exec a process
// has another file of the same name, and that of its earlier program has a number behind a point.
void Sharing::meet_new(const FiguresFolder& folder) {
  std::erase_if(members_, [](const auto& each) { return !each.second.view.is_alive(); });
  std::map<std::string, std::size_t> programs;  // that each process has been, without the present one
  for (const std::string& name : folder.names())
    if (!name.empty() && name[0] >= '0' && name[0] <= '9') ++programs[name.substr(0, name.find('.'))];
  for (const auto& [name, count] : programs) {
    auto known = members_.find(name);
    if (known != members_.end() && known->second.programs == count) continue;
    Result<StatView> view = StatView::open(folder, name, true);
    if (!view || !view->is_alive()) continue;
    std::uint64_t missed = missed_by(**view);
    members_.insert_or_assign(name, Member{std::move(*view), count, missed, 0, 0});
  }
}

void Sharing::look(double seconds) {
  Result<FiguresFolder> folder = FiguresFolder::open(folder_);
  if (!folder) return;
  meet_new(*folder);
  std::vector<Claim> claims;
  for (auto& [name, member] : members_) {
    std::uint64_t missed = missed_by(*member.view);
    double rate = static_cast<double>(missed - std::exchange(member.missed, missed)) / std::max(seconds, 1e-3);
    member.misses += (rate - member.misses) * std::min(1.0, seconds / kMeanSeconds);
    if (member.misses < 1) member.misses = 0;  // so that who does nothing comes to ask for nothing
    claims.push_back({gauge_of(*member.view, Gauge::budget_bytes), used_by(*member.view), member.misses});
  }
  if (claims.empty()) return;
  if (!warned_ && claims.size() * least_budget() > total_bytes_) {
    warned_ = true;
    log::warning("%zu processes share %s, and each needs %s: they take more", claims.size(),
                 rounded_size_text(total_bytes_).c_str(), rounded_size_text(least_budget()).c_str());
  }
  std::vector<std::uint64_t> budgets = share_out(shared_by(total_bytes_, claims.size()), claims);
  std::size_t i = 0;
  for (auto& [name, member] : members_) {
    std::uint64_t now = claims[i].budget_bytes, wanted = budgets[i++];
    if (is_worth_asking(now, wanted) && std::exchange(member.asked_bytes, wanted) != wanted)
      ask_for(*member.view, wanted);
  }
}

}  // namespace hinterland::cli
