#include "far/tcp/key_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace hinterland::far {
namespace {

class KeyFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hinterland-key-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    path_ = directory_ + "/key";
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(directory_.c_str());
  }
  void write(const std::string& contents, mode_t mode = 0600) {
    FILE* file = std::fopen(path_.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fwrite(contents.data(), 1, contents.size(), file);
    std::fclose(file);
    ::chmod(path_.c_str(), mode);
  }
  std::string complaint() {
    auto key = read_key_file(path_);
    EXPECT_FALSE(key);
    return key ? "" : key.error().what();
  }
  std::string directory_, path_;
};

TEST_F(KeyFile, ReadsAKey) {
  write("0123456789abcdef");
  auto key = read_key_file(path_);
  ASSERT_TRUE(key) << key.error().what();
  EXPECT_EQ(key->bytes().size(), 16u);
  EXPECT_EQ(std::memcmp(key->bytes().data(), "0123456789abcdef", 16), 0);
  SecretKey moved = std::move(*key);
  EXPECT_EQ(moved.bytes().size(), 16u);
  EXPECT_TRUE(key->empty()) << "a key that was moved away leaves nothing";  // NOLINT: looked at on purpose
}

TEST_F(KeyFile, LineEndsAtTheEndDoNotCount) {
  write("0123456789abcdef\r\n\n");
  auto key = read_key_file(path_);
  ASSERT_TRUE(key) << key.error().what();
  EXPECT_EQ(key->bytes().size(), 16u);
  write("0123456789abcde\n");
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too short: 15 bytes, at least 16 are needed");
}

TEST_F(KeyFile, TakesTheLongestAndNoLonger) {
  write(std::string(kKeyBytesMax, 'k') + "\n");
  EXPECT_TRUE(read_key_file(path_));
  write(std::string(kKeyBytesMax + 1, 'k'));
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
  write(std::string(1 << 20, 'k'));
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
}

TEST_F(KeyFile, NeverTakesTheBeginningOfALongFileForAKey) {
  // Line ends where the reading stops, and more behind them: found by the fuzzer.
  write("0123456789abcdef" + std::string(kKeyBytesMax, '\n') + "0123456789abcdef");
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
  write(std::string(kKeyBytesMax, 'k') + "\n\n\nand more");
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
}

TEST_F(KeyFile, RefusesWhatOthersCanUse) {
  for (mode_t mode : {0640, 0604, 0620, 0601, 0666}) {
    write("0123456789abcdef", mode);
    char text[8];
    std::snprintf(text, sizeof text, "%04o", mode);
    EXPECT_EQ(complaint(), "key file '" + path_ + "' can be used by others than its owner (mode " + text + ")");
  }
  EXPECT_EQ(std::string(read_key_file(path_).error().next_step()),
            "run: chmod 600 '" + path_ + "'; if others may have read it, make a new key");
}

TEST_F(KeyFile, RefusesWhatIsNotAFile) {
  auto missing = read_key_file(path_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ENOENT);
  EXPECT_EQ(std::string(missing.error().what()), "key file " + path_ + " cannot be read: No such file or directory");
  EXPECT_STRNE(missing.error().next_step(), "");
  write("");
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too short: 0 bytes, at least 16 are needed");
  auto folder = read_key_file(directory_);
  ASSERT_FALSE(folder);
  EXPECT_NE(std::string(folder.error().what()).find("not a regular file"), std::string::npos);
  EXPECT_STRNE(folder.error().next_step(), "");
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(complaint().find("not a regular file"), std::string::npos) << "and does not hang";
}

TEST_F(KeyFile, MessagesNeverHoldTheKey) {
  write("0123456789abcdef", 0644);
  auto key = read_key_file(path_);
  ASSERT_FALSE(key);
  EXPECT_EQ(std::string(key.error().what()).find("0123456789"), std::string::npos);
  EXPECT_EQ(std::string(key.error().next_step()).find("0123456789"), std::string::npos);
}

}  // namespace
}  // namespace hinterland::far
