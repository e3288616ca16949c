#include "cli/servers.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/units.hpp"

namespace hinterland::cli {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> command_of(const std::string& process) {
  std::vector<std::string> words;
  std::string text = read_all(process + "/cmdline");
  for (std::size_t at = 0; at < text.size();) {
    words.emplace_back(text.c_str() + at);
    at += words.back().size() + 1;
    for (char& letter : words.back())  // a terminal would obey some
      if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  }
  return words;
}

bool serves(const std::vector<std::string>& words) {
  return words.size() >= 2 && words[1] == "serve" && words[0].substr(words[0].rfind('/') + 1) == "hinterland";
}

// Fields 4, 14, 15 and 24 of /proc/PID/stat: parent, ticks in the program and in the kernel, and resident pages.
void read_use(const std::string& process, RunningServer& server) {
  std::string text = read_all(process + "/stat");
  std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  double ticks = 0;
  for (int number = 3; fields >> field && number <= 24; ++number) {
    if (number == 4) server.parent = std::atoi(field.c_str());
    if (number == 14 || number == 15) ticks += std::strtod(field.c_str(), nullptr);
    if (number == 24)
      server.resident_bytes = bytes_of_pages(static_cast<std::size_t>(std::strtoull(field.c_str(), nullptr, 10)));
  }
  server.cpu_s = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

std::vector<RunningServer> find_servers() {
  std::vector<RunningServer> servers;
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return servers;
  while (const dirent* entry = readdir(processes)) {
    pid_t pid = std::atoi(entry->d_name);
    std::string process = std::string("/proc/") + entry->d_name;
    struct stat status{};
    if (pid <= 0 || stat(process.c_str(), &status) != 0) continue;
    std::vector<std::string> words = command_of(process);
    if (!serves(words)) continue;
    RunningServer server{pid, status.st_uid, 0, 0, "", 0};
    for (std::size_t i = 2; i < words.size(); ++i) server.arguments += (i == 2 ? "" : " ") + words[i];
    read_use(process, server);
    servers.push_back(std::move(server));
  }
  closedir(processes);
  // The processes in which a server computes have its command line.
  const std::vector<RunningServer> all = servers;
  std::erase_if(servers, [&all](const RunningServer& each) {
    return std::ranges::any_of(all, [&each](const RunningServer& other) { return other.pid == each.parent; });
  });
  std::ranges::sort(servers, {}, &RunningServer::pid);
  return servers;
}

}  // namespace hinterland::cli
