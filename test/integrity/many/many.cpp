// Many of everything: a program that checks what it wrote into many mappings, from many threads, or all over a range
// far larger than any memory.
//
//     many mappings N | threads N | sparse GIB PAGES
//
// It knows nothing of far memory; natively or under `hinterland run` it prints "right" and exits 0, or says what was
// wrong and exits 1.
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;

[[noreturn]] void wrong(const char* what, std::size_t number) {
  std::fprintf(stderr, "many: %s (number %zu)\n", what, number);
  std::exit(1);
}

std::uint64_t stamp(std::uint64_t number) { return number * 0x9e3779b97f4a7c15 + 1; }

std::uint64_t& word(void* memory, std::size_t page) {
  return *reinterpret_cast<std::uint64_t*>(static_cast<char*>(memory) + page * kPage + page % 400 * 8);
}

// Two pages each, every other one read-only after it was written, so that neighbours stay mappings of their own.
void mappings(std::size_t count) {
  std::vector<void*> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all[i] == MAP_FAILED) wrong("mmap failed", i);
    word(all[i], 0) = stamp(2 * i);
    word(all[i], 1) = stamp(2 * i + 1);
    if (i % 2 == 1 && mprotect(all[i], 2 * kPage, PROT_READ) != 0) wrong("mprotect failed", i);
  }
  auto check = [&](std::size_t i) {
    if (word(all[i], 0) != stamp(2 * i) || word(all[i], 1) != stamp(2 * i + 1)) wrong("a mapping lost its bytes", i);
  };
  for (std::size_t i = 0; i < count; ++i) check(i);
  for (std::size_t i = 0; i < count; i += 3)
    if (munmap(all[i], 2 * kPage) != 0) wrong("munmap failed", i);
  for (std::size_t i = 0; i < count; ++i)
    if (i % 3 != 0) check(i);
}

struct Together {
  std::size_t count;
  pthread_barrier_t barrier;
  std::atomic<std::size_t> mismatches{0};
};
struct Worker {
  Together* together;
  std::size_t number;
};

// All threads are there at the same time, each with a heap of its own that the others push out meanwhile.
void* work(void* argument) {
  auto& [together, number] = *static_cast<Worker*>(argument);
  constexpr std::size_t kPages = 16;
  auto* memory = static_cast<char*>(std::malloc(kPages * kPage));
  if (memory == nullptr) wrong("malloc failed", number);
  for (std::size_t page = 0; page < kPages; ++page) word(memory, page) = stamp(number * kPages + page);
  pthread_barrier_wait(&together->barrier);
  for (std::size_t page = 0; page < kPages; ++page)
    if (word(memory, page) != stamp(number * kPages + page)) ++together->mismatches;
  pthread_barrier_wait(&together->barrier);
  std::free(memory);
  return nullptr;
}

void threads(std::size_t count) {
  Together together{count, {}, {}};
  pthread_barrier_init(&together.barrier, nullptr, static_cast<unsigned>(count));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  std::vector<Worker> workers(count);
  std::vector<pthread_t> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    workers[i] = {&together, i};
    if (pthread_create(&all[i], &attributes, work, &workers[i]) != 0) wrong("no thread", i);
  }
  for (pthread_t thread : all) pthread_join(thread, nullptr);
  if (together.mismatches != 0) wrong("pages of threads lost their bytes", together.mismatches);
}

void sparse(std::size_t gibibytes, std::size_t touched) {
  std::size_t pages = (gibibytes << 30) / kPage;
  void* memory =
      mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) wrong("mmap failed", gibibytes);
  auto places = [&](auto visit) {
    std::mt19937_64 random(7);
    for (std::size_t i = 0; i < touched; ++i) visit(i, random() % pages);
  };
  places([&](std::size_t, std::size_t page) { word(memory, page) = stamp(page); });
  places([&](std::size_t i, std::size_t page) {
    if (word(memory, page) != stamp(page)) wrong("a page far out lost its bytes", i);
  });
  // The upper half goes, and reads as zeros; the lower stays.
  if (madvise(static_cast<char*>(memory) + pages / 2 * kPage, pages / 2 * kPage, MADV_DONTNEED) != 0)
    wrong("madvise failed", 0);
  places([&](std::size_t i, std::size_t page) {
    if (word(memory, page) != (page < pages / 2 ? stamp(page) : 0)) wrong("not what is left after madvise", i);
  });
  if (munmap(memory, pages * kPage) != 0) wrong("munmap failed", 0);
}

std::size_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int count, char** words) {
  auto is = [&](const char* name, int wanted) { return count == wanted && std::strcmp(words[1], name) == 0; };
  if (is("mappings", 3)) {
    mappings(number(words[2]));
  } else if (is("threads", 3)) {
    threads(number(words[2]));
  } else if (is("sparse", 4)) {
    sparse(number(words[2]), number(words[3]));
  } else {
    std::fprintf(stderr, "usage: many mappings N | threads N | sparse GIB PAGES\n");
    return 2;
  }
  std::puts("right");
  return 0;
}
