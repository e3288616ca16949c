// The memory servers (hinterland serve) of this machine, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hinterland::cli {

struct RunningServer {
  pid_t pid;
  uid_t user;
  std::uint64_t resident_bytes;
  double cpu_s;           // user and system, so far
  std::string arguments;  // behind `serve`, as ps shows them
  pid_t parent;
};

// By PID. Those in other PID namespaces than ours are not seen, or by other numbers.
std::vector<RunningServer> find_servers();

}  // namespace hinterland::cli
