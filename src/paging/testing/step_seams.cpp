// Where the movers would wait or talk to Linux directly, they come to the scheduler instead: beside the locks
// (base/testing/lock_seams.cpp) the calls of reservation.hpp. Linked before the rooms of the same functions.
#include "paging/testing/step_seams.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <ctime>

#include "base/check.hpp"
#include "base/testing/scheduler.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

using testing::Scheduler;

namespace {

class MachineMemory {
 public:
  void start_again() { used_ = 0; }
  void* take(std::size_t length) {
    if (memory_ == nullptr)
      memory_ = static_cast<std::byte*>(
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    std::byte* at = memory_ + used_;
    used_ += page_ceil(length);
    HL_CHECK(memory_ != MAP_FAILED && used_ <= kBytes);
    // Tables begin as zeros. What is large holds pages, and whoever maps one fills it.
    if (length <= 64 * kKiB) std::memset(at, 0, length);
    return at;
  }

 private:
  static constexpr std::size_t kBytes = 64 * kMiB;
  std::byte* memory_ = nullptr;
  std::size_t used_ = 0;
};

MachineMemory g_memory;
FakeKernel* g_told = nullptr;

}  // namespace

void testing::begin_machine(FakeKernel* kernel) {
  g_memory.start_again();
  g_told = kernel;
}

// Memory for a machine, the same for each of them: thousands are built one after the other.
void* raw_mmap(void* address, std::size_t length, int protection, int flags, int) {
  if ((flags & MAP_FIXED) == 0) return g_memory.take(length);
  if (Scheduler* scheduler = Scheduler::running()) scheduler->point(10);
  auto at = reinterpret_cast<std::uintptr_t>(address);
  g_told->unmapped(at, length);
  // Reserved address space is no mapping. The memory itself is there all the time: the fake kernel alone decides
  // what may be touched.
  if ((flags & MAP_NORESERVE) == 0) g_told->mapped(at, length, protection);
  return address;
}

int raw_munmap(void*, std::size_t) { return 0; }

int raw_mprotect(void* address, std::size_t length, int protection) {
  if (Scheduler* scheduler = Scheduler::running()) scheduler->point(11);
  g_told->protected_as(reinterpret_cast<std::uintptr_t>(address), length, protection);
  return 0;
}

int raw_madvise(void*, std::size_t, int) { return 0; }

}  // namespace hinterland

// Waiting for a page, for memory: until somebody has done something.
extern "C" int nanosleep(const timespec* request, timespec* left) {
  if (auto* scheduler = hinterland::testing::Scheduler::running()) {
    scheduler->nap();
    return 0;
  }
  return static_cast<int>(syscall(SYS_nanosleep, request, left));
}

// Waiting for a heap's call, or for a fork (heap_calls.hpp).
extern "C" int sched_yield() {
  if (auto* scheduler = hinterland::testing::Scheduler::running()) {
    scheduler->nap();
    return 0;
  }
  return static_cast<int>(syscall(SYS_sched_yield));
}
