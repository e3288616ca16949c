// The movers of an interleaving: what each of them does, and what it may see.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/inside.hpp"
#include "paging/offloading.hpp"
#include "paging/testing/interleaving.hpp"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace hinterland::testing {

void Interleaving::add(MoverSpec mover) {
  std::size_t who = mover.kind == MoverKind::write ? 1 + programs_++ % (Ghost::kWords - 1) : 0;
  scheduler_.add(testing::name_of(mover), [this, mover, who] { act(mover.kind, range_of(mover.part), who); });
}

void Interleaving::add_random(std::vector<MoverKind> kinds, std::uint64_t operations, std::uint64_t seed) {
  std::size_t who = 1 + programs_++ % (Ghost::kWords - 1);
  scheduler_.add("thread " + std::to_string(who), [this, kinds = std::move(kinds), operations, seed, who] {
    std::mt19937_64 random(seed);
    for (std::uint64_t i = 0; i < operations && wrong_.empty(); ++i) {
      scheduler_
          .spins_no_more();  // an evictor that finds the same page busy each time it is called does not wait for it
      MoverKind kind = kinds[random() % kinds.size()];
      auto page = static_cast<std::uint32_t>(random() % options_.pages);
      bool access = kind == MoverKind::read || kind == MoverKind::write;
      act(kind, access ? Range{page, 1} : range_of(Part::all), who);
    }
  });
}

void Interleaving::act(MoverKind kind, Range range, std::size_t who) {
  std::uintptr_t address = address_of(range.first), length = bytes_of_pages(range.count);
  std::uint32_t page = range.first + range.count - 1;
  Pager& pager = machine_->pager();
  switch (kind) {
    case MoverKind::read:
      return read(page);
    case MoverKind::write:
      return write(page, who);
    case MoverKind::evict:
      return evict(*machine_->parts().background);
    case MoverKind::evict_direct:
      return evict(*machine_->parts().direct);
    case MoverKind::drop:
      return clearing(range, [&] {
        if (pager.advise(address, length, MADV_DONTNEED) != 0) fail("advise failed", page);
      });
    case MoverKind::unmap:
      return unmap(range);
    case MoverKind::protect:
      return protect(range);
    case MoverKind::remap:
    case MoverKind::remap_keep:
      return remap(kind == MoverKind::remap_keep);
    case MoverKind::fork:
    case MoverKind::fork_fails:
      return fork(kind == MoverKind::fork_fails);
    case MoverKind::reuse:
      scheduler_.block_until("nobody to replace the pages", [this] { return replacing_ == 0; });
      ++reusing_;
      clearing(range, [&] {
        pager.decommit(address, length);
        scheduler_.remember_only(61);
        pager.commit(address, length);
      });
      --reusing_;
      return;
    case MoverKind::hold:
      return hold(range);
    case MoverKind::replace:
      return replace(range);
    case MoverKind::patch:
      return patch(range);
  }
}

void Interleaving::evict(Evictor& evictor) {
  InsideRuntime inside;
  evicting_[scheduler_.current()] = true;
  scheduler_.observe(evictor.reclaim(options_.pages));
}

void Interleaving::unmap(Range range) {
  std::uintptr_t address = address_of(range.first), length = bytes_of_pages(range.count);
  ++mapping_calls_;
  clearing(range, [&] {
    if (machine_->pager().unmap(address, length) != 0) fail("unmap failed", range.first);
    scheduler_.remember_only(62);
    if (machine_->pager().map_at(address, length, PROT_READ | PROT_WRITE, 0, true) < 0)
      fail("map_at failed", range.first);
  });
  --mapping_calls_;
}

// The access of a thread: true when it can be done at this very moment.
bool Interleaving::reach(std::uint32_t page, bool write) {
  for (;;) {
    scheduler_.remember_only(mix(63, next_value_));  // an access that faults begins anew
    scheduler_.spins_no_more();
    scheduler_.point(mix(40 + write, page));
    std::optional<bool> reached = access(address_of(page), write);
    if (reached) return *reached;
  }
}

// A place where the pages lay before. Only its reader knows of it.
bool Interleaving::reach_at(std::uintptr_t address) {
  std::optional<bool> reached;
  while (!reached) {
    scheduler_.remember_only(mix(65, address - machine_->address_of(0)));
    scheduler_.point(42);
    reached = access(address, false);
  }
  return *reached;
}

