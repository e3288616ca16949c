#include "trace/handler_cost.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "kernel/fake_kernel.hpp"

namespace hinterland::trace {
namespace {

using Delivery = FaultDelivery;
constexpr Delivery kBoth[] = {Delivery::messages, Delivery::signals};

TEST(HandlerCostTest, AFaultThatIsServedTakesLonger) {
  for (Delivery delivery : kBoth) {
    std::uint64_t cost = measure_handler_cost_ns(real_kernel(), delivery);
    EXPECT_GT(cost, 200u);  // two switches of threads and two system calls, or a signal
    EXPECT_LT(cost, 1'000'000u);
  }
}

TEST(HandlerCostTest, TheHandlerOfSigbusIsAsBefore) {
  struct sigaction before{}, mine{}, now{};
  mine.sa_handler = [](int) {};
  sigaction(SIGBUS, &mine, &before);
  EXPECT_GT(measure_handler_cost_ns(real_kernel(), Delivery::signals), 0u);
  sigaction(SIGBUS, &before, &now);
  EXPECT_EQ(now.sa_handler, mine.sa_handler);
}

// Linux, but for what fails.
class FailingKernel : public FakeKernel {
 public:
  FailingKernel() : FakeKernel(FakeKernel::all_features()) {}
  bool opens = true, registers = true;
  std::atomic<std::int64_t> copies_left{0};  // by two threads

  void deliver_faults_by(Delivery delivery) override { real_kernel().deliver_faults_by(delivery); }
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
  for (Delivery delivery : kBoth) {
    FailingKernel closed;
    closed.opens = false;
    EXPECT_EQ(measure_handler_cost_ns(closed, delivery), 0u);
    FailingKernel without_range;
    without_range.registers = false;
    EXPECT_EQ(measure_handler_cost_ns(without_range, delivery), 0u);
  }
}

// In the handler, in the thread that brings pages itself, and with the very last page.
TEST(HandlerCostTest, EndsWhereverAPageCannotBeBrought) {
  for (std::int64_t good : {0, 10, 300, 1200}) {
    FailingKernel failing;
    failing.copies_left = good;
    EXPECT_EQ(measure_handler_cost_ns(failing, Delivery::messages), 0u) << good;
    failing.copies_left = std::min(good, std::int64_t{1199});  // there is no last page
    EXPECT_EQ(measure_handler_cost_ns(failing, Delivery::signals), 0u) << good;
  }
}

}  // namespace
}  // namespace hinterland::trace
