#include "cli/running.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace hinterland::cli {
namespace {

constexpr const char* kRunPrefix = "run-";

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* open_directory = opendir(directory.c_str());
  if (open_directory == nullptr) return names;
  while (const dirent* entry = readdir(open_directory)) names.emplace_back(entry->d_name);
  closedir(open_directory);
  std::sort(names.begin(), names.end());
  return names;
}

// "4711", or "4711.1" for what that process ran before an exec.
bool is_page_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789.") == std::string::npos && name[0] != '.';
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

void gather_live(const std::string& directory, Remove which, std::vector<StatView>& views) {
  for (const std::string& name : names_in(directory)) {
    if (!is_page_name(name)) continue;
    std::string file = directory + "/" + name;
    Result<StatView> view = StatView::open(file, false);
    if (!view) continue;
    if (view->is_alive() && name.find('.') == std::string::npos)
      views.push_back(std::move(*view));
    else if (may_be_removed(*view, which))
      unlink(file.c_str());
  }
}

// A recorder that was killed left them. Programs that still write there have them mapped, and make no more without
// the directory. Root may look at the directories of others, who could link to anything: links are not followed.
void remove_rings(const std::string& run_directory) {
  int run = open(run_directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (run < 0) return;
  int rings = openat(run, kRingsName, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (DIR* directory = rings < 0 ? nullptr : fdopendir(rings)) {
    while (const dirent* entry = readdir(directory))
      if (is_page_name(entry->d_name)) unlinkat(rings, entry->d_name, 0);  // rings are named as pages are
    closedir(directory);
    unlinkat(run, kRingsName, AT_REMOVEDIR);
  } else if (rings >= 0) {
    close(rings);
  }
  close(run);
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

Result<StatView> StatView::open(const std::string& file, bool writable) {
  int descriptor = ::open(file.c_str(), (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return std::unexpected(Error::make(errno, "%s cannot be opened", file.c_str()));
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
  view.file_ = file;
  // acquire: pairs with the release in open_stat_page(); the rest of the page is filled once magic is there
  if (view->magic.load(std::memory_order_acquire) != StatPage::kMagic || view->version != StatPage::kVersion) {
    Error error = Error::make(0, "%s is of another version of Hinterland", file.c_str());
    return std::unexpected(error.remedy("use the 'hinterland' that the program was started with"));
  }
  return view;
}

bool StatView::is_alive() const {
  return page_->ended_ns.load(std::memory_order_relaxed) == 0 && page_->namespaces == own_namespaces() &&
         process_start_ticks(page_->pid) == page_->start_time_ticks;
}

std::vector<StatView> find_running(const std::string& directory) {
  std::vector<StatView> views;
  gather_live(directory, Remove::dead, views);
  for (const std::string& name : names_in(directory)) {
    if (!name.starts_with(kRunPrefix)) continue;
    bool abandoned = !owner_lives(name);
    gather_live(directory + "/" + name, abandoned ? Remove::all_not_seen_to_live : Remove::none, views);
    if (!abandoned) continue;
    remove_rings(directory + "/" + name);
    rmdir((directory + "/" + name).c_str());  // fails, rightly, while one of its programs lives
  }
  std::sort(views.begin(), views.end(), [](const StatView& a, const StatView& b) { return a->pid < b->pid; });
  return views;
}

std::vector<StatView> pages_in(const std::string& directory) {
  std::vector<StatView> views;
  for (const std::string& name : names_in(directory)) {
    if (!is_page_name(name)) continue;
    if (Result<StatView> view = StatView::open(directory + "/" + name, false)) views.push_back(std::move(*view));
  }
  std::stable_sort(views.begin(), views.end(),
                   [](const StatView& a, const StatView& b) { return a->started_ns < b->started_ns; });
  return views;
}

Result<StatView> find_running(const std::string& directory, pid_t pid, bool writable) {
  for (const StatView& view : find_running(directory))
    if (view->pid == pid) return StatView::open(view.file(), writable);
  if (kill(pid, 0) < 0 && errno == ESRCH) {
    Error error = Error::make(0, "there is no process %d", static_cast<int>(pid));
    return std::unexpected(error.remedy("'hinterland stat' lists the running programs"));
  }
  struct stat status;
  std::string proc = "/proc/" + std::to_string(pid);
  if (stat(proc.c_str(), &status) == 0 && status.st_uid != geteuid() && geteuid() != 0) {
    Error error = Error::make(0, "process %d is not yours", static_cast<int>(pid));
    return std::unexpected(error.remedy("ask its owner, or use sudo with --stat-dir /dev/shm/hinterland-%u",
                                        static_cast<unsigned>(status.st_uid)));
  }
  Error error = Error::make(0, "process %d does not run under Hinterland, or its figures are not in %s",
                            static_cast<int>(pid), directory.c_str());
  if (status.st_uid != geteuid())
    error.remedy("for a program of another user give --stat-dir /dev/shm/hinterland-%u",
                 static_cast<unsigned>(status.st_uid));
  else
    error.remedy("start it with 'hinterland run', or name its directory with --stat-dir");
  return std::unexpected(error);
}

std::string chosen_directory(const std::string& stat_dir) {
  if (!stat_dir.empty()) return stat_dir;
  char path[256];
  statistics_directory(path, sizeof path);
  return path;
}

Result<std::string> make_run_directory(const std::string& directory) {
  find_running(directory);  // removes what an earlier run that was killed left behind
  std::string path = directory + "/" + kRunPrefix + std::to_string(getpid()) + "-" +
                     std::to_string(process_start_ticks(getpid())) + "-" + std::to_string(own_namespaces());
  struct stat status;
  bool usable = (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) && lstat(directory.c_str(), &status) == 0;
  if (usable && (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)) {
    Error error = Error::make(0, "%s, for the figures of running programs, is not yours alone", directory.c_str());
    return std::unexpected(error.remedy("remove it, chmod 700 it, or name another with --stat-dir"));
  }
  if (usable && mkdir(path.c_str(), 0700) == 0) return path;
  Error error = Error::make(errno, "%s, for the figures of running programs, cannot be made", path.c_str());
  return std::unexpected(error.remedy("name a directory that can be written with --stat-dir"));
}

void remove_run_directory(const std::string& run_directory) {
  std::vector<StatView> still_running;
  gather_live(run_directory, Remove::all_not_seen_to_live, still_running);
  rmdir(run_directory.c_str());
}

}  // namespace hinterland::cli
