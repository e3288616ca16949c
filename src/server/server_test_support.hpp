// A server for tests: in this process, or in a child that can be killed and frozen.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "far/tcp/tcp_device.hpp"
#include "far/test_support.hpp"
#include "server/server.hpp"

namespace hinterland::testing {

using far::FarPage;
using far::testing::PageBuffer;

inline ServerOptions small_server(std::uint32_t slabs = 8) {
  ServerOptions options;
  options.memory_bytes = slabs * std::uint64_t{far::kSlabBytes};
  options.threads = 2;
  return options;
}

// Runs from construction to destruction.
class RunningServer {
 public:
  explicit RunningServer(const ServerOptions& options) {
    auto made = Server::create(options);
    if (!made) {
      ADD_FAILURE() << made.error().what();
      std::abort();
    }
    server_ = std::move(*made);
    thread_ = std::thread([this] { static_cast<void>(server_->run()); });
  }
  ~RunningServer() {
    server_->stop();
    thread_.join();
  }
  Server& operator*() { return *server_; }
  Server* operator->() { return server_.get(); }

 private:
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// In a process of its own, forked before this one has threads that matter to it. Dies with its parent.
class ServerProcess {
 public:
  explicit ServerProcess(const ServerOptions& options) {
    int pipe_ends[2];
    if (::pipe(pipe_ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(pipe_ends[0]);
      auto server = Server::create(options);
      std::uint16_t port = server ? (*server)->port() : 0;
      if (::write(pipe_ends[1], &port, sizeof port) != sizeof port || !server) ::_exit(1);
      ::close(pipe_ends[1]);
      static_cast<void>((*server)->run());
      ::_exit(0);
    }
    ::close(pipe_ends[1]);
    if (::read(pipe_ends[0], &port_, sizeof port_) != sizeof port_ || port_ == 0) ADD_FAILURE() << "no server";
    ::close(pipe_ends[0]);
  }
  ~ServerProcess() { kill(); }
  std::uint16_t port() const { return port_; }
  std::string url() const { return "tcp://127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return pid_; }
  // Returns when it stands still: kill() alone returns while its threads may still answer.
  void freeze() {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void thaw() { ::kill(pid_, SIGCONT); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

// A file that goes with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& contents, mode_t mode = 0600) {
    std::string name = (std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp");
    name += "/hinterland-test-XXXXXX";
    int fd = ::mkstemp(name.data());
    if (fd < 0 || ::write(fd, contents.data(), contents.size()) != static_cast<ssize_t>(contents.size()))
      std::abort();
    ::fchmod(fd, mode);
    ::close(fd);
    path_ = name;
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline far::DeviceSettings settings_with(const std::string& key_file, std::uint64_t timeout_ns = 60'000'000'000) {
  far::DeviceSettings settings;
  settings.key_file = key_file;
  settings.timeout_ns = timeout_ns;
  return settings;
}

inline std::unique_ptr<far::Device> connect_to(std::uint16_t port,
                                               const far::DeviceSettings& settings = settings_with("")) {
  auto device = far::open_tcp_device({"127.0.0.1", port}, settings);
  EXPECT_TRUE(device) << device.error().what();
  return device ? std::move(*device) : nullptr;
}

inline bool within(std::uint64_t ns, auto condition) {
  for (std::uint64_t end = now_ns() + ns; now_ns() < end; ::usleep(1000))
    if (condition()) return true;
  return condition();
}

}  // namespace hinterland::testing
