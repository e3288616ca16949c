// Pages that must not leave: the kernel writes to them where it cannot wait for a fault to be served, and where it
// would give up without a word (the end of a thread, priority-inheriting futexes).
#include <atomic>
#include <cerrno>

#include "base/own_stack.hpp"
#include "paging/bus_signal.hpp"
#include "paging/page/page_wait.hpp"
#include "paging/page/undisturbed.hpp"
#include "paging/pager_impl.hpp"

namespace hinterland {
namespace {

// Calls visit(page, address) for each page of the range, with an address in the range and on the page.
template <typename Visit>
void for_each_page_of(const Core& core, std::uintptr_t address, std::size_t length, Visit&& visit) {
  for (std::uintptr_t at = address; at < address + length; at = page_floor(at) + kPageSize)
    if (core.window.holds(at)) visit(core.window.index_of(at), at);
}

}  // namespace

void Pager::hold(std::uintptr_t address, std::size_t length) {
  Core& core = impl_->core;
  impl_->refuse_copies();
  HeapCalls::Call call(impl_->heap_calls);
  for_each_page_of(core, address, length, [&](PageIndex page, std::uintptr_t at) {
    core.marks.hold(page);
    if (core.managed.load()) {
      // Who took the page before the mark was there is done with it after this; who comes later sees the mark.
      core.transitions.none(page, core.lock_waiting(page));
    }
    // A write, so that it comes back, and without protection.
    reinterpret_cast<std::atomic<char>*>(at)->fetch_or(0, std::memory_order_relaxed);
  });
}

namespace {

struct BringIn {
  std::uintptr_t address;
  std::size_t length;
  bool write, there;
};

// The thread's own, not on its stack, which may be small: while signals are blocked nobody else needs it.
thread_local constinit BringIn t_bring_in{0, 0, false, false};

}  // namespace

// On a stack with room (bus_signal::on_local_stack).
void Pager::Impl::bring_wanted(void* impl) {
  auto& parts = **static_cast<Impl**>(impl);
  const int saved_errno = errno;
  for_each_page_of(parts.core, t_bring_in.address, t_bring_in.length, [&parts](PageIndex page, std::uintptr_t) {
    t_bring_in.there = parts.signal_faults.bring(page, t_bring_in.write) && t_bring_in.there;
  });
  errno = saved_errno;
}

// The pages will be busy in our hands: no signal handler may run here that touches them. Signals wait for a few pages
// at most.
bool Pager::Impl::bring(std::uintptr_t address, std::size_t length, bool write) {
  constexpr std::size_t kPiece = 8 * kPageSize;
  Impl* self = this;
  bool there = true;
  for (const std::uintptr_t end = address + length; address < end; address += kPiece) {
    Undisturbed undisturbed;
    t_bring_in = {address, end - address < kPiece ? end - address : kPiece, write, true};
    bus_signal::on_local_stack(bring_wanted, &self, sizeof self);
    there = t_bring_in.there && there;
  }
  return there;
}

// Evictors take the busy bit and then look at the mark, we the other way round: one of us sees the other. (Theirs is
// a locked instruction, which on x86-64 is as good as this fence.)
bool Pager::hold_for_call(std::uintptr_t address, std::size_t length, bool write) {
  Impl& impl = *impl_;
  impl.refuse_copies();
  bool there = true;
  const std::uintptr_t end = address + length;
  for (std::uintptr_t at = address; at < end; at = page_floor(at) + kPageSize) {
    if (!impl.core.window.holds(at)) continue;
    const PageIndex page = impl.core.window.index_of(at);
    impl.core.marks.hold(page);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (impl.core.faults_by_signal)
      there = impl.signal_faults.is_there(page, write) && there;
    else
      impl.wait_until_nobody_takes(page);
  }
  return there || impl.bring(address, length, write);
}

// By message the kernel brings in what it needs itself. Who took the busy bit before the mark was there may still
// take the page away, under what the call pins. The bit is not taken here: a handler of the program's that touches
// the page could interrupt us.
void Pager::Impl::wait_until_nobody_takes(PageIndex page) {
  const int saved_errno = errno;
  for (PageWait wait;; wait.again()) {
    const PageWord word = core.pages[page].load();
    if (!word.busy() || word.state() != PageState::resident) break;
  }
  errno = saved_errno;
}

// As let_go(), which takes more care than is needed while the policy need not be told.
void Pager::let_go_after_call(std::uintptr_t address, std::size_t length) {
  Core& core = impl_->core;
  const int saved_errno = errno;
  for_each_page_of(core, address, length, [&](PageIndex page, std::uintptr_t) {
    if (!core.marks.let_go(page)) return;
    struct Page {
      Impl* parts;
      PageIndex index;
      void may_leave() {
        HeapCalls::Call call(parts->heap_calls);
        parts->may_leave(index);
      }
    } left{impl_, page};
    Undisturbed undisturbed;  // the page will be busy in our hands
    if (core.faults_by_signal)
      bus_signal::on_local_stack([](void* argument) { static_cast<Page*>(argument)->may_leave(); }, &left,
                                 sizeof left);
    else
      on_own_stack([left]() mutable { left.may_leave(); });
  });
  errno = saved_errno;
}

bool Pager::sees_pins() const { return impl_->core.take_by_move; }
bool Pager::faults_by_signal() const { return impl_->core.faults_by_signal; }

FaultOutcome Pager::serve_fault(std::uintptr_t address, bool write, bool write_protect) {
  FaultOutcome outcome = impl_->signal_faults.serve(address, write, write_protect);
  return outcome == FaultOutcome::foreign && !impl_->is_foreign(address) ? FaultOutcome::served : outcome;
}

bool Pager::is_far_away(std::uintptr_t address) const {
  if (!impl_->core.managed.load(std::memory_order_acquire) || impl_->core.devices.all_synchronous()) return false;
  PageWord word = impl_->core.pages[impl_->core.window.index_of(address)].load();
  if (word.has_far() && impl_->core.devices.synchronous(word.far_page().device())) return false;
  return word.state() == PageState::far || word.state() == PageState::arriving;
}

// While others change what is mapped, or this thread itself does, that is not known: then no.
bool Pager::Impl::is_foreign(std::uintptr_t address) {
  if (!map_mutex.try_lock()) return false;
  bool foreign = false;
  regions.for_each(address, address + 1, [&](const Region& region) { foreign = region.surrendered; });
  map_mutex.unlock();
  return foreign;
}

void Pager::let_go(std::uintptr_t address, std::size_t length) {
  Core& core = impl_->core;
  impl_->refuse_copies();
  HeapCalls::Call call(impl_->heap_calls);
  for_each_page_of(core, address, length, [&](PageIndex page, std::uintptr_t) {
    if (core.marks.let_go(page)) impl_->may_leave(page);
  });
}

// The policy has forgotten a page that it offered while it was held.
void Pager::Impl::may_leave(PageIndex page) {
  if (!core.managed.load()) return;
  PageWord word = core.lock_waiting(page);
  if (word.state() == PageState::resident)
    core.transitions.stay(page, word);
  else
    core.transitions.none(page, word);
}

void Pager::Impl::let_go_of_freed(std::uintptr_t address, std::size_t length) {
  core.marks.for_each(core.window.index_of(address), static_cast<std::uint32_t>(length >> kPageShift),
                      [this](PageIndex page) {
                        if (!core.marks.is_held(page)) return;
                        bool dumped = core.marks.is_dumped(page);
                        core.marks.clear(page, 1);
                        core.marks.set_dumped(page, 1, dumped);
                        may_leave(page);
                      });
}

}  // namespace hinterland
