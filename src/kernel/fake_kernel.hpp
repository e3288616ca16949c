// A model of Linux for tests of the page machine: real memory of the test process as backing store, with a few flags
// a page instead of page tables. Deterministic and single-threaded.
//
// The test tells it what the pager does by plain system calls (mmap, mprotect, mremap), and acts as the program by
// access(). Pages that are not there hold garbage, so that reading a dropped page is noticed. What a pager must never
// do is recorded and shown by violations().
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/kernel.hpp"

namespace hinterland {

class FakeKernel : public Kernel {
 public:
  struct Page {
    bool registered = false;
    bool present = false;
    bool write_protected = false;  // by userfaultfd
    bool poisoned = false;
    bool pinned = false;        // a device may write it at any time
    bool shared = false;        // with a forked child
    bool waiting = false;       // a thread faulted on it and was not woken yet
    int protection = 0;         // PROT_*
    std::uint32_t mapping = 0;  // pages of one number and protection are one mapping of the kernel's
  };
  // How many of the next calls fail, and with what; then `partial_move_pages`, if not 0, cuts multi-page moves short.
  struct Failures {
    int moves = 0, move_error = 0;
    int copies = 0, copy_error = 0;
    int protections = 0, protection_error = 0;  // write_protect(..., true) only
    std::uint32_t partial_pages = 0;            // copy and move do at most so many pages a call; 0: all
  };
  enum class Access : std::uint8_t { done, fault, bus_error, segmentation_fault };
  struct Outcome {
    Access result = Access::done;
    FaultMessage message{};  // of a fault
  };

  explicit FakeKernel(const KernelFeatures& features) : features_(features) {}
  ~FakeKernel() override;
  static KernelFeatures all_features();

  Failures failures;
  bool discarding_pinned_is_fine = false;  // while the program itself frees memory

  // --- what the pager did by plain system calls ---------------------------------------------------------------
  // A fresh mapping replaces what was there; nothing in it is present or registered.
  void mapped(std::uintptr_t address, std::size_t length, int protection);
  void unmapped(std::uintptr_t address, std::size_t length);
  void protected_as(std::uintptr_t address, std::size_t length, int protection);

  // --- the program, and what happens to its pages -------------------------------------------------------------
  // What an access does; on `fault` the thread waits until the page is woken. A write to a shared page unshares it.
  Outcome access(std::uintptr_t address, bool write);
  // The access itself, whatever the protection. access() has returned `done`.
  void load(void* target, std::uintptr_t address, std::size_t length);
  void store(std::uintptr_t address, const void* source, std::size_t length);
  void pin(std::uintptr_t address, bool on) { page(address).pinned = on; }
  // Somebody keeps the page that is there, without pinning it, as a pipe or a socket does. The number of the
  // reference.
  std::size_t hold(std::uintptr_t address);
  // What he sees of it. The page goes where MOVE takes it, and stays as it is once it is mapped nowhere.
  void load_held(std::size_t reference, void* target);
  // As fork does: all present pages, frames too, are shared until written.
  void share_all();

  // Flags of a page; a page that was never mapped has none.
  const Page& look(std::uintptr_t address) const;
  // True when an absent page still holds the garbage it was left with.
  bool garbage_intact(std::uintptr_t address);
  // Empty, or what the pager did that it must never do.
  const std::string& violations() const { return violations_; }
  void post(const FaultMessage& message) { messages_.push_back(message); }
  std::size_t waiting_messages() const { return messages_.size(); }
  // Pages that are there now, in [address, address + length).
  std::size_t present_pages(std::uintptr_t address, std::size_t length) const;

  // --- Kernel ---------------------------------------------------------------------------------------------------
  Status open() override { return {}; }
  const KernelFeatures& features() const override { return features_; }
  int fault_descriptor() const override { return -1; }
  int keep_descriptors() override { return -ENOSYS; }
  void wait_until_kept() override {}
  int register_range(std::uintptr_t address, std::size_t length) override;
  int unregister_range(std::uintptr_t address, std::size_t length) override;
  // Posted messages; -EINTR instead of blocking, because there is nobody else to post one.
  int read_faults(std::span<FaultMessage> messages, bool block) override;
  int look_for_faults(std::span<FaultMessage> messages) override { return read_faults(messages, false); }
  std::int64_t copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) override;
  std::int64_t copy_unwaited(std::uintptr_t target, const void* source, std::size_t length, bool protect) override;
  void expect_unwaited_copies() override {}
  std::int64_t zero(std::uintptr_t target, std::size_t length) override;
  std::int64_t move(std::uintptr_t target, std::uintptr_t source, std::size_t length) override;
  int write_protect(std::uintptr_t address, std::size_t length, bool protect) override;
  int wake(std::uintptr_t address, std::size_t length) override;
  int poison(std::uintptr_t address, std::size_t length) override;
  int discard(std::span<const iovec> ranges) override;
  int present(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits) override;
  int make_exclusive(std::uintptr_t address) override;
  std::int64_t read_memory(void* target, std::uintptr_t source, std::size_t length) override;
  std::uint64_t resident_anonymous_bytes() override;

 protected:
  // What the backing memory allows, of a page about to be registered.
  virtual int protection_of(std::uintptr_t address);
  void violation(const char* what, std::uintptr_t address);

 private:
  Page& page(std::uintptr_t address) { return pages_[page_floor(address)]; }
  void fill_garbage(std::uintptr_t address);
  void vanish(std::uintptr_t address, Page& page);
  // The page there is mapped nowhere from now on, or, with a target, there.
  void leave_to_holders(std::uintptr_t address, std::uintptr_t target = 0);
  // The kernel copies and moves only within one mapping.
  bool one_mapping(std::uintptr_t address, std::size_t length) const;
  int copy_one(std::uintptr_t target, const std::byte* source, bool protect);
  int move_one(std::uintptr_t target, std::uintptr_t source);
  int memory_file();
  template <typename Visit>
  static void for_pages(std::uintptr_t address, std::size_t length, Visit&& visit) {
    for (std::size_t at = 0; at < length; at += kPageSize) visit(address + at);
  }

  struct Reference {
    std::uintptr_t address = 0;               // where the page is mapped; 0: nowhere
    std::array<std::byte, kPageSize> last{};  // what it held when it was mapped last
  };

  KernelFeatures features_;
  std::unordered_map<std::uintptr_t, Page> pages_;
  std::vector<Reference> references_;
  std::deque<FaultMessage> messages_;
  std::uint32_t mappings_ = 0;
  std::string violations_;
  int memory_file_ = -1;
};

}  // namespace hinterland
