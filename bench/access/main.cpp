// access: an ordinary program that goes through memory in one pattern and says how long an access took. It knows
// nothing of far memory; it is run natively, under `hinterland run`, and under Linux swap, and the figures are
// compared.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <stdexcept>

#include "access/memory.hpp"
#include "access/patterns.hpp"
#include "base/json.hpp"
#include "command/options.hpp"

namespace {

using namespace access_bench;

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

constexpr const char* kHold = "hold";

const std::map<std::string, Content> kContents = {
    {"random", Content::random}, {"half", Content::half}, {"zero", Content::zero}};

std::map<std::string, Pattern> patterns_by_name() {
  std::map<std::string, Pattern> result;
  for (const PatternName& known : pattern_names()) result[known.name] = known.pattern;
  return result;
}

void declare(bench::Options& options, Work& work, std::string& pattern, std::string& content) {
  std::vector<std::string> names = {kHold}, contents;
  std::string about = "one of:";
  for (const PatternName& known : pattern_names()) {
    names.emplace_back(known.name);
    about += std::string("\n") + known.name + ": " + known.about;
  }
  about += std::string("\n") + kHold + ": fill it, say so, and do nothing until standard input ends; not timed";
  for (const auto& [name, value] : kContents) contents.push_back(name);
  options.choice("pattern", pattern, names, about);
  options.size("--size", work.size_bytes, "memory of all threads together", "1G");
  options.number("--accesses", work.accesses, "of all threads together; 0: one a page", 0, UINT64_MAX);
  options.number("--threads", work.threads, "each on its own part", 1, 1024);
  options.size("--piece", work.piece_bytes, "of read-call and write-call, and a block of temporary", "8M");
  options.choice("--content", content, contents, "random, half (half of each page compresses) or zero");
  options.number("--seed", work.seed, "of the random order and content", 0, UINT64_MAX);
  options.text("--folder", work.folder, "of the file that read-call and write-call use; not on tmpfs");
  options.flag("--pipe", work.through_pipe, "read-call and write-call: through a pipe, not through a file");
  options.flag("--hints", work.hints, "sequential and random: a hint (hinterland/hint.h) before each access");
  options.number(
      "--unwritable", work.unwritable_pages,
      "sequential-read and random-read: every second piece of so many pages may not be written; 0: all may", 0,
      UINT32_MAX);
  options.flag("--malloc", work.from_malloc, "memory from malloc, not from mmap");
}

std::string fault_of(const Work& work) {
  if (work.size_bytes == 0 || work.size_bytes % (kPageBytes * work.threads) != 0)
    return "--size must be a multiple of 4 KiB for each thread";
  if (work.piece_bytes == 0 || work.piece_bytes % kPageBytes != 0) return "--piece must be a multiple of 4 KiB";
  bool takes_hints = work.pattern == Pattern::sequential_read || work.pattern == Pattern::sequential_write ||
                     work.pattern == Pattern::random_read || work.pattern == Pattern::random_write;
  if (work.hints && !takes_hints) return "--hints goes with the sequential and the random patterns";
  if (work.unwritable_pages != 0 &&
      ((work.pattern != Pattern::sequential_read && work.pattern != Pattern::random_read) || work.from_malloc))
    return "--unwritable goes with sequential-read and random-read, of memory from mmap";
  if (work.accesses % work.threads != 0) return "--accesses must be a multiple of --threads";
  return "";
}

void print(const Work& work, const std::string& pattern, const std::string& content, const Done& done,
           std::size_t resident_bytes) {
  hinterland::Json document{
      {"schema_version", 1},
      {"program", "access"},
      {"pattern", pattern},
      {"size_bytes", work.size_bytes},
      {"threads", work.threads},
      {"piece_bytes", work.piece_bytes},
      {"content", content},
      {"seed", work.seed},
      {"hints", work.hints},
      {"unwritable_pages", work.unwritable_pages},
      {"memory_from", work.from_malloc ? "malloc" : "mmap"},
      {"accesses", done.accesses},
      {"seconds", done.seconds},
      {"ns_per_access", done.seconds * 1e9 / static_cast<double>(done.accesses)},
      {"checksum", done.checksum},
      {"resident_anonymous_bytes", resident_bytes},
  };
  std::puts(document.dump(1).c_str());
}

// For figures of a program that does nothing: one line once it does nothing, and a look at every page at the end.
void hold(const Work& work, Memory& memory) {
  memory.fill(work.content, work.seed);
  std::puts(R"({"program": "access", "pattern": "hold", "filled": true})");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  for (std::size_t page = 0; page < memory.pages(); ++page)
    if (*memory.word(page) != page)
      throw std::runtime_error("page " + std::to_string(page) + " does not hold what was written to it");
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options("access", "Goes through memory in one pattern, and prints as JSON how long an access took");
  Work work{.size_bytes = std::size_t{1} << 30, .piece_bytes = 8u << 20, .folder = "/var/tmp"};
  std::string pattern, content = "half";
  declare(options, work, pattern, content);
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  if (pattern != kHold) work.pattern = patterns_by_name().at(pattern);
  work.content = kContents.at(content);
  if (std::string fault = fault_of(work); !fault.empty()) {
    std::fprintf(stderr, "access: %s\n", fault.c_str());
    return 2;
  }
  if (kDebugBuild) {
    std::fprintf(stderr,
                 "access: this is a debug build, and its figures mean nothing. Build with: make bench-build\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);  // how the thread behind a pipe learns that it is done
  try {
    Memory memory(work.size_bytes, work.from_malloc);
    if (pattern == kHold) {
      hold(work, memory);
      return 0;
    }
    Done done = perform(work, memory);
    print(work, pattern, content, done, resident_anonymous_bytes());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "access: %s\n", failure.what());
    return 1;
  }
  return 0;
}