// Empty when it faulted and the fault was served.
std::optional<bool> Interleaving::access(std::uintptr_t address, bool write) {
  std::uint32_t page = index_of(address);
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
      if (options_.trouble != Trouble::reads_fail && options_.trouble != Trouble::one_read_fails)
        fail("I4: lost, though the device never failed", page);
      return false;
    case FakeKernel::Access::fault:
      break;
  }
  kernel_->post(outcome.message);
  scheduler_.block_until("its fault to be served", [this, address] { return !kernel_->look(address).waiting; });
  return {};
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
void Interleaving::clearing(Range range, Call&& call) {
  InsideRuntime inside;
  std::uint32_t end = range.first + range.count;
  std::vector<std::uint64_t> began;
  began.reserve(range.count);
  for (std::uint32_t page = range.first; page < end; ++page) began.push_back(ghost_.begin(page));
  call();
  for (std::uint32_t page = range.first; page < end; ++page) ghost_.end_clearing(page, began[page - range.first]);
}

void Interleaving::protect(Range range) {
  InsideRuntime inside;
  std::uintptr_t address = address_of(range.first), length = bytes_of_pages(range.count);
  ++mapping_calls_;
  for (int protection : {PROT_READ, PROT_READ | PROT_WRITE}) {
    scheduler_.remember_only(64);
    if (machine_->pager().protect(address, length, protection) != 0) fail("protect failed", range.first);
  }
  --mapping_calls_;
}

// From the return of hold() on, whoever took a page before is done with it, and nobody else does: once it is there it
// stays. (The fake kernel does not see hold()'s own write, which is why the page is reached here.)
void Interleaving::hold(Range range) {
  std::uintptr_t address = address_of(range.first), length = bytes_of_pages(range.count);
  std::uint32_t end = range.first + range.count;
  {
    InsideRuntime inside;
    machine_->pager().hold(address, length);
  }
  for (std::uint32_t page = range.first; page < end; ++page) reach(page, true);
  scheduler_.remember_only(66);
  scheduler_.point(66);
  for (std::uint32_t page = range.first; page < end; ++page)
    if (!kernel_->look(address_of(page)).present) fail("a held page has left", page);
  InsideRuntime inside;
  machine_->pager().let_go(address, length);
}

// Over the device itself, as a server would do it, which may fail.
bool Interleaving::write_far(far::FarPage page, const std::array<std::uint64_t, Ghost::kWords>& words) {
  alignas(kPageSize) std::array<std::byte, kPageSize> bytes{};
  std::memcpy(bytes.data(), words.data(), sizeof words);
  auto channels = machine_->core().devices.open_channels();
  HL_CHECK(channels.has_value());
  const far::Request request{far::Operation::write, page, bytes.data(), 0};
  far::Completion done{};
  return (*channels)->submit({&request, 1}) == 1 && (*channels)->poll({&done, 1}) == 1 && done.error == 0;
}

// What a thread of the program writes meanwhile may be in either. Where a page is not replaced it is as it was. Pages
// that are being moved, or that the heap has, are not the program's to name.
void Interleaving::replace(Range range) {
  InsideRuntime inside;
  Pager::Impl& parts = machine_->parts();
  scheduler_.block_until("the heap to be done with the pages", [this] { return reusing_ == 0; });
  ++replacing_;
  for (std::uint32_t page = range.first; page < range.first + range.count; ++page) {
    Pager::Impl::Replacement wanted{{}, {}, 0};
    int error = 0;
    if (parts.core.devices.allocate(0, {&wanted.far, 1}, &error) == 0) continue;
    std::array<std::uint64_t, Ghost::kWords> words{};
    for (std::uint64_t& word : words) word = ++next_value_ << 8 | 0xff;
    bool done = write_far(wanted.far, words);
    scheduler_.remember_only(mix(67, next_value_));
    if (done) {
      const std::uint64_t began = ghost_.begin_replacing(page, words);
      MapGuard guard(parts);
      wanted.page = parts.core.window.index_of(address_of(page));
      done = moves_ == 0 && parts.replace({&wanted, 1}) == 1;
      ghost_.end_replacing(page, began, words, done);
    }
    scheduler_.observe(done);
    if (!done) parts.core.devices.release({&wanted.far, 1});
  }
  --replacing_;
}

bool Interleaving::patch_far(far::FarPage from, far::FarPage to, std::uint64_t value) {
  alignas(kPageSize) std::array<std::byte, kPageSize> bytes{};
  std::array<std::uint64_t, Ghost::kWords> words;
  auto channels = machine_->core().devices.open_channels();
  HL_CHECK(channels.has_value());
  const far::Request request{far::Operation::read, from, bytes.data(), 0};
  far::Completion done{};
  if ((*channels)->submit({&request, 1}) != 1 || (*channels)->poll({&done, 1}) != 1 || done.error != 0) return false;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  words[0] = value;
  return write_far(to, words);
}

