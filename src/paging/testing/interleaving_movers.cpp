// The movers of an interleaving: what each of them does, and what it may see.
#include <sys/mman.h>

#include "base/inside.hpp"
#include "paging/testing/interleaving.hpp"

namespace hinterland::testing {

void Interleaving::add(MoverKind kind) {
  std::size_t who = kind == MoverKind::write ? 1 + programs_++ % (Ghost::kWords - 1) : 0;
  scheduler_.add(testing::name_of(kind), [this, kind, who] { act(kind, target(), who); });
}

void Interleaving::add_random(std::vector<MoverKind> kinds, std::uint64_t operations, std::uint64_t seed) {
  std::size_t who = 1 + programs_++ % (Ghost::kWords - 1);
  scheduler_.add("thread " + std::to_string(who), [this, kinds = std::move(kinds), operations, seed, who] {
    std::mt19937_64 random(seed);
    for (std::uint64_t i = 0; i < operations && wrong_.empty(); ++i) {
      MoverKind kind = kinds[random() % kinds.size()];
      act(kind, static_cast<std::uint32_t>(random() % options_.pages), who);
    }
  });
}

void Interleaving::act(MoverKind kind, std::uint32_t page, std::size_t who) {
  std::uintptr_t length = bytes_of_pages(options_.pages);
  Pager& pager = machine_->pager();
  switch (kind) {
    case MoverKind::read:
      return read(page);
    case MoverKind::write:
      return write(page, who);
    case MoverKind::evict:
    case MoverKind::evict_direct: {
      InsideRuntime inside;
      evicting_[scheduler_.current()] = true;
      auto& evictor = kind == MoverKind::evict ? machine_->parts().background : machine_->parts().direct;
      scheduler_.observe(evictor->reclaim(options_.pages));
      return;
    }
    case MoverKind::drop:
      return clearing([&] {
        if (pager.advise(data_, length, MADV_DONTNEED) != 0) fail("advise failed", page);
      });
    case MoverKind::unmap:
      ++mapping_calls_;
      clearing([&] {
        if (pager.unmap(data_, length) != 0) fail("unmap failed", page);
        scheduler_.remember_only(62);
        if (pager.map_at(data_, length, PROT_READ | PROT_WRITE, 0, true) < 0) fail("map_at failed", page);
      });
      --mapping_calls_;
      return;
    case MoverKind::protect:
      return protect();
    case MoverKind::remap:
      return remap();
    case MoverKind::fork:
    case MoverKind::fork_fails:
      return fork(kind == MoverKind::fork_fails);
    case MoverKind::reuse:
      return clearing([&] {
        pager.decommit(data_, length);
        scheduler_.remember_only(61);
        pager.commit(data_, length);
      });
  }
}

// The access of a thread: true when it can be done at this very moment.
bool Interleaving::reach(std::uint32_t page, bool write) {
  for (;;) {
    scheduler_.remember_only(mix(63, next_value_));  // an access that faults begins anew
    scheduler_.spins_no_more();
    scheduler_.point(mix(40 + write, page));
    std::uintptr_t address = address_of(page);
    // A new mapping in the place of one that is in use cannot be registered in the same instant. A thread that
    // touches it in between (a mistake of the program) gets its page from the kernel; here it waits.
    scheduler_.block_until("its mapping to be registered", [this, address] {
      return kernel_->look(address).registered || kernel_->look(address).mapping == 0;
    });
    FakeKernel::Outcome outcome = kernel_->access(address, write);
    scheduler_.observe(static_cast<std::uint64_t>(outcome.result));
    switch (outcome.result) {
      case FakeKernel::Access::done:
        return true;
      case FakeKernel::Access::segmentation_fault:
        if (mapping_calls_ == 0) fail("the mapping is not there", page);
        return false;
      case FakeKernel::Access::bus_error:
        if (options_.trouble != Trouble::reads_fail) fail("I4: lost, though the device never failed", page);
        return false;
      case FakeKernel::Access::fault:
        kernel_->post(outcome.message);
        scheduler_.block_until("its fault to be served", [this, address] { return !kernel_->look(address).waiting; });
    }
  }
}

void Interleaving::read(std::uint32_t page) {
  if (!reach(page, false)) return;
  for (std::size_t word = 0; word < Ghost::kWords; ++word) scheduler_.observe(look(page, word));
}

void Interleaving::write(std::uint32_t page, std::size_t who) {
  if (!reach(page, true)) return;
  std::uint64_t value = ++next_value_ << 8 | who;
  ghost_.write(page, who, value);
  kernel_->store(address_of(page) + who * sizeof value, &value, sizeof value);
}

template <typename Call>
void Interleaving::clearing(Call&& call) {
  InsideRuntime inside;
  std::vector<std::uint64_t> began;
  began.reserve(options_.pages);
  for (std::uint32_t page = 0; page < options_.pages; ++page) began.push_back(ghost_.begin(page));
  call();
  for (std::uint32_t page = 0; page < options_.pages; ++page) ghost_.end_clearing(page, began[page]);
}

void Interleaving::protect() {
  InsideRuntime inside;
  ++mapping_calls_;
  for (int protection : {PROT_READ, PROT_READ | PROT_WRITE}) {
    scheduler_.remember_only(64);
    if (machine_->pager().protect(data_, bytes_of_pages(options_.pages), protection) != 0) fail("protect failed", 0);
  }
  --mapping_calls_;
}

// A thread that writes while the pages are on their way may find its write in neither place: Linux would have killed
// it. What was written before must be there.
void Interleaving::remap() {
  InsideRuntime inside;
  ++mapping_calls_;
  Ghost before = ghost_;
  std::vector<std::uint64_t> began;
  began.reserve(options_.pages);
  for (std::uint32_t page = 0; page < options_.pages; ++page) began.push_back(ghost_.begin(page));
  std::uintptr_t length = bytes_of_pages(options_.pages), base = machine_->address_of(0);
  std::uintptr_t target = data_ == base ? machine_->address_of(window_pages_ / 2) : base;
  std::intptr_t moved = machine_->pager().remap(data_, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  if (moved < 0)
    fail("remap failed", 0);
  else
    data_ = target;
  for (std::uint32_t page = 0; page < options_.pages; ++page) ghost_.end_moving(page, began[page], before);
  --mapping_calls_;
}

void Interleaving::fork(bool fails) {
  InsideRuntime inside;
  machine_->core().space->cancel_child();  // of an earlier fork; it has ended
  machine_->pager().before_fork();
  scheduler_.spins_no_more();
  scheduler_.point(50);
  if (!fails) {
    for (std::uint32_t page = 0; page < options_.pages; ++page) look_at_child(page);
    kernel_->share_all();
  }
  machine_->pager().after_fork_in_parent(!fails);
}

// What a child of this moment would find in a page.
void Interleaving::look_at_child(std::uint32_t page) {
  Core& core = machine_->core();
  PageWord word = core.pages[core.window.index_of(address_of(page))].load();
  if (word.busy()) return fail("I1: a page is on its way while the program forks", page);
  const std::uint64_t* bytes = nullptr;
  switch (word.state()) {
    case PageState::resident:
      bytes = reinterpret_cast<const std::uint64_t*>(address_of(page));
      break;
    case PageState::far:
      bytes = static_cast<const std::uint64_t*>(machine_->device()->peek(word.far_page()));
      break;
    case PageState::parked:
      bytes = static_cast<const std::uint64_t*>(machine_->device()->peek(core.frames[word.frame()].far));
      break;
    case PageState::lost:
      return;
    default:
      break;
  }
  for (std::size_t i = 0; i < Ghost::kWords; ++i)
    if (std::uint64_t value = bytes == nullptr ? 0 : bytes[i]; !ghost_.allows(page, i, value))
      fail("a forked child would read " + std::to_string(value), page);
}

}  // namespace hinterland::testing
