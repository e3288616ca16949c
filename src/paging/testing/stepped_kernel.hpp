// The fake kernel under a scheduler: before each call another mover may go on, and a page of the window may be
// changed only by who holds its busy bit (I1), from inside the runtime (I6).
#pragma once

#include <sys/mman.h>

#include <array>
#include <type_traits>
#include <vector>

#include "base/inside.hpp"
#include "base/testing/scheduler.hpp"
#include "kernel/fake_kernel.hpp"

namespace hinterland::testing {

class SteppedKernel final : public FakeKernel {
 public:
  using FakeKernel::FakeKernel;

  bool reads_ahead = true;  // the handler does

  // A range of addresses whose pages have holders, by page; kNobody where nobody has it.
  static constexpr std::size_t kNobody = SIZE_MAX;
  void watch(std::uintptr_t base, std::size_t pages) {
    base_ = base;
    holders_.assign(pages, kNobody);
  }
  std::size_t& holder(std::size_t page) { return holders_[page]; }
  // How many pages a mover has dropped so far.
  std::uint64_t dropped(std::size_t mover) const { return dropped_[mover]; }

  int read_faults(std::span<FaultMessage> messages, bool block) override {
    Scheduler* scheduler = Scheduler::running();
    if (scheduler != nullptr && block) {
      scheduler->block_until("a fault", [&] { return waiting_messages() != 0 || scheduler->others_done(); });
      if (waiting_messages() == 0) throw StopMover{};
      // Between two rounds the handler knows how much it mapped, how many pages were written to (its forecast) and,
      // where it reads ahead, which faults it served (its streams).
      scheduler->remember_only(mix(mix(reads_ahead ? served_ : 0, mapped_), written_));
    }
    return step(20, 0, 0, [&] {
      int count = FakeKernel::read_faults(messages, block);
      for (int i = 0; i < count; ++i) {
        const FaultMessage& message = messages[static_cast<std::size_t>(i)];
        served_ = mix(served_, place(message.address));
        written_ += message.write_protect;
      }
      return count;
    });
  }
  std::int64_t copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) override {
    may_change("copy to", target, length);
    mapped_ += length;
    return step(21 + protect, target, length, [&] { return FakeKernel::copy(target, source, length, protect); });
  }
  std::int64_t copy_unwaited(std::uintptr_t target, const void* source, std::size_t length, bool protect) override {
    may_change("copy to", target, length);
    mapped_ += length;
    return step(40 + protect, target, length,
                [&] { return FakeKernel::copy_unwaited(target, source, length, protect); });
  }
  std::int64_t zero(std::uintptr_t target, std::size_t length) override {
    may_change("zero", target, length);
    return step(23, target, length, [&] { return FakeKernel::zero(target, length); });
  }
  std::int64_t move(std::uintptr_t target, std::uintptr_t source, std::size_t length) override {
    may_change("move to", target, length);
    may_change("move from", source, length);
    return step(mix(24, place(source)), target, length, [&] { return FakeKernel::move(target, source, length); });
  }
  int write_protect(std::uintptr_t address, std::size_t length, bool protect) override {
    may_change("protect", address, length);
    return step(25 + protect, address, length, [&] { return FakeKernel::write_protect(address, length, protect); });
  }
  int wake(std::uintptr_t address, std::size_t length) override {
    return step(27, address, length, [&] { return FakeKernel::wake(address, length); });
  }
  int poison(std::uintptr_t address, std::size_t length) override {
    may_change("poison", address, length);
    return step(28, address, length, [&] { return FakeKernel::poison(address, length); });
  }
  int discard(std::span<const iovec> ranges) override {
    std::uint64_t what = 29;
    for (const iovec& range : ranges) {
      auto address = reinterpret_cast<std::uintptr_t>(range.iov_base);
      // Of a page without a state there is nothing to drop; a range may be longer than what is in use.
      may_change("drop", address, range.iov_len);
      what = mix(mix(what, place(address)), range.iov_len);
      if (Scheduler* scheduler = Scheduler::running())
        dropped_[scheduler->current()] += present_pages(address, range.iov_len);
    }
    return step(what, 0, 0, [&] { return FakeKernel::discard(ranges); });
  }
  int present(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits) override {
    return step(30, address, pages, [&] {
      int error = FakeKernel::present(address, pages, bits);
      for (std::uint64_t word : bits)
        if (Scheduler* scheduler = Scheduler::running()) scheduler->observe(word);
      return error;
    });
  }
  int make_exclusive(std::uintptr_t address) override {
    may_change("make exclusive", address, kPageSize);
    return step(31, address, kPageSize, [&] { return FakeKernel::make_exclusive(address); });
  }
  std::int64_t read_memory(void* target, std::uintptr_t source, std::size_t length) override {
    return step(32, source, length, [&] { return FakeKernel::read_memory(target, source, length); });
  }

 protected:
  // What the pager told of its mappings; the rest is frames.
  int protection_of(std::uintptr_t address) override {
    return look(address).mapping != 0 ? look(address).protection : PROT_READ | PROT_WRITE;
  }

 private:
  // Addresses as numbers that are the same in each run: pages of the window, or how far beyond.
  std::uint64_t place(std::uintptr_t address) const { return address - base_; }
  template <typename Call>
  std::invoke_result_t<Call> step(std::uint64_t what, std::uintptr_t address, std::size_t length, Call&& call) {
    Scheduler* scheduler = Scheduler::running();
    if (scheduler == nullptr) return call();
    if (t_inside_runtime == 0) violation("I6: a mover that may touch far memory called the kernel", address);
    scheduler->spins_no_more();
    scheduler->point(mix(mix(what, address == 0 ? 0 : place(address)), length));
    std::invoke_result_t<Call> result = call();
    scheduler->observe(static_cast<std::uint64_t>(result));
    return result;
  }
  void may_change(const char* what, std::uintptr_t address, std::size_t length) {
    Scheduler* scheduler = Scheduler::running();
    if (scheduler == nullptr) return;
    for (std::size_t at = 0; at < length; at += kPageSize) {
      std::size_t page = (address + at - base_) >> kPageShift;
      if (page < holders_.size() && holders_[page] != scheduler->current())
        violation((std::string("I1: ") + what + " a page that the mover does not hold").c_str(), address + at);
    }
  }

  std::uintptr_t base_ = 0;
  std::uint64_t served_ = 0, mapped_ = 0, written_ = 0;
  std::vector<std::size_t> holders_;
  std::array<std::uint64_t, Scheduler::kMoversMax> dropped_{};
};

}  // namespace hinterland::testing
