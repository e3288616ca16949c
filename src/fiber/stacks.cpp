// Slabs of stacks, and their guards.
#include "fiber/stacks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <mutex>

// For debuggers.
extern "C" {
extern __attribute__((visibility("default"))) hinterland::fiber::StackSlab* hl_fiber_slabs;
hinterland::fiber::StackSlab* hl_fiber_slabs = nullptr;
}

namespace hinterland::fiber {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL, Linux 6.13: a guard that does not split the mapping
constexpr std::size_t kSlabBytes = std::size_t{8} << 20;

// Older kernels: a mapping more for each stack, so that a process gets about 32,000 of them.
bool make_guard(std::byte* at) {
  return madvise(at, Stacks::kGuardBytes, kGuardInstall) == 0 || mprotect(at, Stacks::kGuardBytes, PROT_NONE) == 0;
}

hl::fibers::detail::spin_lock g_slabs_guard;  // of the list of all slabs

}  // namespace

void* map_local(std::size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_local(void* memory, std::size_t bytes) { munmap(memory, bytes); }

Stacks::~Stacks() {
  std::lock_guard lock(g_slabs_guard);
  for (Slab* slab : slabs_) {
    (slab->previous != nullptr ? slab->previous->next : hl_fiber_slabs) = slab->next;
    if (slab->next != nullptr) slab->next->previous = slab->previous;
    unmap_local(slab, static_cast<std::size_t>(slab->end - reinterpret_cast<std::byte*>(slab)));
  }
}

Stack Stacks::take(std::size_t bytes) {
  if (bytes > kMostBytes) return {};
  bytes = std::bit_ceil(std::max(bytes, kLeastBytes));
  Class& of = classes_[static_cast<std::size_t>(std::countr_zero(bytes))];
  std::unique_lock lock(guard_);
  if (of.free != nullptr) {
    Free* free = of.free;
    of.free = free->next;
    --of.free_count;
    return {free->low, free->low + bytes};
  }
  std::size_t stride = bytes + kGuardBytes;
  if (of.fresh == of.fresh_end && !add_slab(of, stride)) return {};
  std::byte* at = of.fresh;
  of.fresh += stride;
  lock.unlock();
  // A stack without its guard must not be used: it is left out until the end.
  if (!make_guard(at)) return {};
  return {at + kGuardBytes, at + stride};
}

bool Stacks::add_slab(Class& of, std::size_t stride) {
  std::size_t count = std::max<std::size_t>(kSlabBytes / stride, 1);
  std::size_t bytes = kPage + count * stride;
  void* memory = map_local(bytes);
  if (memory == nullptr) return false;
  std::byte* first = static_cast<std::byte*>(memory) + kPage;
  auto* slab = new (memory) Slab{nullptr, nullptr, first, first + count * stride, stride};
  slabs_.push_back(slab);
  of.fresh = slab->first;
  of.fresh_end = slab->end;
  std::lock_guard lock(g_slabs_guard);
  slab->next = hl_fiber_slabs;
  if (slab->next != nullptr) slab->next->previous = slab;
  hl_fiber_slabs = slab;
  return true;
}

void Stacks::give_back(Stack stack) {
  Class& of = classes_[static_cast<std::size_t>(std::countr_zero(stack.bytes()))];
  std::unique_lock lock(guard_);
  bool warm = of.free_count < kKeptWarm;
  ++of.free_count;
  lock.unlock();
  if (!warm) madvise(stack.low, stack.bytes() - kPage, MADV_DONTNEED);
  auto* free = new (stack.top - sizeof(void*) - sizeof(Free)) Free{nullptr, stack.low};
  lock.lock();
  free->next = of.free;
  of.free = free;
}

}  // namespace hinterland::fiber
