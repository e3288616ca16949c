// A program that does what it is told, one command a line on standard input, and answers each with one line. It knows
// what every byte of its block must be, so that it tells right data from wrong, and zeros from everything else.
//
// Its own state is static and on the stack, which far memory leaves alone: it works while the block does not.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPagesMax = std::size_t{1} << 20;

char* g_block = nullptr;
std::size_t g_pages = 0;
unsigned char g_generations[kPagesMax];  // how often each page was written

void answer(const char* format, auto... values) {
  char line[256];
  int used = std::snprintf(line, sizeof line - 1, format, values...);
  line[used++] = '\n';
  if (write(1, line, static_cast<std::size_t>(used)) != used) _exit(99);
}

// Never 0, different in every page and generation, and in every byte of a page.
std::uint64_t word_of(std::size_t page, unsigned generation, std::size_t word) {
  std::uint64_t value = (page * 512 + word + 1) * 0x9e3779b97f4a7c15 + generation;
  value ^= value >> 31;
  return (value * 0xbf58476d1ce4e5b9) | 1;
}

std::uint64_t* page_at(std::size_t page) { return reinterpret_cast<std::uint64_t*>(g_block + page * kPage); }

void write_page(std::size_t page) {
  unsigned generation = ++g_generations[page];
  for (std::size_t i = 0; i < kPage / 8; ++i) page_at(page)[i] = word_of(page, generation, i);
}

bool is_right(std::size_t page) {
  for (std::size_t i = 0; i < kPage / 8; ++i)
    if (page_at(page)[i] != word_of(page, g_generations[page], i)) return false;
  return true;
}

void fill(std::size_t pages) {
  if (pages > kPagesMax) return answer("too many");
  void* block = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return answer("errno %d", errno);
  g_block = static_cast<char*>(block);
  g_pages = pages;
  for (std::size_t page = 0; page < pages; ++page) write_page(page);
  answer("filled %zu", pages);
}

std::size_t count_wrong(std::size_t first, std::size_t count) {
  std::size_t wrong = 0;
  for (std::size_t page = first; page < first + count; ++page) wrong += is_right(page) ? 0 : 1;
  return wrong;
}

void check(std::size_t first, std::size_t count) {
  for (std::size_t page = first; page < first + count; ++page)
    if (!is_right(page)) return answer("wrong page %zu first word %llx", page, (unsigned long long)page_at(page)[0]);
  answer("right %zu", count);
}

// --- SIGBUS of its own
// ------------------------------------------------------------------------------------------------

sigjmp_buf g_back;
void* volatile g_fault_address;

void on_bus(int, siginfo_t* info, void*) {
  g_fault_address = info->si_addr;
  siglongjmp(g_back, 1);
}

void catch_each(std::size_t first, std::size_t count) {
  struct sigaction action{}, before{};
  action.sa_sigaction = on_bus;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &before);
  volatile std::size_t caught = 0, right = 0, wrong = 0, elsewhere = 0;  // kept over siglongjmp()
  volatile std::size_t next = first;
  while (next < first + count) {
    std::size_t page = next;
    next = page + 1;
    if (sigsetjmp(g_back, 1) == 0) {
      if (is_right(page))
        right = right + 1;
      else
        wrong = wrong + 1;
      continue;
    }
    caught = caught + 1;
    if ((reinterpret_cast<std::uintptr_t>(g_fault_address) & ~(kPage - 1)) !=
        reinterpret_cast<std::uintptr_t>(page_at(next - 1)))
      elsewhere = elsewhere + 1;
  }
  sigaction(SIGBUS, &before, nullptr);
  answer("caught %zu right %zu wrong %zu elsewhere %zu", +caught, +right, +wrong, +elsewhere);
}

// A page in a system call: an error, never a death. "gave -1 14" is EFAULT.
void system_call(std::size_t page) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return answer("errno %d", errno);
  errno = 0;
  long gave = write(pipe_ends[1], page_at(page), kPage);
  answer("gave %ld %d", gave, errno);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

// --- other things that programs do
// ------------------------------------------------------------------------------------

