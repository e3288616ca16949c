#include "kernel/fake_kernel.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.hpp"

namespace hinterland {
namespace {

std::uint64_t garbage_word(std::uintptr_t address) { return 0xdeadbeef00000000 ^ (address * 0x9e3779b97f4a7c15); }

}  // namespace

FakeKernel::~FakeKernel() {
  if (memory_file_ >= 0) close(memory_file_);
}

KernelFeatures FakeKernel::all_features() {
  return {.kernel_faults = true,
          .write_protect = true,
          .exact_address = true,
          .thread_id = true,
          .poison = true,
          .move = true,
          .vectored_discard = true};
}

void FakeKernel::violation(const char* what, std::uintptr_t address) {
  char text[160];
  std::snprintf(text, sizeof text, "%s (page %#zx); ", what, static_cast<std::size_t>(address));
  violations_ += text;
}

int FakeKernel::memory_file() {
  if (memory_file_ < 0) memory_file_ = ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  HL_CHECK(memory_file_ >= 0);
  return memory_file_;
}

// Through /proc/self/mem where the mapping forbids it.
void FakeKernel::load(void* target, std::uintptr_t address, std::size_t length) {
  if ((look(address).protection & PROT_READ) != 0)
    std::memcpy(target, reinterpret_cast<const void*>(address), length);
  else
    HL_CHECK(pread(memory_file(), target, length, static_cast<off_t>(address)) == static_cast<ssize_t>(length));
}

void FakeKernel::store(std::uintptr_t address, const void* source, std::size_t length) {
  if ((look(address).protection & PROT_WRITE) != 0)
    std::memcpy(reinterpret_cast<void*>(address), source, length);
  else
    HL_CHECK(pwrite(memory_file(), source, length, static_cast<off_t>(address)) == static_cast<ssize_t>(length));
}

void FakeKernel::fill_garbage(std::uintptr_t address) {
  std::array<std::uint64_t, kPageSize / 8> words;
  words.fill(garbage_word(address));
  store(address, words.data(), kPageSize);
}

bool FakeKernel::garbage_intact(std::uintptr_t address) {
  std::array<std::uint64_t, kPageSize / 8> words;
  load(words.data(), address, kPageSize);
  return std::all_of(words.begin(), words.end(), [&](std::uint64_t word) { return word == garbage_word(address); });
}

std::size_t FakeKernel::hold(std::uintptr_t address) {
  HL_CHECK(look(address).present);
  references_.push_back({.address = page_floor(address)});
  return references_.size() - 1;
}

void FakeKernel::load_held(std::size_t reference, void* target) {
  const Reference& held = references_[reference];
  if (held.address != 0)
    load(target, held.address, kPageSize);
  else
    std::memcpy(target, held.last.data(), kPageSize);
}

void FakeKernel::leave_to_holders(std::uintptr_t address, std::uintptr_t target) {
  for (Reference& held : references_) {
    if (held.address != address) continue;
    if (target == 0) load(held.last.data(), address, kPageSize);
    held.address = target;
  }
}

void FakeKernel::vanish(std::uintptr_t address, Page& page) {
  leave_to_holders(address);
  page.present = page.write_protected = page.poisoned = page.pinned = page.shared = false;
  fill_garbage(address);
}

const FakeKernel::Page& FakeKernel::look(std::uintptr_t address) const {
  static const Page kNone;
  auto at = pages_.find(page_floor(address));
  return at == pages_.end() ? kNone : at->second;
}

std::size_t FakeKernel::present_pages(std::uintptr_t address, std::size_t length) const {
  std::size_t count = 0;
  for (std::size_t at = 0; at < length; at += kPageSize) count += look(address + at).present;
  return count;
}

void FakeKernel::mapped(std::uintptr_t address, std::size_t length, int protection) {
  ++mappings_;
  for_pages(address, length, [&](std::uintptr_t at) {
    leave_to_holders(at);
    page(at) = {.registered = look(at).registered, .protection = protection, .mapping = mappings_};
    fill_garbage(at);
  });
}

void FakeKernel::unmapped(std::uintptr_t address, std::size_t length) {
  for_pages(address, length, [&](std::uintptr_t at) {
    leave_to_holders(at);
    pages_.erase(at);
  });
}

void FakeKernel::protected_as(std::uintptr_t address, std::size_t length, int protection) {
  for_pages(address, length, [&](std::uintptr_t at) { page(at).protection = protection; });
}

void FakeKernel::share_all() {
  for (auto& [address, flags] : pages_) flags.shared = flags.present && !flags.pinned;
}

FakeKernel::Outcome FakeKernel::access(std::uintptr_t address, bool write) {
  auto at = pages_.find(page_floor(address));
  if (at == pages_.end() || (at->second.protection & (write ? PROT_WRITE : PROT_READ)) == 0)
    return {Access::segmentation_fault, {}};
  Page& flags = at->second;
  if (flags.poisoned) return {Access::bus_error, {}};
  bool missing = !flags.present;
  if (missing || (write && flags.write_protected)) {
    HL_CHECK(flags.registered);  // the test forgot to say that it is mapped
    flags.waiting = true;
    return {Access::fault, {page_floor(address), 0, write, !missing}};
  }
  if (write && flags.shared) leave_to_holders(page_floor(address));  // the program has a copy from now on
  if (write) flags.shared = false;
  return {};
}

bool FakeKernel::one_mapping(std::uintptr_t address, std::size_t length) const {
  const Page& first = look(address);
  for (std::size_t at = kPageSize; at < length; at += kPageSize) {
    const Page& next = look(address + at);
    if (next.registered != first.registered || next.protection != first.protection || next.mapping != first.mapping)
      return false;
  }
  return true;
}

// Asked without touching it.
int FakeKernel::protection_of(std::uintptr_t address) {
  char byte = 0;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(address), 1};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1) return PROT_NONE;
  return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == 1 ? PROT_READ | PROT_WRITE : PROT_READ;
}

