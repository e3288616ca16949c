#include "trace/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hinterland::trace {

OutputFile::~OutputFile() { close(descriptor_); }

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty() && error() == 0) {
    ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      error_.store(written < 0 ? errno : ENOSPC, std::memory_order_relaxed);
    else
      bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

OutputThread::~OutputThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  came_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void OutputThread::put(std::shared_ptr<OutputFile> file, std::string bytes) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  written_.wait(lock, [&] { return waiting_bytes_ < kWaitingMax; });
  waiting_bytes_ += bytes.size();
  waiting_.push_back({std::move(file), std::move(bytes)});
  came_.notify_one();
}

void OutputThread::drain() {
  std::unique_lock lock(mutex_);
  written_.wait(lock, [&] { return waiting_.empty(); });
}

void OutputThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    came_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Waiting& first = waiting_.front();  // stays where it is while others come behind it
    lock.unlock();
    first.file->write(first.bytes);
    lock.lock();
    waiting_bytes_ -= first.bytes.size();
    waiting_.pop_front();
    written_.notify_all();
  }
}

}  // namespace hinterland::trace
