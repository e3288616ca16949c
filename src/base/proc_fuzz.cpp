// What the kernel writes for people, read by a program: /proc/meminfo, /proc/self/cgroup and the files of a group.
#include <fcntl.h>

#include <array>
#include <filesystem>

#include "base/available_memory.hpp"
#include "base/testing/fuzz_input.hpp"

using namespace hinterland;

namespace {

// A root folder with the files of both versions, on a file system in memory.
struct Root {
  static constexpr std::array<const char*, 8> kFiles = {
      "proc/meminfo",
      "proc/self/cgroup",
      "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
      "sys/fs/cgroup/memory/a/memory.usage_in_bytes",
      "sys/fs/cgroup/memory/a/memory.stat",
      "sys/fs/cgroup/a/memory.max",
      "sys/fs/cgroup/a/memory.current",
      "sys/fs/cgroup/a/memory.stat",
  };
  std::string path;
  Root() {
    char name[] = "/dev/shm/hinterland-fuzz-XXXXXX";
    HL_CHECK(::mkdtemp(name) != nullptr);
    path = name;
    for (const char* file : kFiles)
      std::filesystem::create_directories((path + "/" + file).substr(0, (path + "/" + file).rfind('/')));
  }
  ~Root() { std::filesystem::remove_all(path); }
  void write(const char* file, const std::string& text) const {
    int out = ::open((path + "/" + file).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    HL_CHECK(out >= 0 && ::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(out);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Root root;
  testing::FuzzInput input(data, size);
  for (const char* file : Root::kFiles) root.write(file, input.take_text());
  AvailableMemory memory = available_memory(root.path);
  HL_CHECK(memory.cgroup_version >= 0 && memory.cgroup_version <= 2);
  HL_CHECK((memory.cgroup_version == 0) == (memory.cgroup_limit_bytes == 0) || memory.cgroup_limit_bytes == 0);
  if (memory.cgroup_limit_bytes != 0) HL_CHECK_OP(memory.cgroup_room_bytes, <=, memory.cgroup_limit_bytes);
  if (memory.cgroup_limit_bytes != 0) HL_CHECK_OP(memory.bytes(), <=, memory.cgroup_limit_bytes);
  return 0;
}
