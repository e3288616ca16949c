#include "cli/running.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>

#include "base/stats_folder.hpp"
#include "cli/absolute_path.hpp"

namespace hinterland::cli {
namespace {

constexpr const char* kRunPrefix = "run-";

// "4711-4026531836", with ".1" behind it for what that process ran before an exec.
bool is_page_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789.-") == std::string::npos && name[0] >= '0' &&
         name[0] <= '9';
}

// "run-PID-TICKS-NAMESPACES": whether that `run` still lives and will report. Of one in a container that shares the
// directory with us, or in the host of ours, we cannot know, and so it does.
bool owner_lives(const std::string& name) {
  int pid = 0;
  unsigned long long ticks = 0, namespaces = 0;
  int fields = std::sscanf(name.c_str(), "run-%d-%llu-%llu", &pid, &ticks, &namespaces);
  if (fields == 3 && namespaces != own_namespaces()) return true;
  return fields >= 2 && process_start_ticks(pid) == ticks;
}

enum class Remove { none, dead, all_not_seen_to_live };

bool may_be_removed(const StatView& view, Remove which) {
  if (which == Remove::none) return false;
  return which == Remove::all_not_seen_to_live || view->namespaces == own_namespaces() || view->ended_ns.load() != 0;
}

using Found = std::function<void(StatView, const FiguresFolder&, const std::string& name)>;

void gather_live(const FiguresFolder& folder, Remove which, const Found& found) {
  for (const std::string& name : folder.names()) {
    if (!is_page_name(name)) continue;
    Result<StatView> view = StatView::open(folder, name, false);
    if (!view) continue;
    if (view->is_alive() && name.find('.') == std::string::npos)
      found(std::move(*view), folder, name);
    else if (may_be_removed(*view, which))
      folder.remove(name);
  }
}

// A recorder that was killed left them. Programs that still write there have them mapped, and make no more without
// the directory.
void remove_rings(const FiguresFolder& run_folder) {
  {
    Result<FiguresFolder> rings = run_folder.below(kRingsName);
    if (!rings) return;
    for (const std::string& name : rings->names())
      if (is_page_name(name)) rings->remove(name);  // rings are named as pages are
  }
  run_folder.remove_folder(kRingsName);
}

// Those in the folder and in the folders of runs below it; removes what is left of the dead.
void gather_all(const FiguresFolder& folder, const Found& found) {
  gather_live(folder, Remove::dead, found);
  for (const std::string& name : folder.names()) {
    if (!name.starts_with(kRunPrefix)) continue;
    bool abandoned = !owner_lives(name);
    {
      Result<FiguresFolder> run = folder.below(name);
      if (!run) continue;
      gather_live(*run, abandoned ? Remove::all_not_seen_to_live : Remove::none, found);
      if (abandoned) remove_rings(*run);
    }
    if (abandoned) folder.remove_folder(name);  // fails, rightly, while one of its programs lives
  }
}

Status gather_all(const std::vector<std::string>& directories, const Found& found) {
  for (const std::string& directory : directories) {
    Result<FiguresFolder> folder = FiguresFolder::open(directory);
    if (folder)
      gather_all(*folder, found);
    else if (folder.error().code() != ENOENT && directory == directories.front())
      return std::unexpected(folder.error());
  }
  return {};
}

// The page as it is now, in memory of our own; MAP_FAILED when it cannot be had.
void* copy_of(int descriptor) {
  void* address = mmap(nullptr, sizeof(StatPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return address;
  if (pread(descriptor, address, sizeof(StatPage), 0) == static_cast<ssize_t>(sizeof(StatPage))) return address;
  munmap(address, sizeof(StatPage));
  return MAP_FAILED;
}

}  // namespace

void StatView::Unmap::operator()(StatPage* page) const { munmap(page, sizeof(StatPage)); }

Result<StatView> StatView::open(const FiguresFolder& folder, const std::string& name, bool writable) {
  std::string file = folder.path() + "/" + name;
  int descriptor = folder.open_file(name, writable);
  if (descriptor < 0) return std::unexpected(Error::make(-descriptor, "%s cannot be opened", file.c_str()));
  struct stat status;
  bool usable = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                status.st_size >= static_cast<off_t>(sizeof(StatPage)) &&
                (status.st_uid == geteuid() || geteuid() == 0);
  void* address = MAP_FAILED;
  if (usable && writable)
    address = mmap(nullptr, sizeof(StatPage), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  else if (usable)
    address = copy_of(descriptor);
  close(descriptor);
  if (address == MAP_FAILED) return std::unexpected(Error::make(0, "%s is not a page of figures", file.c_str()));
  StatView view;
  view.page_.reset(static_cast<StatPage*>(address));
  // acquire: pairs with the release in open_stat_page(); the rest of the page is filled once magic is there
  if (view->magic.load(std::memory_order_acquire) != StatPage::kMagic || view->version != kStatPageVersion) {
    Error error = Error::make(0, "%s is of another version of Hinterland", file.c_str());
    return std::unexpected(error.remedy("use the 'hinterland' that the program was started with"));
  }
  return view;
}

bool StatView::is_alive() const {
  return page_->ended_ns.load(std::memory_order_relaxed) == 0 && page_->namespaces == own_namespaces() &&
         process_start_ticks(page_->pid) == page_->start_time_ticks;
}

Result<std::vector<StatView>> find_running(const std::vector<std::string>& directories) {
  std::vector<StatView> views;
  Status looked = gather_all(directories, [&](StatView view, const FiguresFolder&, const std::string&) {
    views.push_back(std::move(view));
  });
  if (!looked) return std::unexpected(looked.error());
  std::sort(views.begin(), views.end(), [](const StatView& a, const StatView& b) { return a->pid < b->pid; });
  return views;
}

std::vector<StatView> pages_in(const std::string& directory) {
  std::vector<StatView> views;
  Result<FiguresFolder> folder = FiguresFolder::open(directory);
  if (!folder) return views;
  for (const std::string& name : folder->names()) {
    if (!is_page_name(name)) continue;
    if (Result<StatView> view = StatView::open(*folder, name, false)) views.push_back(std::move(*view));
  }
  std::stable_sort(views.begin(), views.end(),
                   [](const StatView& a, const StatView& b) { return a->started_ns < b->started_ns; });
  return views;
}

namespace {

// Why there is no page of that process.
Error not_found(const std::string& directory, pid_t pid) {
  if (kill(pid, 0) < 0 && errno == ESRCH) {
    Error error = Error::make(0, "there is no process %d", static_cast<int>(pid));
    return error.remedy("'hinterland stat' lists the running programs");
  }
  struct stat status{};
  std::string proc = "/proc/" + std::to_string(pid);
  if (stat(proc.c_str(), &status) == 0 && status.st_uid != geteuid() && geteuid() != 0) {
    Error error = Error::make(0, "process %d is not yours", static_cast<int>(pid));
    return error.remedy("ask its owner, or use sudo with --stat-dir /dev/shm/hinterland-%u",
                        static_cast<unsigned>(status.st_uid));
  }
  Error error = Error::make(0, "process %d does not run under Hinterland, or its figures are not in %s",
                            static_cast<int>(pid), directory.c_str());
  if (status.st_uid != geteuid())
    error.remedy("for a program of another user give --stat-dir /dev/shm/hinterland-%u",
                 static_cast<unsigned>(status.st_uid));
  else
    error.remedy("start it with 'hinterland run', or name its directory with --stat-dir");
  return error;
}

}  // namespace

Result<StatView> find_running(const std::vector<std::string>& directories, pid_t pid, bool writable) {
  Result<StatView> wanted = std::unexpected(Error());
  bool found = false;
  Status looked = gather_all(directories, [&](StatView view, const FiguresFolder& folder, const std::string& name) {
    if (found || view->pid != pid) return;
    found = true;
    wanted = writable ? StatView::open(folder, name, true) : std::move(view);
  });
  if (!looked) return std::unexpected(looked.error());
  if (!found) return std::unexpected(not_found(directories.front(), pid));
  return wanted;
}

std::vector<std::string> searched_directories(const std::string& stat_dir) {
  // A program that is told where to write its figures or its trace is not in our folder.
  if (!stat_dir.empty()) return {absolute_path(stat_dir)};
  char path[kStatisticsPathMax];
  statistics_directory(path, sizeof path);
  std::vector<std::string> directories{absolute_path(path)};
  std::string user = std::to_string(geteuid());
  for (const std::string& other : {"/run/user/" + user + "/hinterland", "/dev/shm/hinterland-" + user})
    if (other != directories.front()) directories.push_back(other);
  return directories;
}

std::string chosen_directory(const std::string& stat_dir) { return searched_directories(stat_dir).front(); }

Result<std::string> make_run_directory(const std::string& directory) {
  Result<FiguresFolder> folder = FiguresFolder::make(directory);
  if (!folder) return std::unexpected(folder.error());
  // Removes what an earlier run that was killed left behind.
  gather_all(*folder, [](StatView, const FiguresFolder&, const std::string&) {});
  std::string name = kRunPrefix + std::to_string(getpid()) + "-" + std::to_string(process_start_ticks(getpid())) +
                     "-" + std::to_string(own_namespaces());
  if (Status made = folder->make_below(name); !made) return std::unexpected(made.error());
  return directory + "/" + name;
}

void remove_run_directory(const std::string& run_directory) {
  std::size_t slash = run_directory.rfind('/');
  Result<FiguresFolder> folder = FiguresFolder::open(run_directory.substr(0, slash));
  if (!folder) return;
  std::string name = run_directory.substr(slash + 1);
  if (Result<FiguresFolder> run = folder->below(name))
    gather_live(*run, Remove::all_not_seen_to_live, [](StatView, const FiguresFolder&, const std::string&) {});
  folder->remove_folder(name);
}

}  // namespace hinterland::cli
