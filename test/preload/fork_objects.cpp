// Far objects and fork: threads use objects while others fork, and each child finds all of them, and goes on with its
// own. Natively objects are ordinary memory, which is what they have to look like.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <hinterland/object.hpp>
#include <thread>
#include <vector>

namespace {

struct item {
  std::uint64_t words[8];
};

constexpr std::uint64_t kItems = 300'000;  // more than objects may have of the test's 32 MiB
std::vector<hl::far::ptr<item>> g_items;
std::atomic<bool> g_done{false};

bool all_there(std::uint64_t offset) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kItems; ++i) wrong += g_items[i].read().words[i % 8] != i + offset;
  return wrong == 0;
}

void use_objects(std::uint64_t at) {
  std::vector<hl::far::ptr<item>> own;
  for (std::uint64_t step = 0; !g_done; ++step, at = (at * 7 + 13) % kItems) {
    own.push_back(hl::far::make<item>(g_items[at].read()));
    if (own.size() == 100) own.clear();
  }
}

int in_child() {
  alarm(60);  // who waits for a thread that is not there shows as a death by signal
  if (!all_there(0)) return 1;
  for (std::uint64_t i = 0; i < kItems; ++i)
    g_items[i].write({{i + 5, i + 5, i + 5, i + 5, i + 5, i + 5, i + 5, i + 5}});
  std::thread another([] { static_cast<void>(g_items[0].read()); });
  another.join();
  return all_there(5) ? 0 : 2;
}

}  // namespace

int main(int, char** arguments) {
  for (std::uint64_t i = 0; i < kItems; ++i) g_items.push_back(hl::far::make<item>(item{{i, i, i, i, i, i, i, i}}));
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread) threads.emplace_back(use_objects, thread);
  int failed = 0;
  for (int i = 0; i < std::atoi(arguments[1]); ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(in_child());
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  g_done = true;
  for (auto& thread : threads) thread.join();
  std::printf("%d children failed, %s\n", failed, all_there(0) ? "all there" : "some are not there");
  return failed;
}