int FakeKernel::register_range(std::uintptr_t address, std::size_t length) {
  ++mappings_;
  for_pages(address, length, [&](std::uintptr_t at) {
    bool known = pages_.contains(at);
    Page& flags = page(at);
    flags.registered = true;
    flags.protection = protection_of(at);  // the pager may just have mapped fresh memory there
    if (!flags.present) fill_garbage(at);
    if (known) return;
    flags.waiting = false;
    flags.mapping = mappings_;
  });
  return 0;
}

int FakeKernel::unregister_range(std::uintptr_t address, std::size_t length) {
  for_pages(address, length, [&](std::uintptr_t at) { page(at).registered = false; });
  return 0;
}

int FakeKernel::read_faults(std::span<FaultMessage> messages, bool block) {
  if (messages_.empty()) return block ? -EINTR : 0;
  std::size_t count = std::min(messages.size(), messages_.size());
  for (std::size_t i = 0; i < count; ++i) {
    messages[i] = messages_.front();
    messages_.pop_front();
  }
  return static_cast<int>(count);
}

int FakeKernel::copy_one(std::uintptr_t target, const std::byte* source, bool protect) {
  auto at = pages_.find(target);
  if (at == pages_.end() || !at->second.registered) return -ENOENT;
  Page& flags = at->second;
  if (flags.present) return -EEXIST;
  if (flags.poisoned) violation("a lost page was given contents", target);
  std::array<std::byte, kPageSize> bytes;
  auto from = pages_.find(reinterpret_cast<std::uintptr_t>(source));
  if (from != pages_.end()) {
    // It would wait for the fault handler. A mapping that just took the place of another is not registered yet, and
    // the kernel puts a page of zeros there.
    if (!from->second.present && from->second.registered)
      violation("copied from a page that is not there", from->first);
    if ((from->second.protection & PROT_READ) == 0) return -EFAULT;
  }
  std::memcpy(bytes.data(), source, kPageSize);
  store(target, bytes.data(), kPageSize);
  flags.present = true;
  flags.poisoned = flags.pinned = flags.shared = flags.waiting = false;
  flags.write_protected = protect && features_.write_protect;
  return 0;
}

std::int64_t FakeKernel::copy(std::uintptr_t target, const void* source, std::size_t length, bool protect) {
  if (failures.copies > 0) {
    --failures.copies;
    return failures.copy_error;
  }
  if (!one_mapping(target, length)) return -ENOENT;
  if (failures.partial_pages != 0) length = std::min(length, bytes_of_pages(failures.partial_pages));
  for (std::size_t at = 0; at < length; at += kPageSize)
    if (int error = copy_one(target + at, static_cast<const std::byte*>(source) + at, protect); error != 0)
      return at > 0 ? static_cast<std::int64_t>(at) : error;
  return static_cast<std::int64_t>(length);
}

std::int64_t FakeKernel::copy_unwaited(std::uintptr_t target, const void* source, std::size_t length, bool protect) {
  std::vector<bool> waiting;
  for_pages(target, length, [&](std::uintptr_t at) {
    auto found = pages_.find(at);
    waiting.push_back(found != pages_.end() && found->second.waiting);
  });
  std::int64_t done = copy(target, source, length, protect);
  for (std::size_t i = 0; i < waiting.size(); ++i)
    if (waiting[i]) pages_.find(target + bytes_of_pages(i))->second.waiting = true;
  return done;
}

std::int64_t FakeKernel::zero(std::uintptr_t target, std::size_t length) {
  alignas(kPageSize) static const std::array<std::byte, kPageSize> kZeros{};
  if (!one_mapping(target, length)) return -ENOENT;
  for (std::size_t at = 0; at < length; at += kPageSize)
    if (int error = copy_one(target + at, kZeros.data(), false); error != 0)
      return at > 0 ? static_cast<std::int64_t>(at) : error;
  return static_cast<std::int64_t>(length);
}

