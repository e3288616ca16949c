#include "trace/handler_cost.hpp"

#include <sched.h>
#include <signal.h>
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
  bool has(std::uintptr_t address) const { return address >= page(0) && address <= page(kPages); }
  void drop() const { madvise(memory_, bytes_of_pages(kPages), MADV_DONTNEED); }

  // Until end(). False: a page could not be brought; then all of them can be touched, and the figure is worth
  // nothing.
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

  void end() const { touch(kPages); }
  // Nobody waits for ever: an unregistered range is ordinary memory, and who waits for it is woken. False.
  bool give_up() {
    kernel_.unregister_range(page(0), bytes_of_pages(kPages + 1));
    return false;
  }

 private:
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

// Nanoseconds a page: of the quickest round of so many over all pages. `before` is called with each page before it is
// touched; false: the figure is worth nothing.
template <typename Before>
std::uint64_t round_ns(const FaultingPages& pages, Before&& before) {
  std::uint64_t quickest = UINT64_MAX;
  for (int round = 0; round < kRounds; ++round) {
    std::uint64_t start = now_ns();
    for (std::size_t i = 0; i < kPages; ++i) {
      if (!before(pages.page(i))) return UINT64_MAX;
      pages.touch(i);
    }
    quickest = std::min(quickest, (now_ns() - start) / kPages);
    pages.drop();
  }
  return quickest;
}

std::uint64_t by_itself_ns(FaultingPages& pages) {
  return round_ns(pages, [&](std::uintptr_t page) { return pages.bring(page); });
}

std::uint64_t served_ns(const FaultingPages& pages) {
  return round_ns(pages, [](std::uintptr_t) { return true; });
}

std::uint64_t more_than(std::uint64_t by_itself, std::uint64_t served) {
  return by_itself != UINT64_MAX && served > by_itself ? served - by_itself : 0;
}

// Of a thread on the same CPU.
std::uint64_t measure_messages(FaultingPages& pages) {
  int cpu = std::max(sched_getcpu(), 0);
  bool good = true;
  std::thread handler([&] {
    stay_on(cpu);
    good = pages.serve_faults();
  });
  std::uint64_t cost = 0;
  std::thread program([&] {
    stay_on(cpu);
    std::uint64_t served = served_ns(pages);
    cost = more_than(by_itself_ns(pages), served);
    pages.end();
  });
  program.join();
  handler.join();
  return good ? cost : 0;
}

// The process's handler of SIGBUS, as long as this lives.
class SignalHandler {
 public:
  explicit SignalHandler(FaultingPages& pages) {
    pages_ = &pages;
    good_ = true;
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGBUS, &action, &before_);
  }
  ~SignalHandler() { sigaction(SIGBUS, &before_, nullptr); }
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;
  bool good() const { return good_; }

 private:
  static void on_signal(int, siginfo_t* info, void*) {
    auto address = page_floor(reinterpret_cast<std::uintptr_t>(info->si_addr));
    if (!pages_->has(address))
      sigaction(SIGBUS, &before_, nullptr);  // nothing of ours: it comes again
    else if (!pages_->bring(address))
      good_ = pages_->give_up();
  }

  static inline FaultingPages* pages_ = nullptr;
  static inline struct sigaction before_ = {};
  static inline bool good_ = true;  // every page could be brought
};

// Of the thread's own handler of a signal.
std::uint64_t measure_signals(FaultingPages& pages) {
  std::uint64_t by_itself = by_itself_ns(pages);
  SignalHandler handler(pages);
  std::uint64_t served = served_ns(pages);
  return handler.good() ? more_than(by_itself, served) : 0;
}

}  // namespace

std::uint64_t measure_handler_cost_ns(Kernel& kernel, FaultDelivery delivery) {
  kernel.deliver_faults_by(delivery);
  if (!kernel.open()) return 0;
  FaultingPages pages(kernel);
  if (!pages.works()) return 0;
  return delivery == FaultDelivery::signals ? measure_signals(pages) : measure_messages(pages);
}

}  // namespace hinterland::trace
