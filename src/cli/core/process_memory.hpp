// Reads another process's memory, far pages included, without ever waiting for ever.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace hinterland::cli {

class ProcessMemory {
 public:
  explicit ProcessMemory(pid_t pid);
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  // What is resident, or is the kernel's to bring: far pages are an I/O error here. Bytes read; stops at the first
  // that cannot be had.
  std::size_t read_resident(std::uint64_t address, void* to, std::size_t length) const;
  // Far pages as well: waits until the process's runtime has brought them. Bytes read; stops as above. When the
  // runtime does not answer for 10 s, only what is resident is read from then on: see gave_up().
  std::size_t read(std::uint64_t address, void* to, std::size_t length);
  bool gave_up() const { return gave_up_; }

  template <typename Value>
  bool read_value(std::uint64_t address, Value* value) const {
    return read_resident(address, value, sizeof *value) == sizeof *value;
  }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 20;
  struct Request {
    std::uint64_t address;
    std::uint64_t length;
  };
  bool start_reader();
  void stop_reader();
  [[noreturn]] void serve_requests(int requests) const;
  std::size_t ask_reader(std::uint64_t address, std::size_t length);

  pid_t pid_;
  int memory_ = -1;  // /proc/PID/mem
  // A child that makes the calls which may hang: such a call ends with its process only.
  pid_t reader_ = -1;
  int channel_ = -1;
  std::byte* buffer_ = nullptr;  // shared with the reader
  bool gave_up_ = false;
};

}  // namespace hinterland::cli
