// What guards have to get right: blocks of all sizes that code without guards uses as well (libc, the C++ library,
// the kernel), values of all types, threads, signals, longjmp, exceptions and fork. Some 40 MiB; prints digests.
#include <emmintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using u64 = std::uint64_t;

u64 next(u64& state) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

// --- values of all types
struct __attribute__((packed)) Packed {
  char letter;
  u64 odd;
  std::uint16_t small;
};
struct Values {
  std::int8_t i8;
  std::uint16_t u16;
  std::int32_t i32;
  u64 u;
  float f;
  double d;
  bool yes;
  unsigned bits : 5, more : 11;
  __int128 wide;
  long double extended;
  __m128i vector;
  Packed packed;
  void* self;
  char text[24];
};

__attribute__((noinline)) void fill(Values* v, u64 i) {
  v->i8 = static_cast<std::int8_t>(i);
  v->u16 = static_cast<std::uint16_t>(i * 3);
  v->i32 = -static_cast<std::int32_t>(i);
  v->u = i * 0x9e3779b97f4a7c15;
  v->f = static_cast<float>(i) * 0.5f;
  v->d = static_cast<double>(i) * 0.25;
  v->yes = i % 3 == 0;
  v->bits = i % 32;
  v->more = i % 2048;
  v->wide = static_cast<__int128>(i) << 70 | i;
  v->extended = static_cast<long double>(i) / 3;
  v->vector = _mm_set1_epi64x(static_cast<long long>(i));
  v->packed = {static_cast<char>(i), ~i, static_cast<std::uint16_t>(i)};
  v->self = v;
  std::memset(v->text, static_cast<int>(i % 256), sizeof v->text);
}

__attribute__((noinline)) u64 digest(const Values* v) {
  u64 sum = static_cast<u64>(v->i8) + v->u16 + static_cast<u64>(v->i32) + v->u + v->bits * 7u + v->more;
  sum = sum * 31 + static_cast<u64>(v->f * 2) + static_cast<u64>(v->d * 4) + v->yes;
  sum = sum * 31 + static_cast<u64>(v->wide >> 70) + static_cast<u64>(v->extended * 3 + 0.5L);
  sum = sum * 31 + static_cast<u64>(_mm_cvtsi128_si64(_mm_add_epi64(v->vector, v->vector)));
  sum = sum * 31 + static_cast<unsigned char>(v->packed.letter) + v->packed.odd + v->packed.small;
  for (char c : v->text) sum = sum * 3 + static_cast<unsigned char>(c);
  return sum + (v->self == v);
}

u64 values() {
  constexpr u64 kCount = 60'000;
  std::vector<Values*> all;
  for (u64 i = 0; i < kCount; ++i) {
    all.push_back(static_cast<Values*>(std::malloc(sizeof(Values))));
    fill(all.back(), i);
  }
  u64 sum = 0;
  for (u64 i = 0; i < kCount; i += 2) {  // struct copies
    *all[i] = *all[i + 1];
    all[i]->self = all[i];
  }
  for (u64 i = 0; i < kCount; ++i) sum = sum * 7 + digest(all[i]);
  for (Values* v : all) std::free(v);
  return sum;
}

// --- blocks that libc and the kernel use
int by_text(const void* a, const void* b) {
  return std::strcmp(*static_cast<char* const*>(a), *static_cast<char* const*>(b));
}

u64 text() {
  constexpr std::size_t kCount = 40'000;
  char** all = static_cast<char**>(std::malloc(kCount * sizeof *all));
  u64 state = 3, sum = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t bytes = 20 + next(state) % 200;
    all[i] = static_cast<char*>(std::calloc(1, bytes));
    std::snprintf(all[i], bytes, "%llx and more", static_cast<unsigned long long>(next(state)));
    if (i % 5 == 0) all[i] = static_cast<char*>(std::realloc(all[i], bytes * (1 + i % 30)));  // some leave the window
    if (i % 7 == 0) {
      char* copy = strdup(all[i]);
      std::free(all[i]);
      all[i] = copy;
    }
  }
  std::qsort(all, kCount, sizeof *all, by_text);
  int ends[2];
  if (pipe(ends) != 0) return 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    for (const char* c = all[i]; *c != 0; ++c) sum = sum * 31 + static_cast<unsigned char>(*c);
    const std::size_t length = std::strlen(all[i]);
    sum += std::strcmp(all[i], "m") < 0;
    if (i + 1 < kCount) {
      sum += std::strcmp(all[i], all[i + 1]) > 0 ? 7 : std::strncmp(all[i], all[i + 1], 3) == 0 ? 3 : 1;
      sum += std::memcmp(all[i], all[i + 1], length < 5 ? length : 5) == 0;
    }
    if (i % 100 == 0 && (write(ends[1], all[i], length) != static_cast<ssize_t>(length) ||
                         read(ends[0], all[i], length) != static_cast<ssize_t>(length)))
      sum += 1;
    std::memmove(all[i] + 1, all[i], length);
    sum += static_cast<unsigned char>(all[i][length]);
    std::free(all[i]);
  }
  close(ends[0]);
  close(ends[1]);
  std::free(all);
  return sum;
}

