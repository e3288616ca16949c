#include "far/tcp/key_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
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
  write("0123456789abcdef0123456789ABCDEF");
  auto key = read_key_file(path_);
  ASSERT_TRUE(key) << key.error().what();
  EXPECT_EQ(key->bytes().size(), 32u);
  EXPECT_EQ(std::memcmp(key->bytes().data(), "0123456789abcdef0123456789ABCDEF", 32), 0);
  SecretKey moved = std::move(*key);
  EXPECT_EQ(moved.bytes().size(), 32u);
  EXPECT_TRUE(key->empty()) << "a key that was moved away leaves nothing";  // NOLINT: looked at on purpose
}

TEST_F(KeyFile, LineEndsAtTheEndDoNotCount) {
  write("0123456789abcdef0123456789ABCDEF\r\n\n");
  auto key = read_key_file(path_);
  ASSERT_TRUE(key) << key.error().what();
  EXPECT_EQ(key->bytes().size(), 32u);
  write("0123456789abcdef0123456789ABCDE\n");
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too short: 31 bytes, at least 32 are needed");
}

TEST_F(KeyFile, TakesTheLongestAndNoLonger) {
  std::string longest;
  while (longest.size() < kKeyBytesMax) longest += "0123456789abcdef";
  write(longest + "\n");
  EXPECT_TRUE(read_key_file(path_));
  write(std::string(kKeyBytesMax + 1, 'k'));
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
  write(std::string(1 << 20, 'k'));
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
}

TEST_F(KeyFile, NeverTakesTheBeginningOfALongFileForAKey) {
  // Line ends where the reading stops, and more behind them: found by the fuzzer.
  write("0123456789abcdef0123456789ABCDEF" + std::string(kKeyBytesMax, '\n') + "0123456789abcdef0123456789ABCDEF");
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
  write(std::string(kKeyBytesMax, 'k') + "\n\n\nand more");
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too long: more than 4096 bytes");
}

TEST_F(KeyFile, RefusesWhatOthersCanUse) {
  for (mode_t mode : {0640, 0604, 0620, 0601, 0666}) {
    write("0123456789abcdef0123456789ABCDEF", mode);
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
  EXPECT_EQ(complaint(), "key file '" + path_ + "' is too short: 0 bytes, at least 32 are needed");
  auto folder = read_key_file(directory_);
  ASSERT_FALSE(folder);
  EXPECT_NE(std::string(folder.error().what()).find("not a regular file"), std::string::npos);
  EXPECT_STRNE(folder.error().next_step(), "");
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(complaint().find("not a regular file"), std::string::npos) << "and does not hang";
}

TEST_F(KeyFile, RefusesWhatIsWeakAndSaysHowToMakeAnother) {
  for (const std::string& weak : {std::string(64, 'k'), std::string("passwordpasswordpasswordpassword"),
                                  std::string("0102030405060102030405060102030405060102")}) {
    write(weak);
    auto key = read_key_file(path_);
    ASSERT_FALSE(key) << weak;
    EXPECT_EQ(std::string(key.error().what()),
              "the key in '" + path_ + "' is weak: it has fewer than 12 different bytes");
    EXPECT_NE(std::string(key.error().next_step()).find("hinterland serve --make-key"), std::string::npos);
  }
}

TEST_F(KeyFile, MakesGoodOnesAndOverwritesNothing) {
  std::set<std::string> all;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(make_key_file(path_));
    struct stat status;
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    EXPECT_EQ(status.st_size, 32);
    auto key = read_key_file(path_);
    ASSERT_TRUE(key) << key.error().what();
    ASSERT_EQ(key->bytes().size(), 32u) << "no line end at its end";
    all.emplace(key->bytes().begin(), key->bytes().end());
    if (i + 1 < 300) ::unlink(path_.c_str());
  }
  EXPECT_EQ(all.size(), 300u);
  Status again = make_key_file(path_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), EEXIST);
  auto still = read_key_file(path_);
  ASSERT_TRUE(still);
  EXPECT_TRUE(all.contains(std::string(still->bytes().begin(), still->bytes().end())));
}

TEST_F(KeyFile, KeysLieWhereNoCoreFileLooks) {
  write("0123456789abcdef0123456789ABCDEF");
  auto key = read_key_file(path_);
  ASSERT_TRUE(key);
  SecretKey moved = std::move(*key);
  std::ifstream maps("/proc/self/smaps");
  char wanted[32];
  std::snprintf(wanted, sizeof wanted, "%lx-", reinterpret_cast<unsigned long>(moved.bytes().data()));
  bool here = false, left_out = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(':') > line.find('-')) here = line.starts_with(wanted);
    if (here && line.starts_with("VmFlags:")) left_out = line.find(" dd") != std::string::npos;
  }
  EXPECT_TRUE(left_out) << "a page of its own, which is not dumped";
}

TEST_F(KeyFile, MessagesNeverHoldTheKey) {
  write("0123456789abcdef0123456789ABCDEF", 0644);
  auto key = read_key_file(path_);
  ASSERT_FALSE(key);
  EXPECT_EQ(std::string(key.error().what()).find("0123456789"), std::string::npos);
  EXPECT_EQ(std::string(key.error().next_step()).find("0123456789"), std::string::npos);
}

}  // namespace
}  // namespace hinterland::far
