#include "base/plain_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace hinterland {
namespace {

class PlainFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hinterland-plain-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text) const {
    std::string path = folder_ + "/file";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string folder_;
};

TEST_F(PlainFileTest, ReadsAllOfAFile) {
  std::string text(200'000, 'x');
  EXPECT_EQ(read_plain_file(write(text), "the file", 200'000), text);
  EXPECT_EQ(read_plain_file(write(""), "the file", 1), "");
  std::filesystem::create_symlink("file", folder_ + "/link");
  EXPECT_EQ(read_plain_file(folder_ + "/link", "the file", 1), "");
  EXPECT_GT(read_plain_file("/proc/self/status", "the file", 100'000)->size(), 0u) << "a size of 0 is not believed";
}

TEST_F(PlainFileTest, RefusesOneThatIsTooLong) {
  std::string path = write("12345");
  EXPECT_TRUE(read_plain_file(path, "the file", 5));
  Result<std::string> text = read_plain_file(path, "the file", 4);
  ASSERT_FALSE(text);
  EXPECT_NE(std::strstr(text.error().what(), "5 bytes"), nullptr) << text.error().what();
  EXPECT_STRNE(text.error().next_step(), "");
  EXPECT_FALSE(read_plain_file("/proc/self/status", "the file", 10)) << "nor is one that is longer than it says";
}

// Each of them would be waited for, or never end.
TEST_F(PlainFileTest, RefusesWhatIsNoFileAndWaitsForNothing) {
  std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::string socket_path = folder_ + "/socket";
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path.c_str());
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (const std::string& path :
       {fifo, socket_path, std::string("/dev/zero"), std::string("/dev/random"), std::string("/dev/tty"), folder_}) {
    Result<int> file = open_plain_file(path, "the file");
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code(), 0);
    EXPECT_NE(std::strstr(file.error().what(), "not a regular file"), nullptr) << file.error().what();
    EXPECT_STRNE(file.error().next_step(), "");
  }
  close(listener);
  EXPECT_EQ(open_plain_file(folder_ + "/none", "the file").error().code(), ENOENT);
}

}  // namespace
}  // namespace hinterland
