// What a program says about the pages it will use, and those it will not.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/own_stack.hpp"
#include "hinterland/hint.h"
#include "paging/page/undisturbed.hpp"
#include "paging/pager_impl.hpp"

namespace hinterland {
namespace {

struct PinRange {
  PageIndex first;
  std::uint32_t count = 0;
};

// Outside of the window a range counts whole if it begins or ends in far memory; which of its pages are is asked one
// by one (holds()).
PinRange pages_held(const Core& core, std::uintptr_t address, std::size_t length) {
  std::uintptr_t end = length > ~address ? ~std::uintptr_t{0} : address + length;
  const bool outside = length != 0 && !core.window.contains(address, length) &&
                       (core.window.outside().contains(address) || core.window.outside().contains(end - 1));
  const std::uintptr_t least = outside ? core.window.origin() : core.window.base();
  const std::size_t most = outside ? bytes_of_pages(core.window.places()) : core.window.bytes();
  address = std::max(address, least);
  end = std::min(end, least + most);
  if (address >= end) return {};
  PageIndex first = core.window.index_of(address), last = core.window.index_of(end - 1);
  return {first, static_cast<std::uint32_t>(std::min<std::uint64_t>(last.value - first.value + 1, UINT32_MAX))};
}

static_assert(HL_PINS_NEST == PageMarks::kHeldMax - 1);  // a full count is not counted down again

void mark_held(Core& core, PageIndex page) {
  core.marks.hold(page);
  // Who took the page before the mark was there is done with it after this; who comes later sees the mark.
  if (core.managed.load()) core.transitions.none(page, core.lock_waiting(page));
}

// Touches the page as a read does, waiting for the fault, but with an error in place of a signal. A futex that is not
// waited for is the system call that reads one word and does nothing else.
bool read_by_the_kernel(std::uintptr_t page) {
  timespec no_time{};
  long result = syscall(SYS_futex, page, FUTEX_WAIT_PRIVATE, 0, &no_time, nullptr, 0);
  return result == 0 || errno != EFAULT;
}

}  // namespace

void Pager::hint(const Hint& hint) {
  if (impl_->hears_hints()) impl_->hints.serve(hint, *impl_->direct);
}

bool Pager::begin_hint(const Hint& hint) { return impl_->hears_hints() && impl_->hints.begin(hint, *impl_->direct); }

bool Pager::is_on_its_way(const Hint& hint) const {
  return impl_->core.managed.load(std::memory_order_acquire) && impl_->hints.is_on_its_way(hint);
}

bool Pager::poll_hints() {
  if (!impl_->hints.anything_on_its_way() || !impl_->hears_hints()) return false;
  Undisturbed undisturbed;
  return impl_->hints.poll();
}

void Pager::wait_for_hints(std::uint64_t timeout_ns) {
  if (impl_->hears_hints()) impl_->hints.wait(timeout_ns);
}

// Not where its own thread stands on far memory: a hint could wait for the page that it took away.
bool Pager::Impl::hears_hints() const {
  if (!core.managed.load(std::memory_order_acquire)) return false;  // pairs with take_over: the parts are there
  if (copy_mark.is_copy()) return false;                            // the parent's words; and a hint is not an access
  return !core.window.holds(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))) &&
         !core.window.holds(reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()));
}

void Pager::Impl::settle_hints() {
  if (copy_mark.is_copy()) return;  // the lanes are the parent's, and nobody here uses them
  Undisturbed undisturbed;
  hints.pause();
  hints.resume();
}

int Pager::pin(std::uintptr_t address, std::size_t length) {
  impl_->refuse_copies();
  Undisturbed undisturbed;
  return on_own_stack([=, this] { return impl_->pin(*this, address, length); });
}

int Pager::Impl::pin(Pager& pager, std::uintptr_t address, std::size_t length) {
  PinRange range = pages_held(core, address, length);
  if (range.count == 0) return 0;
  std::int64_t limit = static_cast<std::int64_t>(budget_bytes.load() >> kPageShift) / 2;
  if (range.count > limit || pages_pinned.fetch_add(range.count) > limit - range.count) {
    if (range.count <= limit) pages_pinned.fetch_sub(range.count);
    return ENOMEM;
  }
  // Marked first, so that no page leaves behind our back; then brought, as a hint does, and by a look at what it
  // left.
  for (std::uint32_t i = 0; i < range.count; ++i)
    if (core.window.holds(core.address_of(range.first + i))) mark_held(core, range.first + i);
  pager.hint({.address = address, .size = length});
  if (core.faults_by_signal && core.managed.load())
    bring(core.address_of(range.first), std::size_t{range.count} << kPageShift, false);
  for (std::uint32_t i = 0; i < range.count; ++i) {
    if (read_by_the_kernel(core.address_of(range.first + i))) continue;
    unpin(address, length);
    return EFAULT;
  }
  return 0;
}

int Pager::unpin(std::uintptr_t address, std::size_t length) {
  impl_->refuse_copies();
  Undisturbed undisturbed;
  on_own_stack([=, this] { impl_->unpin(address, length); });
  return 0;
}

void Pager::Impl::unpin(std::uintptr_t address, std::size_t length) {
  PinRange range = pages_held(core, address, length);
  if (range.count == 0) return;
  pages_pinned.fetch_sub(range.count);
  for (std::uint32_t i = 0; i < range.count; ++i)
    if (core.window.holds(core.address_of(range.first + i)) && core.marks.let_go(range.first + i))
      may_leave(range.first + i);
}

int Pager::discard(std::uintptr_t address, std::size_t length) {
  if (!impl_->core.managed.load()) return 0;
  if (length > ~address || !contains(address)) return 0;
  std::uintptr_t start = page_ceil(address), end = page_floor(address + length);
  if (end <= start || !contains(start) || end_of_piece(start, end) != end) return 0;
  Undisturbed undisturbed;
  return -on_own_stack([=, this] { return advise(start, end - start, MADV_DONTNEED); });
}

void Pager::cold(std::uintptr_t address, std::size_t length) {
  Core& core = impl_->core;
  if (!impl_->hears_hints()) return;
  PinRange range = pages_held(core, address, length);
  Undisturbed undisturbed;
  // A program that scans what fits calls this all the time, while nothing leaves: then not a page need be looked at.
  if (range.count == 0 || core.policy.room_for_cold() == 0) return;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(range.count, PolicyHost::kColdMax); ++i) {
    PageIndex page = range.first + i;
    PageWord word = core.pages[page].load();
    if (word.busy() || word.state() != PageState::resident || !core.pages[page].try_lock(&word)) continue;
    bool may_leave = word.state() == PageState::resident && !core.marks.is_held(page) && !core.pinned.contains(page);
    if (may_leave) core.policy.cold(page);
    core.transitions.none(page, word);
  }
}

const std::atomic<std::uint8_t>* Pager::hint_map() const { return impl_->core.hint_map.bytes(); }

}  // namespace hinterland