void end(const char* how) {
  if (std::strcmp(how, "exit") == 0) std::exit(5);
  if (std::strcmp(how, "_exit") == 0) _exit(6);
  if (std::strcmp(how, "quick_exit") == 0) quick_exit(7);
  if (std::strcmp(how, "abort") == 0) std::abort();
  if (std::strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (std::strcmp(how, "segv") == 0) *static_cast<volatile char*>(nullptr) = 1;
  if (std::strcmp(how, "term") == 0) raise(SIGTERM);
  answer("no such end");
}

// Children that verify and write, while the parent writes, too. Each ends as `how` says.
void fork_children(std::size_t children, const char* how) {
  std::size_t bad = 0;
  for (std::size_t child = 0; child < children; ++child) {
    pid_t pid = fork();
    if (pid < 0) return answer("errno %d", errno);
    if (pid == 0) {
      if (count_wrong(0, g_pages) != 0) _exit(1);
      for (std::size_t page = child % 2; page < g_pages; page += 2) write_page(page);
      if (count_wrong(0, g_pages) != 0) _exit(1);
      if (std::strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
      _exit(0);
    }
    for (std::size_t page = 0; page < g_pages; page += 3) write_page(page);
    int status = 0;
    waitpid(pid, &status, 0);
    bool well = std::strcmp(how, "kill") == 0 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0;
    bad += well ? 0 : 1;
  }
  answer("children %zu bad %zu", children, bad);
}

// One child that touches nothing of the block.
void fork_idle_child() {
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  int status = 0;
  waitpid(pid, &status, 0);
  answer("child status %d", status);
}

// The parent ends, and its child goes on with the commands.
void leave_a_child() {
  if (fork() != 0) std::exit(5);
  answer("child right %d", count_wrong(0, g_pages) == 0);
}

void close_all(const char* how) {
  int last = static_cast<int>(sysconf(_SC_OPEN_MAX));
  if (last > 65535 || last < 0) last = 65535;
  int closed = 0, looked_open = 0;
  if (std::strcmp(how, "close") == 0)
    for (int fd = 3; fd <= last; ++fd) closed += close(fd) == 0 ? 1 : 0;
  if (std::strcmp(how, "close_range") == 0) close_range(3, ~0u, 0);
  if (std::strcmp(how, "closefrom") == 0) closefrom(3);
  if (std::strcmp(how, "fclose") == 0)
    for (int fd = 3; fd <= last; ++fd)
      if (FILE* file = fdopen(fd, "r"); file != nullptr) std::fclose(file);
  for (int fd = 3; fd <= last; ++fd) looked_open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  answer("closed %d open %d", closed, looked_open);
}

void recycle(std::size_t mebibytes, std::size_t rounds) {
  std::size_t wrong = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::size_t bytes = mebibytes << 20;
    auto* block = static_cast<unsigned char*>(std::malloc(bytes));
    int value = static_cast<int>(round % 255 + 1);
    std::memset(block, value, bytes);
    for (std::size_t at = 0; at < bytes; at += 1021) wrong += block[at] == value ? 0 : 1;
    std::free(block);
  }
  answer("recycled wrong %zu", wrong);
}

// Threads that allocate, fill, verify and free until `mebibytes` are held by all together.
void hog(std::size_t threads, std::size_t mebibytes) {
  std::atomic<std::size_t> wrong{0};
  auto work = [&](std::size_t number) {
    constexpr std::size_t kPiece = 256 << 10;
    std::vector<unsigned char*> pieces;
    for (std::size_t i = 0; i < (mebibytes << 20) / kPiece / threads; ++i) {
      pieces.push_back(static_cast<unsigned char*>(std::malloc(kPiece)));
      std::memset(pieces.back(), static_cast<int>((number * 31 + i) % 255 + 1), kPiece);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (std::size_t at = 0; at < kPiece; at += 4096) wrong += pieces[i][at] == (number * 31 + i) % 255 + 1 ? 0 : 1;
      std::free(pieces[i]);
    }
  };
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) all.emplace_back(work, i);
  for (std::thread& thread : all) thread.join();
  answer("hogged wrong %zu", wrong.load());
}

// --- trouble
// ---------------------------------------------------------------------------------------------------------------

std::atomic<bool> g_stormy;
std::atomic<std::size_t> g_storm_threads, g_storm_accesses;

// Threads that touch pages at random, half of them by writing what is there already: the contents stay right.
void storm(std::size_t threads) {
  g_stormy = true;
  for (std::size_t number = 0; number < threads; ++number) {
    ++g_storm_threads;
    std::thread([number] {
      std::uint64_t state = number * 0x9e3779b97f4a7c15 + 1;
      while (g_stormy) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::atomic_ref word(*page_at((state >> 33) % g_pages));
        if (std::uint64_t value = word.load(std::memory_order_relaxed); (state >> 32) % 2 == 0)
          word.compare_exchange_strong(value, value, std::memory_order_relaxed);
        ++g_storm_accesses;
      }
      --g_storm_threads;
    }).detach();
  }
  answer("storm %zu", threads);
}

