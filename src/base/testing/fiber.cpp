#include "base/testing/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "base/inside.hpp"

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
}

Fiber::~Fiber() { munmap(stack_, kStackBytes); }

void Fiber::entry(unsigned high, unsigned low) { reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low)->loop(); }

void Fiber::loop() {
  for (;;) {
    body_();
    done_ = true;
    leave();
  }
}

void Fiber::enter() {
  std::swap(inside_runtime_, t_inside_runtime);
  swapcontext(&outside_, &context_);
  std::swap(inside_runtime_, t_inside_runtime);
}

void Fiber::leave() { swapcontext(&context_, &outside_); }

}  // namespace hinterland::testing