// --- the C++ library, whose compiled part has no guards
u64 containers() {
  std::map<u64, std::string> map;
  std::set<std::string> set;
  u64 state = 9, sum = 0;
  for (int i = 0; i < 30'000; ++i) {
    const u64 key = next(state) % 50'000;
    map[key] += "a string that is longer than what fits in itself: " + std::to_string(key);
    if (i % 3 == 0) map.erase(next(state) % 50'000);
    set.insert(std::to_string(next(state) % 5000) + " is in the set of strings");
  }
  for (const auto& [key, string] : map)
    sum = sum * 31 + key + string.size() + static_cast<unsigned char>(string.back());
  for (const std::string& string : set) sum = sum * 31 + static_cast<unsigned char>(string[2]);
  return sum;
}

struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::unique_ptr<u64[]> numbers{new u64[20]()};
  Refusal(const Refusal& other) : std::runtime_error(other) {}
};
__attribute__((noinline)) u64 refuse(const u64* p) {
  if (*p % 3 == 0) throw Refusal("no: " + std::to_string(*p));
  return *p;
}
u64 exceptions() {
  u64 sum = 0;
  for (u64 i = 0; i < 3000; ++i) {
    auto number = std::make_unique<u64>(i);
    try {
      sum += refuse(number.get());
    } catch (const Refusal& refusal) {
      sum = sum * 5 + std::strlen(refusal.what()) + refusal.numbers[3];
    }
  }
  return sum;
}

// --- threads, each of which has its own blocks among those of the others, and some together
struct Counter {
  u64 own;
  std::atomic<u64> together;
  char room[48];
};
u64 threads() {
  constexpr std::size_t kCount = 120'000, kThreads = 4;
  std::vector<Counter*> all;
  for (std::size_t i = 0; i < kCount; ++i) all.push_back(new Counter{});
  std::vector<std::thread> running;
  for (std::size_t number = 0; number < kThreads; ++number)
    running.emplace_back([&all, number] {
      u64 state = number + 1;
      for (int i = 0; i < 60'000; ++i) {
        ++all[next(state) % (kCount / kThreads) * kThreads + number]->own;
        if (i % 16 == 0) all[next(state) % 64]->together.fetch_add(1);
        if (i % 64 == 0) std::memset(all[next(state) % (kCount / kThreads) * kThreads + number]->room, i % 100, 48);
      }
    });
  for (std::thread& thread : running) thread.join();
  u64 own = 0, together = 0, sum = 0;
  for (Counter* counter : all) {
    own += counter->own;
    together += counter->together.load();
    sum = sum * 31 + counter->own + static_cast<unsigned char>(counter->room[47]);
    delete counter;
  }
  return sum + own * 3 + together;
}

// --- signals
sigjmp_buf g_back;
volatile sig_atomic_t g_may_leave = 0, g_rounds = 0;
u64* g_counted = nullptr;
void leave(int) {
  ++*g_counted;
  if (g_may_leave == 0) return;
  g_may_leave = 0;
  siglongjmp(g_back, 1);
}
u64 signals() {
  static std::vector<u64*> all;
  for (u64 i = 0; i < 100'000; ++i) all.push_back(new u64[8]{i, i + 1});
  g_counted = new u64(0);
  signal(SIGALRM, leave);
  const itimerval often{{0, 700}, {0, 700}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  static volatile u64 wrong = 0;
  static u64 state = 5;
  for (static int left = 0; left < 200;) {
    if (sigsetjmp(g_back, 1) != 0) {
      ++left;
      continue;
    }
    g_may_leave = 1;
    for (;;) {
      const u64 i = next(state) % all.size();
      if (all[i][0] != i || all[i][1] != i + 1 || all[i][7] != 0) wrong = wrong + 1;
      g_rounds = g_rounds + 1;    // a loop without effects would be no loop
      if (state == 0) state = 5;  // a handler may have left in the midst of next()
    }
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  for (u64 i = 0; i < all.size(); ++i) {
    wrong = wrong + (all[i][0] != i);
    delete[] all[i];
  }
  const bool counted = *g_counted >= 200;
  delete g_counted;
  return wrong * 10 + counted;
}

// --- fork
u64 forks() {
  std::vector<u64*> all;
  for (u64 i = 0; i < 150'000; ++i) all.push_back(new u64[4]{i, 0, 0, ~i});
  const pid_t child = fork();
  if (child == 0) {
    u64 wrong = 0;
    for (u64 i = 0; i < all.size(); ++i)
      wrong += all[i][0] != i || all[i][3] != ~i || std::memcmp(all[i], &i, 8) != 0;
    for (u64* block : all) block[1] = 7;
    _exit(wrong == 0 ? 3 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  u64 sum = static_cast<u64>(WIFEXITED(status) ? WEXITSTATUS(status) : 100);
  for (u64* block : all) {
    sum = sum * 31 + block[0] + block[1];
    delete[] block;
  }
  return sum;
}

}  // namespace

int main() {
  const struct {
    const char* name;
    u64 (*run)();
  } all[] = {{"values", values},
             {"text", text},
             {"containers", containers},
             {"exceptions", exceptions},
             {"threads", threads},
             {"signals", signals},
             {"forks", forks}};
  for (const auto& [name, run] : all) {
    std::printf("%s %llx\n", name, static_cast<unsigned long long>(run()));
    std::fflush(stdout);
  }
  return 0;
}
