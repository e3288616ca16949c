// What fork costs a program with much memory: the time that the parent spends in fork(), the time until the child
// runs, and until it has ended and was waited for; medians in milliseconds.
//
//     fork [--size MIB] [--rounds N]
//
// bench/fork/run starts it natively and under `hinterland run`.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::size_t option(int count, char** words, const char* name, std::size_t otherwise) {
  for (int i = 1; i + 1 < count; ++i)
    if (std::strcmp(words[i], name) == 0) return std::strtoull(words[i + 1], nullptr, 10);
  return otherwise;
}

}  // namespace

int main(int count, char** words) {
  std::size_t bytes = option(count, words, "--size", 1024) << 20, rounds = option(count, words, "--rounds", 7);
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED || rounds == 0) return 1;
  auto* memory = static_cast<char*>(mapped);
  for (std::size_t at = 0; at < bytes; at += 4096) *reinterpret_cast<std::size_t*>(memory + at) = at + 1;
  std::vector<double> parent, child, whole;
  for (std::size_t round = 0; round < rounds; ++round) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    double began = now_ms();
    pid_t process = fork();
    if (process == 0) {
      double here = now_ms();
      if (write(ends[1], &here, sizeof here) != sizeof here) _exit(1);
      _exit(*reinterpret_cast<std::size_t*>(memory) == 1 ? 0 : 1);
    }
    parent.push_back(now_ms() - began);
    double there = 0;
    int status = 0;
    if (process < 0 || read(ends[0], &there, sizeof there) != sizeof there) return 1;
    child.push_back(there - began);
    if (waitpid(process, &status, 0) != process || status != 0) return 1;
    whole.push_back(now_ms() - began);
    close(ends[0]);
    close(ends[1]);
  }
  std::printf("fork of %zu MiB, median of %zu: parent %.2f ms, child runs after %.2f ms, ended after %.2f ms\n",
              bytes >> 20, rounds, median(parent), median(child), median(whole));
}
