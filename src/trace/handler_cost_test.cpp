#include "trace/handler_cost.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "kernel/fake_kernel.hpp"

namespace hinterland::trace {
namespace {

TEST(HandlerCostTest, AFaultServedByAnotherThreadTakesLonger) {
  std::uint64_t cost = measure_handler_cost_ns(real_kernel());
  EXPECT_GT(cost, 200u);  // two switches of threads and two system calls
  EXPECT_LT(cost, 1'000'000u);
}

// Linux, but for what fails.
class FailingKernel : public FakeKernel {
 public:
  FailingKernel() : FakeKernel(FakeKernel::all_features()) {}
  bool opens = true, registers = true;
  std::atomic<std::int64_t> copies_left{0};  // by two threads

  Status open() override {
    if (!opens) return std::unexpected(Error::make(EPERM, "no"));
    return real_kernel().open();
  }
  int register_range(std::uintptr_t address, std::size_t length) override {
    return registers ? real_kernel().register_range(address, length) : -EINVAL;
  }
  int unregister_range(std::uintptr_t address, std::size_t length) override {
    return real_kernel().unregister_range(address, length);
  }
  int read_faults(std::span<FaultMessage> messages, bool block) override {
    return real_kernel().read_faults(messages, block);
  }
  std::int64_t copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) override {
    if (copies_left.fetch_sub(1, std::memory_order_relaxed) <= 0) return -ENOMEM;
    return real_kernel().copy(target, source, length, protect);
  }
};

TEST(HandlerCostTest, IsNotKnownWithoutFaultsOfOurOwn) {
  FailingKernel closed;
  closed.opens = false;
  EXPECT_EQ(measure_handler_cost_ns(closed), 0u);
  FailingKernel without_range;
  without_range.registers = false;
  EXPECT_EQ(measure_handler_cost_ns(without_range), 0u);
}

// In the handler, in the thread that brings pages itself, and with the very last page.
TEST(HandlerCostTest, EndsWhereverAPageCannotBeBrought) {
  for (std::int64_t good : {0, 10, 300, 1200}) {
    FailingKernel failing;
    failing.copies_left = good;
    EXPECT_EQ(measure_handler_cost_ns(failing), 0u) << good;
  }
}

}  // namespace
}  // namespace hinterland::trace
