#include "memcached/server.hpp"

#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace memcached {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds kStartTime{30};
constexpr std::chrono::milliseconds kLook{10};

std::string make_folder() {
  std::string name = std::filesystem::temp_directory_path() / "hinterland-memcached-XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    throw std::runtime_error("cannot create a folder " + name + ": " + std::strerror(errno));
  return name;
}

std::vector<std::string> words_for(const ServerOptions& options) {
  const passwd* user = getpwuid(geteuid());
  unsigned power = static_cast<unsigned>(std::bit_width(options.keys));
  power = power < 16 ? 16 : power > 31 ? 31 : power;
  // What its threads for the lists of items do dirties pages that nobody asked for (Eden A.2).
  return {options.program,
          "-l",
          "127.0.0.1",
          "-p",
          "-1",
          "-U",
          "0",
          "-u",
          user != nullptr ? user->pw_name : "root",
          "-t",
          std::to_string(options.threads),
          "-m",
          std::to_string((options.memory_bytes >> 20) + 1),
          "-c",
          "4096",
          "-o",
          "no_lru_maintainer,no_lru_crawler,no_slab_reassign,hashpower=" + std::to_string(power)};
}

}  // namespace

Server::Server(const ServerOptions& options) : folder_(make_folder()), port_file_(folder_ + "/port") {
  try {
    start(options);
    auto end = steady_clock::now() + kStartTime;
    while (!is_ready()) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        throw std::runtime_error(options.program + " ended at its start; its message is above");
      }
      if (steady_clock::now() > end) throw std::runtime_error(options.program + " does not listen after 30 s");
      std::this_thread::sleep_for(kLook);
    }
  } catch (...) {
    clean_up();
    throw;
  }
}

void Server::start(const ServerOptions& options) {
  std::vector<std::string> words = words_for(options);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  setenv("MEMCACHED_PORT_FILENAME", port_file_.c_str(), 1);
  int error = posix_spawn(&pid_, options.program.c_str(), nullptr, nullptr, arguments.data(), environ);
  if (error != 0) {
    pid_ = -1;
    throw std::runtime_error("cannot start " + options.program + ": " + std::strerror(error));
  }
}

// It writes lines as "TCP INET: 34567", in a file that it then gives its name.
bool Server::is_ready() {
  std::ifstream file(port_file_);
  std::string line;
  while (std::getline(file, line)) {
    unsigned port = 0;
    if (std::sscanf(line.c_str(), "TCP INET: %u", &port) == 1) port_ = static_cast<std::uint16_t>(port);
  }
  return port_ != 0;
}

void Server::end() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  int status = 0;
  pid_t pid = std::exchange(pid_, -1);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("memcached did not end well (status " + std::to_string(status) + ")");
}

Server::~Server() { clean_up(); }

void Server::clean_up() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace memcached
