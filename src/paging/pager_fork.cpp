// fork without exec. The child gets the resident pages from the kernel (copy on write) and shares the far pages,
// which are never overwritten in place and are counted; it needs a fault descriptor, registrations, channels and
// threads of its own before any far page is touched. (Earlier systems' children read zeros.)
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.hpp"
#include "base/raw_call.hpp"
#include "kernel/kept_file.hpp"
#include "paging/page/reservation.hpp"
#include "paging/pager_impl.hpp"
#include "paging/program_end.hpp"

namespace hinterland {
namespace {

// Whether there is a mapping at every address.
bool is_mapped(std::uintptr_t address, std::size_t length) {
  std::array<unsigned char, 1024> ignored;
  for (std::size_t at = 0; at < length; at += bytes_of_pages(ignored.size())) {
    std::size_t bytes = std::min(length - at, bytes_of_pages(ignored.size()));
    if (raw::checked(SYS_mincore, address + at, bytes, ignored.data()) != 0) return false;
  }
  return true;
}

}  // namespace

// The whole window but for foreign mappings, of which a copy is right, and all mappings outside of it; but for those
// with an attribute in `except`.
int Pager::Impl::advise_ours(int advice, int except) {
  std::uintptr_t from = core.window.base();
  const std::uintptr_t end = from + core.window.bytes();
  int error = 0;
  auto advise_until = [&](std::uintptr_t to) {
    if (to > from && raw_madvise(reinterpret_cast<void*>(from), to - from, advice) != 0) error = -errno;
  };
  regions.for_each(from, end, [&](const Region& region) {
    if (!region.surrendered && (region.attributes & except) == 0) return;
    advise_until(region.start);
    from = region.end;
  });
  advise_until(end);
  regions.for_all([&](const Region& region) {
    if (core.window.contains(region.start, 1) || (region.attributes & except) != 0) return;
    if (raw_madvise(reinterpret_cast<void*>(region.start), region.length(), advice) != 0) error = -errno;
  });
  return error;
}

int Pager::Impl::keep_from_copies() { return advise_ours(MADV_DONTFORK, 0); }
int Pager::Impl::let_into_copy() { return advise_ours(MADV_DOFORK, kDontFork); }

bool Pager::is_copy() const { return impl_->copy_mark.is_copy(); }

void Pager::Impl::end_copy() {
  log::error("process %d was made by a raw clone or fork system call, and has no far memory; it ends", getpid());
  log::error("such a child may exec, or use what is not far; call fork() or clone() of libc instead");
  _exit(1);
}

void Pager::Impl::pause_movers() {
  hints.pause();
  background->mutex().lock();
  reclaimer->lock_helper();
  hermit_reclaimers->lock();
  handlers.pause();
  direct->mutex().lock();
}

void Pager::Impl::resume_movers() {
  direct->mutex().unlock();
  handlers.resume();
  hermit_reclaimers->unlock();
  reclaimer->unlock_helper();
  background->mutex().unlock();
  hints.resume();
}

// Stops everything that moves pages, and counts the far pages once more, for the child.
int Pager::before_fork() {
  Impl& parts = *impl_;
  parts.refuse_copies();
  parts.heap_calls.close();
  parts.map_mutex.lock();
  KeptFile::take_back_all();
  parts.core.devices.begin_child();
  if (!parts.core.managed.load()) return 0;
  parts.pause_movers();
  parts.core.protection_mutex.lock();
  parts.core.policy.lock_for_fork();
  parts.core.frames.mutex().lock();
  parts.for_each_page([&](PageIndex, PageCell& cell) {
    PageWord word = cell.load();
    if (word.state() == PageState::far) parts.retain_for_child(word.far_page());
    if (word.state() == PageState::parked) parts.retain_for_child(parts.core.frames[word.frame()].far);
  });
  parts.retain_flush();
  return parts.let_into_copy();
}

void Pager::after_fork_in_parent(bool forked) {
  Impl& parts = *impl_;
  if (!forked) parts.core.devices.cancel_child();
  if (parts.core.managed.load()) {
    if (parts.keep_from_copies() != 0) log::warning("copies of the process made by raw system calls may read zeros");
    parts.core.frames.mutex().unlock();
    parts.core.policy.unlock_after_fork();
    parts.core.protection_mutex.unlock();
    parts.resume_movers();
  }
  parts.map_mutex.unlock();
  parts.heap_calls.open();
  if (forked) count(Counter::forks);
}

void Pager::after_fork_in_child() {
  Impl& parts = *impl_;
  parts.map_mutex.reset_after_fork();
  parts.heap_calls.after_fork_in_child();
  parts.copy_mark.set();
  reserve_in_child();
  if (Status status = parts.resume_in_child(); !status) {
    // Far pages would read as zeros: better no child than that (I4).
    log::error("a forked child cannot reach its far memory: %s; the child ends", status.error().what());
    _exit(1);
  }
}

Status Pager::Impl::resume_in_child() {
  Status opened = core.kernel.open();
  program_end::watch_this_process();
  if (!opened && core.managed.load()) return opened;
  core.pages.after_fork_in_child();
  core.policy.after_fork_in_child();
  threads.clear();
  core.budget.after_fork_in_child();
  if (core.hermit != nullptr) core.hermit->after_fork_in_child();
  if (Status status = core.devices.after_fork_in_child(); !status) return status;
  core.pinned.clear_all();
  attributes_of_new = 0;
  regions.mark(0, UINTPTR_MAX, 0, kLocked | kLockedOnFault);
  if (core.managed.load()) {
    if (Status status = resume_paging_in_child(); !status) return status;
  } else {
    leave_out_what_is_not_inherited();
  }
  if (!opened) {  // it gave the permission away, or is in a namespace of users; nothing of it is far
    log::warning("%s; a forked child goes on without a budget", opened.error().what());
    core.devices.enter_process();
    return {};
  }
  if (Status status = start_housekeeper(); !status) return status;
  core.devices.wait_until_entered();
  return {};
}

// MADV_DONTFORK: the kernel left the mapping with the parent. Its addresses are still ours, and must be before
// anything else is mapped here: it would come to lie in the hole.
void Pager::reserve_in_child() {
  Impl& parts = *impl_;
  parts.core.protection_mutex.reset_after_fork();  // before_fork() took it
  const std::vector<Region> all = parts.pieces(0, UINTPTR_MAX);
  for (const Region& region : all) {
    // A mapping that was advised before it came here: only the kernel knows which part stayed behind.
    if (region.surrendered && (region.attributes & kDontFork) == 0 && !is_mapped(region.start, region.length()))
      for (std::uintptr_t page = region.start; page < region.end; page += kPageSize)
        if (!is_mapped(page, kPageSize)) parts.regions.mark(page, page + kPageSize, kDontFork, 0);
  }
  parts.regions.for_all([&](const Region& region) {
    if ((region.attributes & kDontFork) != 0) parts.reserve_again(region.start, region.length());
  });
}

// The same, and MADV_WIPEONFORK, for the pages' words.
void Pager::Impl::leave_out_what_is_not_inherited() {
  const std::vector<Region> all = pieces(0, UINTPTR_MAX);
  for (const Region& region : all) {
    if ((region.attributes & kDontFork) != 0 && region.is_heap) {
      // The heap makes them anew when the block is freed; nobody else may get its addresses.
      forget(region.start, region.length());
      regions.protect(region.start, region.end, PROT_NONE);
    } else if ((region.attributes & kDontFork) != 0) {
      if (int error = unmap(region.start, region.length()); error != 0)
        log::warning("addresses that a forked child does not inherit cannot be reserved (%d)", -error);
    } else if ((region.attributes & kWipeOnFork) != 0) {
      forget(region.start, region.length());
    }
  }
}

Status Pager::Impl::resume_paging_in_child() {
  std::int64_t resident = 0;
  for_each_page([&](PageIndex, PageCell& cell) { resident += core.transitions.inherit(cell); });
  core.frames.abandon_all();
  core.budget.reset_local(resident);
  leave_out_what_is_not_inherited();
  if (int error = core.frames.attach(core.kernel); error != 0)
    return std::unexpected(Error::make(-error, "cannot register the frames with userfaultfd"));
  Status status;
  regions.for_all([&](const Region& region) {
    if (region.surrendered) return;
    int error = core.kernel.register_range(region.start, region.length());
    // Nothing there: the program kept it from its children (MADV_DONTFORK), and touching it is their mistake.
    if (error != 0 && error != -EINVAL && error != -ENOMEM)
      status = std::unexpected(Error::make(-error, "cannot register memory with userfaultfd"));
  });
  if (!status) return status;
  if (int error = keep_from_copies(); error != 0)
    return std::unexpected(Error::make(-error, "cannot keep far memory from copies of the process"));
  // New objects: threads, channels and buffers of the parent's do not exist here. The old ones are left alone, not
  // destroyed: their channels belong to connections that the parent still uses.
  handlers.after_fork_in_child();
  static_cast<void>(background.release());
  static_cast<void>(direct.release());
  static_cast<void>(reclaimer.release());
  static_cast<void>(hermit_reclaimers.release());
  hints.after_fork_in_child();
  return start_paging_threads();
}

}  // namespace hinterland