void calm() {
  g_stormy = false;
  while (g_storm_threads != 0) usleep(1000);
  answer("calm %zu", g_storm_accesses.load());
}

// Opens descriptors until there are no more; "hoard 0" closes them again.
void hoard(std::size_t wanted) {
  static std::vector<int> held;
  if (wanted == 0) {
    for (int fd : held) close(fd);
    held.clear();
    return answer("hoarded 0 errno 0");
  }
  held.reserve(1 << 16);
  int fd = 0;
  while (held.size() < held.capacity() && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) held.push_back(fd);
  answer("hoarded %zu errno %d", held.size(), fd < 0 ? errno : 0);
}

// Cuts a mapping into pieces of one page, until the kernel allows no more; and takes it away again.
void cut_up(std::size_t pages) {
  void* block = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return answer("errno %d", errno);
  std::size_t cuts = 0;
  int error = 0;
  for (std::size_t page = 1; page < pages && error == 0; page += 2, ++cuts)
    if (mprotect(static_cast<char*>(block) + page * kPage, kPage, PROT_READ) != 0) error = errno;
  std::size_t wrong = count_wrong(0, g_pages);
  for (std::size_t page = 0; page < g_pages; ++page) write_page(page);
  wrong += count_wrong(0, g_pages);
  int unmapped = munmap(block, pages * kPage);
  answer("cut %zu errno %d wrong %zu unmapped %d", cuts, error, wrong, unmapped);
}

void obey(const char* line) {
  char verb[32] = "", word[32] = "";
  std::size_t a = 0, b = 0;
  std::sscanf(line, "%31s", verb);
  std::sscanf(line, "%*s %zu %zu", &a, &b);
  std::sscanf(line, "%*s %31s", word);
  auto is = [&](const char* name) { return std::strcmp(verb, name) == 0; };
  if (is("fill")) return fill(a);
  if (is("check")) return check(a, b);
  if (is("catch")) return catch_each(a, b);
  if (is("call")) return system_call(a);
  if (is("end")) return end(word);
  if (is("child")) return fork_idle_child();
  if (is("leave")) return leave_a_child();
  if (is("close")) return close_all(word);
  if (is("storm")) return storm(a);
  if (is("calm")) return calm();
  if (is("hoard")) return hoard(a);
  if (is("cut")) return cut_up(a);
  if (is("recycle")) return recycle(a, b);
  if (is("hog")) return hog(a, b);
  if (is("forks")) {
    std::sscanf(line, "%*s %*s %31s", word);
    return fork_children(a, word);
  }
  if (is("rewrite")) {
    for (std::size_t page = a; page < a + b; ++page) write_page(page);
    return answer("rewritten %zu", b);
  }
  if (is("drop")) {  // part of the block, by MADV_DONTNEED: must read as zeros, and be usable
    madvise(page_at(a), b * kPage, MADV_DONTNEED);
    std::size_t wrong = 0;
    for (std::size_t page = a; page < a + b; ++page) wrong += page_at(page)[0] == 0 ? 0 : 1;
    for (std::size_t page = a; page < a + b; ++page) write_page(page);
    return answer("dropped wrong %zu", wrong + count_wrong(a, b));
  }
  if (is("give")) return answer(munmap(page_at(a), b * kPage) == 0 ? "given back" : "errno");
  if (is("unmap")) {
    munmap(g_block, g_pages * kPage);
    return answer("unmapped");
  }
  if (is("exec")) {
    char self[] = "/proc/self/exe";
    char path[256] = "";
    execl("/no/such/program", "it", static_cast<char*>(nullptr));  // comes back, and nothing is lost
    if (count_wrong(0, g_pages) != 0) return answer("wrong after an exec that failed");
    if (readlink(self, path, sizeof path - 1) > 0) execl(path, path, static_cast<char*>(nullptr));
  }
  answer("no such command");
}

}  // namespace

int main() {
  static char line[256];
  std::size_t used = 0;
  answer("ready");
  for (char c; read(0, &c, 1) == 1;) {
    if (c != '\n') {
      if (used < sizeof line - 1) line[used++] = c;
      continue;
    }
    line[used] = '\0';
    used = 0;
    obey(line);
  }
  return 0;
}
