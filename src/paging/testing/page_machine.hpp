// The page machine without threads and without Linux: the pager's parts over FakeKernel, driven step by step by a
// seeded program that keeps a shadow of every byte; and its invariants (docs/architecture.md) as equations.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hinterland/policy.h"
#include "kernel/fake_kernel.hpp"
#include "paging/pager_impl.hpp"
#include "paging/testing/flaky_device.hpp"
#include "paging/testing/sent_pages.hpp"

namespace hinterland {

// Builds a pager without threads; befriended by Pager.
class PagerParts {
 public:
  static std::unique_ptr<Pager> assemble(Window&& window, Pager::Impl* impl);
  static Pager::Impl& of(Pager& pager) { return *pager.impl_; }
};

namespace testing {

struct MachineOptions {
  KernelFeatures features = FakeKernel::all_features();
  bool take_by_move = true;
  bool direct = true;    // device pages are copied from where they lie
  bool at_once = false;  // not direct: the device answers at once all the same
  bool device_failures = false;
  std::string far_url;  // "" for a FlakyDevice over mem:
  // Another FlakyDevice, of the pages from window_pages / 2 on. Failures are of one of both.
  enum class Second : std::uint8_t { none, direct, queued } second = Second::none;
  const hl_policy_ops* policy = nullptr;
  std::uint32_t window_pages = 512;
  std::uint32_t budget_pages = 96;
  std::uint32_t frames = 128;
  std::uint32_t read_ahead_pages = 16;
  Parts parts = {};
};

class PageMachine {
 public:
  // `kernel`: another model of Linux; nullptr for the plain one.
  PageMachine(const MachineOptions& options, std::uint64_t seed, std::unique_ptr<FakeKernel> kernel = nullptr);
  ~PageMachine();

  void random_step();
  // "" or the first invariant that does not hold. Compares the bytes of `sample` random pages, of all when 0.
  std::string check_invariants(std::uint32_t sample);
  const std::string& failure() const { return failure_; }  // what the program saw that it must not see
  std::string last_step() const { return last_step_; }
  std::uint64_t lost_pages_seen() const { return lost_seen_; }
  std::uint64_t far_fetches() const { return fetches_; }

  // --- the program's side -------------------------------------------------------------------------------------
  void map(std::uint32_t first, std::uint32_t count, int protection);
  void unmap(std::uint32_t first, std::uint32_t count);
  void protect(std::uint32_t first, std::uint32_t count, int protection);
  void drop(std::uint32_t first, std::uint32_t count);
  void decommit(std::uint32_t first, std::uint32_t count);
  void commit(std::uint32_t first, std::uint32_t count);
  void commit_uncleared(std::uint32_t first, std::uint32_t count);
  void remap(std::uint32_t first, std::uint32_t count, std::uint32_t new_count);
  void read(std::uint32_t page);
  void write(std::uint32_t page, bool zeros = false);
  // Somebody has it, and looks at it with every check of the invariants.
  void send(std::uint32_t page);
  void hint(const Hint& hint);        // and nothing is on its way when it returns
  void begin_hint(const Hint& hint);  // and something may be
  void gather();                      // until nothing of hints is on its way
  // Brings the page; false when it is lost. Every fault must end in a wake-up.
  bool touch(std::uint32_t page, bool write);
  void serve(const FaultMessage& message);
  // Threads fault on these pages at the same time, and their messages are read together. Then it reads each page.
  void read_together(std::span<const std::uint32_t> pages);
  // Takes what is mapped and what it holds now for right: after others than this machine's program were at work.
  void adopt_all();
  std::size_t reclaim(std::size_t pages);
  void evict(std::size_t pages) { reclaim(pages); }

  FakeKernel& kernel() { return kernel_; }
  Pager::Impl& parts() { return *parts_; }
  FlakyDevice* device() { return device_; }
  FlakyDevice* second_device() { return second_; }
  // As MachineOptions::second, `queued` unless that says otherwise. Nothing may be mapped there yet.
  void add_second_device(std::uint64_t seed);
  Core& core() { return parts_->core; }
  Pager& pager() { return *pager_; }
  std::uintptr_t address_of(std::uint32_t page) const { return base_ + bytes_of_pages(page); }

 private:
  struct Shadow {
    enum class State : std::uint8_t { unmapped, valid, undefined } state = State::unmapped;
    int protection = 0;
    std::array<std::byte, kPageSize> bytes{};
  };
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // first, count

  void build(const MachineOptions& options, std::uint64_t seed);
  void fail(const char* what, std::uint32_t page);
  void drain();
  void zero_shadow(std::uint32_t first, std::uint32_t count);
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  std::uint32_t any_page() { return below(options_.window_pages); }
  // A run of up to `most` pages around a random place that all have the property; count 0 when there is none.
  template <typename Property>
  Range random_run(std::uint32_t most, Property&& property);
  bool accessible(std::uint32_t page, int protection) const {
    return shadows_[page].state == Shadow::State::valid && (shadows_[page].protection & protection) == protection;
  }
  bool mapped(std::uint32_t page) const { return shadows_[page].state != Shadow::State::unmapped; }

  // Kinds of steps.
  void step_access();
  void step_crowd();
  void step_hint();
  void step_stream();
  void step_evict();
  void step_mappings();
  void step_protect();
  void step_heap();
  void step_remap();
  void step_pins_and_sharing();
  void step_device_write();
  void step_send();
  void step_failures();
  void step_collision();
  void step_stale_message();

  // Parts of check_invariants().
  struct Tally {
    std::int64_t resident = 0, arriving = 0, frames = 0, far = 0, parked = 0;
  };
  std::string check_word(std::uint32_t page, Tally* tally);
  std::string check_resident(std::uint32_t page, PageWord word);
  std::string check_frames(Tally* tally);
  std::string check_bytes(std::uint32_t page);
  std::string check_totals(const Tally& tally);

  MachineOptions options_;
  std::mt19937_64 random_;
  std::unique_ptr<FakeKernel> owned_kernel_;
  FakeKernel& kernel_;
  FlakyDevice* device_ = nullptr;  // owned by the core; nullptr with another device
  FlakyDevice* second_ = nullptr;  // the same; nullptr where there is one device
  Pager::Impl* parts_ = nullptr;   // owned
  std::unique_ptr<Pager> pager_;
  std::uintptr_t base_ = 0;
  std::vector<Shadow> shadows_;
  std::vector<std::uint32_t> pinned_;
  SentPages sent_{kernel_};
  std::string failure_, last_step_;
  std::uint64_t lost_seen_ = 0, fetches_ = 0;
};

}  // namespace testing
}  // namespace hinterland
