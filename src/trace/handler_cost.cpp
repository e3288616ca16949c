#include "trace/handler_cost.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace hinterland::trace {
namespace {

constexpr std::size_t kPages = 200;
constexpr int kRounds = 3;

// Memory that faults, and a page behind it that ends the handler.
class FaultingPages {
 public:
  explicit FaultingPages(Kernel& kernel) : kernel_(kernel) {
    memory_ = mmap(nullptr, bytes_of_pages(kPages + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) return;
    madvise(memory_, bytes_of_pages(kPages + 1), MADV_NOHUGEPAGE);
    registered_ = kernel_.register_range(page(0), bytes_of_pages(kPages + 1)) == 0;
  }
  ~FaultingPages() {
    if (memory_ != MAP_FAILED) munmap(memory_, bytes_of_pages(kPages + 1));
  }
  FaultingPages(const FaultingPages&) = delete;
  FaultingPages& operator=(const FaultingPages&) = delete;

  bool works() const { return registered_; }
  std::uintptr_t page(std::size_t index) const {
    return reinterpret_cast<std::uintptr_t>(memory_) + bytes_of_pages(index);
  }
  bool bring(std::uintptr_t address) {
    return kernel_.copy(address, content_, kPageSize, kernel_.features().write_protect) ==
           static_cast<std::int64_t>(kPageSize);
  }
  void touch(std::size_t index) const { (void)*reinterpret_cast<volatile const char*>(page(index)); }
  void drop() { madvise(memory_, bytes_of_pages(kPages), MADV_DONTNEED); }

  // Until somebody touches the last page. False: a page could not be brought; then all of them can be touched, and
  // the figure is worth nothing.
  bool serve_faults() {
    std::array<FaultMessage, 16> messages;
    for (;;) {
      int count = kernel_.read_faults(messages, true);
      if (count == -EINTR || count == -EAGAIN) continue;
      if (count < 0) return give_up();
      for (int i = 0; i < count; ++i)
        if (!bring(messages[static_cast<std::size_t>(i)].address)) return give_up();
      for (int i = 0; i < count; ++i)
        if (messages[static_cast<std::size_t>(i)].address == page(kPages)) return true;
    }
  }

 private:
  // Nobody waits for ever: an unregistered range is ordinary memory, and who waits for it is woken.
  bool give_up() {
    kernel_.unregister_range(page(0), bytes_of_pages(kPages + 1));
    return false;
  }

  Kernel& kernel_;
  void* memory_ = MAP_FAILED;
  bool registered_ = false;
  alignas(kPageSize) std::byte content_[kPageSize] = {};
};

void stay_on(int cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  sched_setaffinity(0, sizeof only, &only);
}

std::uint64_t a_page(std::uint64_t since_ns) { return (now_ns() - since_ns) / kPages; }

}  // namespace

std::uint64_t measure_handler_cost_ns(Kernel& kernel) {
  if (!kernel.open()) return 0;
  FaultingPages pages(kernel);
  if (!pages.works()) return 0;
  int cpu = std::max(sched_getcpu(), 0);
  bool good = true;
  std::thread handler([&] {
    stay_on(cpu);
    good = pages.serve_faults();
  });
  std::uint64_t by_handler = UINT64_MAX, by_itself = UINT64_MAX;
  bool brought = true;
  std::thread program([&] {
    stay_on(cpu);
    for (int round = 0; round < kRounds; ++round) {
      std::uint64_t start = now_ns();
      for (std::size_t i = 0; i < kPages; ++i) pages.touch(i);
      by_handler = std::min(by_handler, a_page(start));
      pages.drop();
      start = now_ns();
      for (std::size_t i = 0; i < kPages; ++i) {
        brought &= pages.bring(pages.page(i));
        pages.touch(i);
      }
      by_itself = std::min(by_itself, a_page(start));
      pages.drop();
    }
    pages.touch(kPages);
  });
  program.join();
  handler.join();
  return good && brought && by_handler > by_itself ? by_handler - by_itself : 0;
}

}  // namespace hinterland::trace
