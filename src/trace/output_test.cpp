#include "trace/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace hinterland::trace {
namespace {

// A pipe that nobody reads stands for a disk that lets writers wait.
class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    read_end_ = ends[0];
    file_ = std::make_shared<OutputFile>(ends[1]);
    signal(SIGPIPE, SIG_IGN);
  }
  ~OutputTest() override {
    if (read_end_ >= 0) close(read_end_);
  }

  // Until the file is closed.
  std::string read_all() {
    std::string all;
    std::array<char, 65536> part{};
    ssize_t length = 0;
    while ((length = read(read_end_, part.data(), part.size())) > 0)
      all.append(part.data(), static_cast<std::size_t>(length));
    return all;
  }

  int read_end_ = -1;
  std::shared_ptr<OutputFile> file_;
  OutputThread thread_;
};

TEST_F(OutputTest, WhoPutsDoesNotWaitForTheDisk) {
  std::string expected;
  for (int i = 0; i < 1000; ++i) {  // 4 MiB; a pipe holds 64 KiB
    std::string bytes(4096, static_cast<char>('a' + i % 26));
    expected += bytes;
    thread_.put(file_, std::move(bytes));
  }
  file_.reset();
  EXPECT_EQ(read_all(), expected);
}

TEST_F(OutputTest, WhatWaitsIsBounded) {
  constexpr std::size_t kPart = std::size_t{1} << 20, kAll = 2 * OutputThread::kWaitingMax;
  std::atomic<std::size_t> put{0};
  std::thread putting([&] {
    for (std::size_t i = 0; i < kAll / kPart; ++i) {
      thread_.put(file_, std::string(kPart, 'x'));
      put += kPart;
    }
    file_.reset();
  });
  std::size_t taken = 0;
  std::array<char, 65536> part{};
  for (ssize_t length = 1; length > 0; taken += static_cast<std::size_t>(length)) {
    EXPECT_LE(put.load(), taken + OutputThread::kWaitingMax + 2 * kPart);  // one more waits, and a pipe holds some
    length = read(read_end_, part.data(), part.size());
    ASSERT_GE(length, 0);
  }
  EXPECT_EQ(taken, kAll);
  putting.join();
}

TEST_F(OutputTest, AFailedWriteIsKept) {
  close(std::exchange(read_end_, -1));
  thread_.put(file_, "one");
  thread_.put(file_, "two");
  thread_.drain();
  EXPECT_EQ(file_->error(), EPIPE);
}

TEST_F(OutputTest, EndsWhenAllIsWritten) {
  {
    OutputThread ending;
    for (int i = 0; i < 100; ++i) ending.put(file_, std::string(100, 'x'));
  }
  file_.reset();
  EXPECT_EQ(read_all().size(), 10'000);
}

}  // namespace
}  // namespace hinterland::trace
