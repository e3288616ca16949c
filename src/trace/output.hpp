// Files whose bytes are written by a thread of their own: whoever makes the bytes does not wait for the disk. A file
// system can keep a writer for a second, where its journal is being written; for that long a recorder would lose
// stacks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace hinterland::trace {

// Owns a descriptor, and closes it. The first write that fails is the last one.
class OutputFile {
 public:
  explicit OutputFile(int descriptor) : descriptor_(descriptor) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Blocks until all is written. One thread at a time.
  void write(std::string_view bytes);
  // 0, or the errno of the write that failed. Any thread.
  int error() const { return error_.load(std::memory_order_relaxed); }

 private:
  int descriptor_;
  std::atomic<int> error_{0};
};

// The thread, which starts with the first bytes.
class OutputThread {
 public:
  static constexpr std::size_t kWaitingMax = std::size_t{64} << 20;  // bytes

  OutputThread() = default;
  ~OutputThread();  // when all is written
  OutputThread(const OutputThread&) = delete;
  OutputThread& operator=(const OutputThread&) = delete;

  // Bytes of one file are written in the order of the calls. Blocks only while kWaitingMax bytes wait already.
  void put(std::shared_ptr<OutputFile> file, std::string bytes);
  // Blocks until what was put before is written, or has failed: see OutputFile::error().
  void drain();

 private:
  struct Waiting {
    std::shared_ptr<OutputFile> file;
    std::string bytes;
  };
  void run();

  std::mutex mutex_;  // guards all below
  std::condition_variable came_, written_;
  std::deque<Waiting> waiting_;  // the first is being written
  std::size_t waiting_bytes_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hinterland::trace
