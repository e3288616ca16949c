// operator new and delete of a C++ program, all signatures: its library's, and its own.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static std::atomic<long> g_live{0};
#ifdef OWN_OPERATORS
void* operator new(std::size_t size) {
  ++g_live;
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  if (block != nullptr) --g_live;
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
#endif

struct alignas(256) Wide {
  char bytes[512];
};

template <typename T>
static bool aligned(T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(T) == 0;
}

int main() {
  bool ok = true;
  delete new int(3);
  delete[] new std::string[100];
  delete new (std::nothrow) int(3);
  delete[] new (std::nothrow) int[100];
  Wide* one = new Wide;
  Wide* many = new Wide[10];
  Wide* careful = new (std::nothrow) Wide;
  ok = ok && aligned(one) && aligned(many) && aligned(careful);
  delete one;
  delete[] many;
  delete careful;
  operator delete(operator new(100), std::size_t{100});
  operator delete[](operator new[](100), std::size_t{100});
  auto alignment = std::align_val_t{64};
  operator delete(operator new(100, alignment), alignment);
  operator delete[](operator new[](100, alignment), 100, alignment);
  operator delete(operator new(100, std::nothrow), std::nothrow);
  operator delete[](operator new[](100, alignment, std::nothrow), alignment, std::nothrow);
  volatile std::size_t huge = PTRDIFF_MAX;
  try {
    static_cast<void>(operator new(huge));
    ok = false;
  } catch (const std::bad_alloc&) {
    std::puts("bad_alloc");
  }
  ok = ok && operator new(huge, std::nothrow) == nullptr;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      std::vector<std::string> words;
      for (int n = 0; n < 20000; ++n) words.push_back(std::string(static_cast<std::size_t>(n % 500), 'x'));
    });
  for (auto& thread : threads) thread.join();
  std::printf("ok %d, none deleted twice %d\n", ok, g_live.load() >= 0);
  return 0;
}