// What threads of the program write meanwhile to other words stays.
void Interleaving::patch(Range range) {
  InsideRuntime inside;
  Pager::Impl& parts = machine_->parts();
  scheduler_.block_until("the heap to be done with the pages", [this] { return reusing_ == 0; });
  ++replacing_;
  for (std::uint32_t page = range.first; page < range.first + range.count; ++page) {
    Pager::Impl::Replacement wanted{{}, {}, 0};
    {
      MapGuard guard(parts);
      if (moves_ == 0)
        wanted.instead_of =
            borrow_far(parts.core, parts.core.window.index_of(address_of(page)), [](std::uint32_t) { return true; });
    }
    scheduler_.observe(wanted.instead_of.has_value());
    if (!wanted.instead_of) continue;
    const std::uint64_t value = ++next_value_ << 8 | 0xfe;
    int error = 0;
    const bool has_room = parts.core.devices.allocate(0, {&wanted.far, 1}, &error) == 1;
    bool done = has_room && patch_far(*wanted.instead_of, wanted.far, value);
    scheduler_.remember_only(mix(mix(69, value), wanted.instead_of->value));
    if (done) {
      const std::uint64_t began = ghost_.begin_patching(page, value);
      MapGuard guard(parts);
      wanted.page = parts.core.window.index_of(address_of(page));
      done = moves_ == 0 && parts.replace({&wanted, 1}) == 1;
      ghost_.end_patching(page, began, value, done);
    }
    scheduler_.observe(done);
    if (has_room && !done) parts.core.devices.release({&wanted.far, 1});
    parts.core.devices.give_back({&*wanted.instead_of, 1});
  }
  --replacing_;
}

// A thread that writes while the pages are on their way may find its write in neither place: Linux would have killed
// it. What was written before must be there. Where the old place stays, Linux kills nobody, and then the write is in
// one of the two: look_behind().
void Interleaving::remap(bool keep_old) {
  InsideRuntime inside;
  look_behind();
  ++mapping_calls_;
  ++moves_;
  Ghost before = ghost_;
  std::vector<std::uint64_t> began;
  began.reserve(options_.pages);
  for (std::uint32_t page = 0; page < options_.pages; ++page) began.push_back(ghost_.begin(page));
  std::uintptr_t length = bytes_of_pages(options_.pages), base = machine_->address_of(0);
  std::uintptr_t target = data_ == base ? machine_->address_of(window_pages_ / 2) : base;
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED | (keep_old ? MREMAP_DONTUNMAP : 0);
  if (machine_->pager().remap(data_, length, length, flags, target) < 0)
    fail("remap failed", 0);
  else
    std::swap(data_, target);
  for (std::uint32_t page = 0; page < options_.pages; ++page) {
    if (keep_old) behind_.push_back({target + bytes_of_pages(page), page, ghost_.written_since(page, began[page])});
    ghost_.end_moving(page, began[page], before);
  }
  --moves_;
  --mapping_calls_;
}

// I2: nobody writes any more to the places that pages were moved from and that stayed. Each holds what was last
// written while the page was moved, or that came along. By the program, so that it may take faults.
void Interleaving::look_behind() {
  for (const Behind& left : behind_) {
    if (Scheduler::running() == nullptr ? !machine_->touch(index_of(left.place), false) : !reach_at(left.place))
      continue;
    for (std::size_t word = 0; word < Ghost::kWords; ++word) {
      std::uint64_t value = 0, written = left.written[word];
      kernel_->load(&value, left.place + word * sizeof value, sizeof value);
      if (written == 0 && value != 0) fail("the place that it was moved from does not read as zeros", left.page);
      if (written != 0 && value != written) ghost_.settle(left.page, word, written);
    }
  }
  behind_.clear();
}

void Interleaving::fork(bool fails) {
  InsideRuntime inside;
  end_child();  // of an earlier fork; it has ended
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
  auto shared = [&](far::FarPage far) {
    bytes = static_cast<const std::uint64_t*>(machine_->device()->peek(far));
    child_.push_back({far, {}});
    std::copy_n(bytes, Ghost::kWords, child_.back().words.begin());
  };
  switch (word.state()) {
    case PageState::resident:
      bytes = reinterpret_cast<const std::uint64_t*>(address_of(page));
      break;
    case PageState::far:
      shared(word.far_page());
      break;
    case PageState::parked:
      shared(core.frames[word.frame()].far);
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
