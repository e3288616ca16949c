#include "cli/compare/swap_limit.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/log.hpp"
#include "base/units.hpp"

namespace hinterland::cli {
namespace {

constexpr const char* kDevice = "/dev/zram0";
constexpr const char* kSettings = "/sys/block/zram0/";
constexpr const char* kGroups = "/sys/fs/cgroup/";

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Status write_text(const std::string& path, const std::string& text) {
  int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool done = file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int problem = errno;
  if (file >= 0) close(file);
  if (done) return {};
  return std::unexpected(Error::make(problem, "'%s' cannot be written to %s", text.c_str(), path.c_str()));
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The number behind a word of a file such as /proc/vmstat; 0 when it is not there.
std::uint64_t figure_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  for (std::uint64_t value = 0; file >> word >> value;)
    if (word == name) return value;
  return 0;
}

std::unexpected<Error> unavailable(const char* why, const char* remedy) {
  Error error = Error::make(0, "%s", why);
  return std::unexpected(error.remedy("%s", remedy));
}

// What mkswap(8) writes: a header in the first page, whose magic number is at its end.
Status write_swap_header(std::uint64_t bytes) {
  struct Header {
    char boot[1024];
    std::uint32_t version, last_page, bad_pages;
    unsigned char uuid[16];
  };
  std::array<char, kPageSize> page{};
  Header header{};
  header.version = 1;
  header.last_page = static_cast<std::uint32_t>(bytes / kPageSize - 1);
  std::memcpy(page.data(), &header, sizeof header);
  constexpr char kMagic[] = "SWAPSPACE2";
  std::memcpy(page.data() + page.size() - 10, kMagic, 10);
  int device = open(kDevice, O_WRONLY | O_CLOEXEC);
  bool done = device >= 0 && write(device, page.data(), page.size()) == static_cast<ssize_t>(page.size()) &&
              fsync(device) == 0;
  int problem = errno;
  if (device >= 0) close(device);
  if (done) return {};
  return std::unexpected(Error::make(problem, "%s cannot be written", kDevice));
}

}  // namespace

Status SwapLimit::check() {
  if (geteuid() != 0) return unavailable("only root can set up swap", "run as root to compare with swap as well");
  std::string on = read_text("/proc/swaps");
  if (on.find('\n') != on.rfind('\n'))
    return unavailable("swap is on already, and is not touched",
                       "see swapon --show; swapoff it to compare with swap");
  if (!exists(kDevice) || !exists(std::string(kSettings) + "disksize"))
    return unavailable("there is no /dev/zram0", "run: modprobe zram");
  if (std::strtoull(read_text(std::string(kSettings) + "disksize").c_str(), nullptr, 10) != 0)
    return unavailable("/dev/zram0 is in use, and is not touched",
                       "if nobody needs what is on it: echo 1 > /sys/block/zram0/reset");
  if (exists(std::string(kGroups) + "memory/memory.limit_in_bytes")) return {};
  if (read_text(std::string(kGroups) + "cgroup.subtree_control").find("memory") != std::string::npos) return {};
  return unavailable("there is no memory cgroup", "run: echo +memory > /sys/fs/cgroup/cgroup.subtree_control");
}

Result<SwapLimit> SwapLimit::make(std::uint64_t memory_bytes, std::uint64_t swap_bytes) {
  if (Status able = check(); !able) return std::unexpected(able.error());
  SwapLimit limit;
  limit.first_version_ = exists(std::string(kGroups) + "memory/memory.limit_in_bytes");
  std::string group = std::string(kGroups) + (limit.first_version_ ? "memory/" : "") + "hinterland-compare-" +
                      std::to_string(getpid());
  if (mkdir(group.c_str(), 0755) != 0) return std::unexpected(Error::make(errno, "%s cannot be made", group.c_str()));
  limit.group_ = group;
  Status done = write_text(group + (limit.first_version_ ? "/memory.limit_in_bytes" : "/memory.max"),
                           std::to_string(memory_bytes));
  if (!done) return std::unexpected(done.error());
  limit.device_is_ours_ = true;
  done = write_text(std::string(kSettings) + "disksize", std::to_string(swap_bytes));
  if (done) done = write_swap_header(swap_bytes);
  if (!done) return std::unexpected(done.error());
  if (swapon(kDevice, 0) != 0)
    return std::unexpected(Error::make(errno, "swap on %s cannot be switched on", kDevice));
  limit.swap_is_on_ = true;
  Result<std::unique_ptr<Decoys>> decoys = Decoys::start(group + "/cgroup.procs");
  if (!decoys) return std::unexpected(decoys.error());
  limit.decoys_ = std::move(*decoys);
  limit.pages_in_before_ = figure_of("/proc/vmstat", "pswpin");
  return limit;
}

SwapLimit::SwapLimit(SwapLimit&& other) noexcept
    : group_(std::exchange(other.group_, "")),
      first_version_(other.first_version_),
      swap_is_on_(std::exchange(other.swap_is_on_, false)),
      device_is_ours_(std::exchange(other.device_is_ours_, false)),
      pages_in_before_(other.pages_in_before_),
      decoys_(std::move(other.decoys_)) {}

SwapLimit::~SwapLimit() {
  decoys_.reset();  // a group that has processes stays
  // The kernel frees the pages of those who died a moment later: for that long these are refused.
  constexpr int kTries = 50;
  auto in_the_end = [](auto&& done) {
    for (int tries = 0; tries < kTries; ++tries) {
      if (done()) return true;
      usleep(100'000);
    }
    return false;
  };
  if (swap_is_on_ && !in_the_end([] { return swapoff(kDevice) == 0; }))
    log::error("the swap of this comparison is still on; run: swapoff %s", kDevice);
  else if (device_is_ours_ &&
           !in_the_end([] { return write_text(std::string(kSettings) + "reset", "1").has_value(); }))
    log::error("%s is still set up; run: echo 1 > %sreset", kDevice, kSettings);
  if (!group_.empty() && !in_the_end([this] { return rmdir(group_.c_str()) == 0; }))
    log::error("the memory cgroup of this comparison is still there, because something runs in it; run: rmdir %s",
               group_.c_str());
}

Status SwapLimit::hold(pid_t process) const { return write_text(group_ + "/cgroup.procs", std::to_string(process)); }

std::uint64_t SwapLimit::peak_bytes() const {
  std::string peak = read_text(group_ + (first_version_ ? "/memory.max_usage_in_bytes" : "/memory.peak"));
  std::istringstream figures(read_text(std::string(kSettings) + "mm_stat"));
  std::uint64_t stored = 0;
  for (int i = 0; i < 5; ++i) figures >> stored;  // the fifth: mem_used_max
  return std::strtoull(peak.c_str(), nullptr, 10) + stored;
}

std::uint64_t SwapLimit::pages_in() const { return figure_of("/proc/vmstat", "pswpin") - pages_in_before_; }

}  // namespace hinterland::cli
