#include "paging/testing/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "base/inside.hpp"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t bytes);
extern "C" void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* bytes);
#endif
#if defined(__SANITIZE_THREAD__)
extern "C" void* __tsan_get_current_fiber();
extern "C" void* __tsan_create_fiber(unsigned flags);
extern "C" void __tsan_destroy_fiber(void* fiber);
extern "C" void __tsan_switch_to_fiber(void* fiber, unsigned flags);
#endif

namespace hinterland::testing {
namespace {

constexpr std::size_t kStackBytes = 512 * 1024;  // before_fork() alone touches 64 KiB

}  // namespace

Fiber::Fiber() {
  void* memory =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HL_CHECK(memory != MAP_FAILED);
  stack_ = static_cast<std::byte*>(memory);
  HL_CHECK(getcontext(&context_) == 0);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::entry), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
#if defined(__SANITIZE_THREAD__)
  thread_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(thread_);
#endif
  munmap(stack_, kStackBytes);
}

void Fiber::entry(unsigned high, unsigned low) { reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low)->loop(); }

void Fiber::loop() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &outside_stack_, &outside_bytes_);
#endif
  for (;;) {
    body_();
    done_ = true;
    leave();
  }
}

void Fiber::enter() {
  std::swap(inside_runtime_, t_inside_runtime);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&outside_fake_stack_, stack_, kStackBytes);
#endif
#if defined(__SANITIZE_THREAD__)
  outside_thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_, 0);
#endif
  swapcontext(&outside_, &context_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(outside_fake_stack_, nullptr, nullptr);
#endif
  std::swap(inside_runtime_, t_inside_runtime);
}

void Fiber::leave() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, outside_stack_, outside_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(outside_thread_, 0);
#endif
  swapcontext(&context_, &outside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &outside_stack_, &outside_bytes_);
#endif
}

}  // namespace hinterland::testing
