#include "access/other_end.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace access_bench {
namespace {

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

// Page `page` of a piece starts with this word.
std::uint64_t mark_of(std::size_t page) { return 0xF00D000000000000ull + page; }

std::size_t checked(ssize_t moved, const char* what) {
  if (moved < 0) fail(what);
  if (moved == 0) throw std::runtime_error(std::string(what) + ": nothing was moved");
  return static_cast<std::size_t>(moved);
}

// A file of one piece, without a name, read and written from its start again and again.
class FileEnd final : public OtherEnd {
 public:
  explicit FileEnd(const Work& work) : piece_bytes_(work.piece_bytes) {
    struct statfs where{};
    if (statfs(work.folder.c_str(), &where) != 0) fail(work.folder);
    if (where.f_type == TMPFS_MAGIC || where.f_type == RAMFS_MAGIC)
      throw std::runtime_error(work.folder + " is in memory (tmpfs), which would be bounded and swapped too: give " +
                               "--folder on a disk, or --through pipe");
    descriptor_ = open(work.folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ < 0) fail("a file in " + work.folder);
    alignas(64) std::byte page[kPageBytes];
    for (std::size_t at = 0; at < piece_bytes_; at += kPageBytes) {
      fill_page(page, mark_of(at / kPageBytes), work.content, work.seed);
      if (pwrite(descriptor_, page, kPageBytes, static_cast<off_t>(at)) != kPageBytes) fail("filling the file");
    }
  }
  ~FileEnd() override { close(descriptor_); }

  void read_into(std::byte* target, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;) {
      std::size_t within = at % piece_bytes_;
      at += checked(
          pread(descriptor_, target + at, std::min(piece_bytes_ - within, bytes - at), static_cast<off_t>(within)),
          "pread");
    }
  }
  void write_from(const std::byte* source, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;) {
      std::size_t within = at % piece_bytes_;
      at += checked(
          pwrite(descriptor_, source + at, std::min(piece_bytes_ - within, bytes - at), static_cast<off_t>(within)),
          "pwrite");
    }
    std::memcpy(&last_, source + (bytes - 1) / piece_bytes_ * piece_bytes_, sizeof last_);
    written_ = true;
  }
  std::uint64_t word_at(std::size_t offset) const override { return mark_of(offset % piece_bytes_ / kPageBytes); }
  void finish() override {
    std::uint64_t kept = 0;
    if (pread(descriptor_, &kept, sizeof kept, 0) != sizeof kept) fail("pread");
    if (written_ && kept != last_) throw std::runtime_error("the file does not hold what was written to it");
  }

 private:
  std::size_t piece_bytes_;
  int descriptor_;
  std::uint64_t last_ = 0;
  bool written_ = false;
};

// A pipe; a thread feeds or drains it with a buffer of its own stack.
class PipeEnd final : public OtherEnd {
 public:
  explicit PipeEnd(const Work& work) : piece_bytes_(work.piece_bytes), feeding_(work.pattern == Pattern::read_call) {
    if (pipe2(ends_, O_CLOEXEC) != 0) fail("pipe");
    fcntl(ends_[1], F_SETPIPE_SZ, 1 << 20);  // what an ordinary user may have; the default does as well
    thread_ = std::thread([this] { feeding_ ? feed() : drain(); });
  }
  ~PipeEnd() override {
    close(ends_[feeding_ ? 0 : 1]);
    if (thread_.joinable()) thread_.join();
    close(ends_[feeding_ ? 1 : 0]);
  }

  void read_into(std::byte* target, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;)
      at += checked(read(ends_[0], target + at, std::min(piece_bytes_ - at % piece_bytes_, bytes - at)), "read");
  }
  void write_from(const std::byte* source, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;)
      at += checked(write(ends_[1], source + at, std::min(piece_bytes_ - at % piece_bytes_, bytes - at)), "write");
    written_ += bytes;
  }
  std::uint64_t word_at(std::size_t offset) const override { return mark_of(offset / kPageBytes % kFedPages); }
  void finish() override {
    if (feeding_) return;
    close(ends_[1]);
    thread_.join();
    ends_[1] = -1;
    if (drained_ != written_) throw std::runtime_error("the pipe did not give all that was written to it");
  }

 private:
  static constexpr std::size_t kFedPages = 16;

  void feed() {
    alignas(64) std::byte buffer[kFedPages * kPageBytes];
    for (std::size_t page = 0; page < kFedPages; ++page)
      fill_page(buffer + page * kPageBytes, mark_of(page), Content::half, 1);
    for (std::size_t at = 0;;) {  // until the reader closes its end
      ssize_t put = write(ends_[1], buffer + at, sizeof buffer - at);
      if (put < 0) return;
      at = (at + static_cast<std::size_t>(put)) % sizeof buffer;
    }
  }
  void drain() {
    alignas(64) std::byte buffer[kFedPages * kPageBytes];
    for (ssize_t got; (got = read(ends_[0], buffer, sizeof buffer)) > 0;) drained_ += static_cast<std::size_t>(got);
  }

  std::size_t piece_bytes_;
  bool feeding_;
  int ends_[2] = {-1, -1};
  std::size_t written_ = 0, drained_ = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<OtherEnd> open_other_end(const Work& work) {
  if (work.through_pipe) return std::make_unique<PipeEnd>(work);
  return std::make_unique<FileEnd>(work);
}

}  // namespace access_bench