int FakeKernel::move_one(std::uintptr_t target, std::uintptr_t source) {
  auto to = pages_.find(target), from = pages_.find(source);
  if (to == pages_.end() || !to->second.registered) return -EINVAL;
  if (from == pages_.end() || from->second.protection != to->second.protection ||
      (from->second.protection & PROT_WRITE) == 0)
    return -EINVAL;
  if (!from->second.present) return -ENOENT;
  if (to->second.present) return -EEXIST;
  if (from->second.pinned || from->second.shared) return -EBUSY;
  if (to->second.poisoned) violation("a lost page was given contents", target);
  std::memcpy(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), kPageSize);
  leave_to_holders(source, target);
  to->second.present = true;
  to->second.waiting = to->second.write_protected = to->second.poisoned = false;
  vanish(source, from->second);
  return 0;
}

std::int64_t FakeKernel::move(std::uintptr_t target, std::uintptr_t source, std::size_t length) {
  if (!features_.move) violation("MOVE on a kernel without it", source);
  if (failures.moves > 0) {
    --failures.moves;
    return failures.move_error;
  }
  if (!one_mapping(target, length) || !one_mapping(source, length)) return -EINVAL;
  if (failures.partial_pages != 0) length = std::min(length, bytes_of_pages(failures.partial_pages));
  for (std::size_t at = 0; at < length; at += kPageSize)
    if (int error = move_one(target + at, source + at); error != 0)
      return at > 0 ? static_cast<std::int64_t>(at) : error;
  return static_cast<std::int64_t>(length);
}

int FakeKernel::write_protect(std::uintptr_t address, std::size_t length, bool protect) {
  if (!features_.write_protect) return -EINVAL;
  if (protect && failures.protections > 0) {
    --failures.protections;
    return failures.protection_error;
  }
  int error = 0;
  for_pages(address, length, [&](std::uintptr_t at) {
    auto found = pages_.find(at);
    if (found == pages_.end() || !found->second.registered) {
      error = -ENOENT;
      return;
    }
    if (found->second.present) found->second.write_protected = protect;
    if (!protect) found->second.waiting = false;
  });
  return error;
}

int FakeKernel::wake(std::uintptr_t address, std::size_t length) {
  for_pages(address, length, [&](std::uintptr_t at) {
    if (auto found = pages_.find(at); found != pages_.end()) found->second.waiting = false;
  });
  return 0;
}

int FakeKernel::poison(std::uintptr_t address, std::size_t length) {
  int error = 0;
  for_pages(address, length, [&](std::uintptr_t at) {
    auto found = pages_.find(at);
    if (found == pages_.end() || !found->second.registered)
      error = -ENOENT;
    else if (found->second.present)
      error = -EEXIST;
    else
      found->second.poisoned = true, found->second.waiting = false;
  });
  return error;
}

int FakeKernel::discard(std::span<const iovec> ranges) {
  std::uintptr_t reached = 0;
  for (const iovec& range : ranges) {
    auto address = reinterpret_cast<std::uintptr_t>(range.iov_base);
    if (address < reached) violation("ranges to discard are not ascending and disjoint", address);
    reached = address + range.iov_len;
    for_pages(address, range.iov_len, [&](std::uintptr_t at) {
      auto found = pages_.find(at);
      if (found == pages_.end()) return;
      if (found->second.pinned && !discarding_pinned_is_fine) violation("a pinned page was dropped", at);
      vanish(at, found->second);
    });
  }
  return 0;
}

int FakeKernel::present(std::uintptr_t address, std::size_t pages, std::span<std::uint64_t> bits) {
  std::fill(bits.begin(), bits.end(), 0);
  for (std::size_t i = 0; i < pages; ++i)
    if (look(address + bytes_of_pages(i)).present) bits[i / 64] |= 1ull << (i % 64);
  return 0;
}

int FakeKernel::make_exclusive(std::uintptr_t address) {
  auto found = pages_.find(address);
  if (found == pages_.end() || (found->second.protection & PROT_WRITE) == 0) return -EFAULT;
  if (!found->second.present) violation("made a page exclusive that is not there", address);
  if (found->second.write_protected) violation("wrote to a protected page", address);
  if (found->second.shared) leave_to_holders(address);
  found->second.shared = false;
  return 0;
}

std::int64_t FakeKernel::read_memory(void* target, std::uintptr_t source, std::size_t length) {
  load(target, source, length);
  return static_cast<std::int64_t>(length);
}

std::uint64_t FakeKernel::resident_anonymous_bytes() {
  return bytes_of_pages(static_cast<std::size_t>(
      std::count_if(pages_.begin(), pages_.end(), [](const auto& entry) { return entry.second.present; })));
}

}  // namespace hinterland
