// Setting an interleaving up, running it, and what must hold.
#include "paging/testing/interleaving.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "paging/testing/step_seams.hpp"

namespace hinterland::testing {
namespace {

// Victims by address: what the policy will say next follows from which pages it lists, whatever the order in which
// they came. That keeps the number of states down, and any order is a legal one.
struct LowestFirst {
  std::uint64_t pages;
};
LowestFirst* g_lowest_first = nullptr;
Interleaving* g_interleaving = nullptr;  // the one there is

LowestFirst& of(void* state) { return *static_cast<LowestFirst*>(state); }

const hl_policy_ops kLowestFirst = {
    .abi_version = HL_POLICY_ABI_VERSION,
    .name = "lowest-first",
    .help = "",
    .create = [](const hl_policy_env* env) -> void* {
      g_lowest_first = static_cast<LowestFirst*>(env->reserve(kPageSize));
      return g_lowest_first;
    },
    .arrived =
        [](void* state, hl_page first, uint32_t count, hl_arrival, uint8_t) {
          for (std::uint32_t page = first; page < first + count; ++page) of(state).pages |= std::uint64_t{1} << page;
        },
    .departed =
        [](void* state, hl_page first, uint32_t count) {
          for (std::uint32_t page = first; page < first + count; ++page)
            of(state).pages &= ~(std::uint64_t{1} << page);
        },
    .choose_victims = [](void* state, hl_page* out, uint32_t max) -> uint32_t {
      std::uint32_t chosen = 0;
      if (Scheduler::running() != nullptr && !g_interleaving->evictor_goes_round()) return 0;
      for (std::uint64_t& pages = of(state).pages; pages != 0 && chosen < max; pages &= pages - 1)
        out[chosen++] = static_cast<hl_page>(std::countr_zero(pages));
      if (Scheduler* scheduler = Scheduler::running()) {
        for (std::uint32_t i = 0; i < chosen; ++i) scheduler->observe(out[i]);
      }
      return chosen;
    },
    .size = [](void* state) -> uint64_t { return static_cast<std::uint64_t>(std::popcount(of(state).pages)); },
    .accessed = nullptr,
    .missed = nullptr,
    .flags = 0,
};

hl_policy_ops keeps_nothing_in_frames() {
  hl_policy_ops ops = kLowestFirst;
  // While the pages are brought to where they start, all are.
  ops.worth_a_frame = [](void*, hl_page) { return Scheduler::running() == nullptr ? 1 : 0; };
  return ops;
}
const hl_policy_ops kKeepsNothingInFrames = keeps_nothing_in_frames();

}  // namespace

Interleaving::Interleaving(const InterleavingOptions& options)
    : options_(options), window_pages_(std::max(8u, 4 * options.pages)), scheduler_(*this), ghost_(options.pages) {
  MachineOptions machine;
  machine.features.move = options.move;
  machine.take_by_move = options.move;
  machine.features.write_protect = options.write_protect;
  machine.features.look_for_faults = true;  // else it sleeps in poll(), which the scheduler does not see
  machine.direct = options.direct;
  machine.device_failures = options.trouble == Trouble::reads_fail || options.trouble == Trouble::one_read_fails;
  machine.policy = options.keeps_nothing_in_frames ? &kKeepsNothingInFrames : &kLowestFirst;
  machine.window_pages = window_pages_;
  machine.budget_pages = options.budget_pages;
  machine.frames = options.frames;
  auto kernel = std::make_unique<SteppedKernel>(machine.features);
  kernel_ = kernel.get();
  begin_machine(kernel_);
  g_interleaving = this;
  machine_ = std::make_unique<PageMachine>(machine, 1, std::move(kernel));
  kernel_->watch(machine_->address_of(0), window_pages_);
  FlakyDevice& device = *machine_->device();
  device.decide = [this](std::size_t choices) {
    return Scheduler::running() != nullptr ? scheduler_.decide(choices) : 0;
  };
  device.on_discard = [this](std::span<const far::FarPage> pages) { discarded(pages); };
  SecondChance& second_chance = machine_->core().second_chance;
  second_chance.enabled = options.second_chance;
  for (int hit = 0; hit < 1000; ++hit) second_chance.note_hit();  // if at all, it pays
  prepare();
}

// From the outside in, because who makes pages far takes all that are resident.
void Interleaving::prepare() {
  std::uint32_t pages = options_.pages;
  machine_->map(0, pages, PROT_READ | PROT_WRITE);
  data_ = machine_->address_of(0);
  bring_to({Start::far, Start::clean});
  while (machine_->core().budget.local() != 0) machine_->evict(pages);
  bring_to({Start::parked});
  park_all();
  bring_to({Start::dirty, Start::freed});
  for (std::uint32_t page = 0; page < pages; ++page) {
    if (start_of(page) == Start::clean) HL_CHECK(machine_->touch(page, false));
    if (start_of(page) != Start::freed) continue;
    machine_->pager().decommit(address_of(page), kPageSize);
    ghost_.begin(page);  // and never ends: either is right
  }
  check_start();
  restart_handler();
}

void Interleaving::bring_to(std::initializer_list<Start> starts) {
  for (std::uint32_t page = 0; page < options_.pages; ++page) {
    if (std::find(starts.begin(), starts.end(), start_of(page)) == starts.end()) continue;
    HL_CHECK(machine_->touch(page, true));
    std::uint64_t value = 1000 + page;
    kernel_->store(address_of(page), &value, sizeof value);
    ghost_.set(page, 0, value);
  }
}

// An evictor that finds nothing to take lets frames expire until it has freed what it was asked for. So there is one
// page more, behind the others and freed: when it goes, the others are parked, and that is enough.
void Interleaving::park_all() {
  std::uint32_t extra = options_.pages;
  if (g_lowest_first->pages == 0) return;
  machine_->map(extra, 1, PROT_READ | PROT_WRITE);
  HL_CHECK(machine_->touch(extra, true));
  machine_->pager().decommit(machine_->address_of(extra), kPageSize);
  HL_CHECK(machine_->reclaim(1) == 1);
  machine_->unmap(extra, 1);
}

void Interleaving::check_start() {
  static constexpr std::array kStates = {PageState::untouched, PageState::resident, PageState::resident,
                                         PageState::parked,    PageState::far,      PageState::resident};
  for (std::uint32_t page = 0; page < options_.pages; ++page) {
    PageWord word = machine_->core().pages[{page}].load();
    Start start = start_of(page);
    HL_CHECK(word.state() == kStates[static_cast<std::size_t>(start)]);
    HL_CHECK(word.has_far() == (start == Start::far || start == Start::clean));
    HL_CHECK(word.discardable() == (start == Start::freed));
  }
}

// A new one has seen no faults: what it reads ahead does not depend on the preparations. One fault behind the last
// page, and the next on the last page itself is a stream that runs downwards (streams.cpp).
void Interleaving::restart_handler() {
  Pager::Impl& parts = machine_->parts();
  kernel_->reads_ahead = options_.pages > 1;
  if (options_.pages == 1) parts.core.read_ahead_pages_max = 1;
  HL_CHECK(parts.handlers.create(*parts.direct).has_value());
  if (options_.read_ahead) machine_->serve({machine_->address_of(options_.pages), 0, false, false});
}

// An evictor that starts a round knows how many it has made and what it has freed, nothing else.
bool Interleaving::evictor_goes_round() {
  std::size_t mover = scheduler_.current();
  if (!evicting_[mover]) return true;  // the handler, which knows more
  scheduler_.remember_only(mix(mix(60, ++rounds_[mover]), kernel_->dropped(mover)));
  return rounds_[mover] <= options_.rounds_max;
}

void Interleaving::fail(const std::string& what, std::uint32_t page) {
  if (!wrong_.empty()) return;
  wrong_ = (Scheduler::running() != nullptr ? scheduler_.name(scheduler_.current()) : "in the end") + ": " + what +
           ", page " + std::to_string(page);
}

std::string Interleaving::run(const Scheduler::Choose& choose, std::uint64_t steps_max) {
  FlakyDevice::Faults& faults = machine_->device()->faults;
  switch (options_.trouble) {
    case Trouble::none:
      break;
    case Trouble::reads_fail:
      faults.reads = 1;
      break;
    case Trouble::one_read_fails:
      faults.reads = 0.5;
      break;
    case Trouble::writes_fail:
      faults.writes = 1;
      break;
    case Trouble::one_write_fails:
      faults.writes = 0.5;
      break;
    case Trouble::device_full:
      faults.full = true;
      HL_CHECK(machine_->core().devices.after_fork_in_child().has_value());  // forgets its spare slab
      break;
    case Trouble::pinned:
      if (kernel_->look(address_of(target())).present) kernel_->pin(address_of(target()), true);
      kernel_->discarding_pinned_is_fine = true;
      break;
    case Trouble::shared:
      kernel_->share_all();
      break;
    case Trouble::move_again:
      kernel_->failures.moves = 1;
      kernel_->failures.move_error = -EAGAIN;
      break;
    case Trouble::short_calls:
      kernel_->failures.partial_pages = 1;
  }
  HandlerTeam& handlers = machine_->parts().handlers;
  scheduler_.add("the fault handler", [&handlers] { handlers.first().run(); }, true);
  if (options_.two_handlers) {
    auto second = handlers.add();
    HL_CHECK(second.has_value());
    scheduler_.add("the second fault handler", [second = *second] { second->run(); }, true);
  }
  std::string stuck = scheduler_.run(choose, steps_max);
  if (!stuck.empty()) {
    static_cast<void>(machine_.release());  // somebody still waits in it
    return stuck + wrong_;
  }
  return finish();
}

std::string Interleaving::finish() {
  faults_over();
  if (!wrong_.empty()) return wrong_;
  look_behind();
  for (std::uint32_t page = 0; page < options_.pages; ++page) {
    if (!machine_->touch(index_of(address_of(page)), false))
      continue;  // lost; or it failed, and check_invariants() says why
    for (std::size_t word = 0; word < Ghost::kWords; ++word) look(page, word);
  }
  if (!wrong_.empty()) return wrong_;
  machine_->adopt_all();
  settle_policy();
  return machine_->check_invariants(0);
}

// An evictor that finds a page busy gives it back to the policy, and may come just too late: the policy then lists a
// page that is gone, and the next evictor that chooses it finds that out. The other way round would be a leak.
void Interleaving::settle_policy() {
  std::uint64_t resident = 0;
  for (std::uint32_t page = 0; page < window_pages_; ++page)
    if (machine_->core().pages[{page}].load().state() == PageState::resident) resident |= std::uint64_t{1} << page;
  if ((resident & ~g_lowest_first->pages) == 0) g_lowest_first->pages = resident;
}

void Interleaving::faults_over() {
  machine_->device()->faults = {};
  kernel_->failures = {};
  end_child();
}

// A far page that a forked child shares is the child's until it has ended (I4: else it reads what others write
// there).
void Interleaving::discarded(std::span<const far::FarPage> pages) {
  for (far::FarPage page : pages)
    for (const ChildPage& held : child_)
      if (held.far == page) fail("I4: a far page is free that a forked child still needs", 0);
}

void Interleaving::end_child() {
  for (const ChildPage& held : child_)
    if (std::memcmp(machine_->device()->peek(held.far), held.words.data(), sizeof held.words) != 0)
      fail("I4: a far page of a forked child has changed", 0);
  child_.clear();
  machine_->core().devices.cancel_child();  // it holds nothing any more
}

std::uint64_t Interleaving::look(std::uint32_t page, std::size_t word) {
  std::uint64_t value = 0;
  kernel_->load(&value, address_of(page) + word * sizeof value, sizeof value);
  if (!ghost_.allows(page, word, value))
    fail("word " + std::to_string(word) + " holds " + std::to_string(value) + ", which nobody wrote there last",
         page);
  else
    ghost_.seen(page, word, value);
  return value;
}

// --- Scheduler::Listener ----------------------------------------------------------------------------------------

std::uint64_t Interleaving::name_of(const void* cell) {
  Core& core = machine_->core();
  auto at = reinterpret_cast<std::uintptr_t>(cell);
  std::uintptr_t cell_number = (at - core.pages.words_address()) / sizeof(PageCell);
  if (cell_number < PageTable::kSharedCells) return kNobodysCell;
  std::uintptr_t dense = cell_number - PageTable::kSharedCells;
  if (dense < core.pages.dense_count()) return core.pages.page_of(static_cast<std::uint32_t>(dense)).value;
  return at - reinterpret_cast<std::uintptr_t>(&core.frames[0]);
}

// I1 in the words themselves: they change only by who holds the busy bit, or takes it, or says that it waits.
void Interleaving::word_changed(const void* cell, std::uint64_t before, std::uint64_t after) {
  auto page = static_cast<std::uint32_t>(name_of(cell));
  PageWord was(before), is(after);
  std::size_t& holder = kernel_->holder(page);
  if (!was.busy()) {
    if (after != (before | PageWord::kBusy)) fail("I1: changed the word of a page that nobody holds", page);
    holder = scheduler_.current();
    return;
  }
  bool announces = after == (before | PageWord::kWaiters);
  if (holder != scheduler_.current() && !announces) fail("I1: changed the word of a page that another holds", page);
  if (!is.busy()) holder = SteppedKernel::kNobody;
}

void Interleaving::stepped() {
  if (!wrong_.empty()) return;
  if (!kernel_->violations().empty()) {
    wrong_ = kernel_->violations();
    return;
  }
  for (std::uint32_t page = 0; page < window_pages_; ++page) check_page(page);
  check_bound();
}

// What must hold of a page that nobody is working on, at any time.
void Interleaving::check_page(std::uint32_t page) {
  PageWord word = machine_->core().pages[{page}].load();
  const FakeKernel::Page& flags = kernel_->look(machine_->address_of(page));
  // Between the call that unmaps and the visit to the word nothing is promised, but that the visit comes.
  if (word.busy() || !flags.registered) return;
  switch (word.state()) {
    case PageState::resident:
      if (word.dirty() == word.has_far()) fail("I3: dirty <=> no far copy", page);
      if (!word.dirty() && flags.present && !flags.write_protected) fail("I3: clean, and writable", page);
      break;
    case PageState::lost:
      if (flags.present || !flags.poisoned) fail("I4: lost, and can be read", page);
      break;
    case PageState::untouched:
    case PageState::parked:
    case PageState::far:
      if (flags.present) fail("I1: there, though its word says that it is not", page);
      break;
    case PageState::leaving:
    case PageState::arriving:
      fail("I1: on its way without a mover", page);
  }
}

// I5 in the midst of things: what is there is counted, but for pages that a mover has in its hands.
void Interleaving::check_bound() {
  Core& core = machine_->core();
  std::int64_t there = static_cast<std::int64_t>(
      kernel_->present_pages(machine_->address_of(0), bytes_of_pages(window_pages_)) +
      kernel_->present_pages(core.frames.address_of(0), bytes_of_pages(core.frames.capacity())));
  std::int64_t in_hand = 0;
  for (std::uint32_t page = 0; page < window_pages_; ++page) in_hand += core.pages[{page}].load().busy();
  if (there > core.budget.local() + in_hand) fail("I5: more pages are local than the budget counts", 0);
}

std::uint64_t Interleaving::state() const {
  Core& core = machine_->core();
  std::uint64_t hash = mix(scheduler_.knowledge(), ghost_.hash());
  auto bytes = [&](const void* memory) {
    const auto* words = static_cast<const std::uint64_t*>(memory);
    for (std::size_t word = 0; word < Ghost::kWords; ++word) hash = mix(hash, words[word]);
  };
  auto flags = [&](std::uintptr_t address) {
    const FakeKernel::Page& page = kernel_->look(address);
    hash = mix(hash, static_cast<std::uint64_t>(page.registered | page.present << 1 | page.write_protected << 2 |
                                                page.poisoned << 3 | page.pinned << 4 | page.shared << 5 |
                                                page.waiting << 6 | page.protection << 8));
    if (page.present && (page.protection & PROT_READ) != 0) bytes(reinterpret_cast<const void*>(address));
  };
  for (std::uint32_t page = 0; page < window_pages_; ++page) {
    PageWord word = core.pages[{page}].load();
    hash = mix(hash, word.bits());
    if (word.has_far()) bytes(machine_->device()->peek(word.far_page()));
    flags(machine_->address_of(page));
  }
  for (std::uint32_t index = 0; index < core.frames.capacity(); ++index) {
    Frame& frame = core.frames[index];
    hash = mix(mix(hash, static_cast<std::uint64_t>(frame.state.peek())), frame.page.load().value);
    if (frame.state.peek() == FrameState::parked) bytes(machine_->device()->peek(frame.far));
    flags(core.frames.address_of(index));
  }
  hash = mix(mix(hash, static_cast<std::uint64_t>(core.budget.local())), g_lowest_first->pages);
  for (const ChildPage& held : child_) {
    hash = mix(hash, held.far.value);
    bytes(machine_->device()->peek(held.far));
  }
  hash = mix(mix(hash, kernel_->waiting_messages()), core.devices.pages_in_use());
  return mix(mix(mix(hash, data_), mapping_calls_), moves_ | replacing_ << 8 | reusing_ << 16);
}

std::string name_of(MoverSpec mover) {
  static constexpr std::array kNames = {"read",       "write",   "evict", "evict-direct", "drop",
                                        "unmap",      "protect", "remap", "remap-keep",   "fork",
                                        "fork-fails", "reuse",   "hold",  "replace",      "patch"};
  static constexpr std::array kParts = {"", "-first", "-last"};
  return std::string(kNames[static_cast<std::size_t>(mover.kind)]) + kParts[static_cast<std::size_t>(mover.part)];
}

const char* name_of(Start start) {
  static constexpr std::array kNames = {"untouched", "dirty", "clean", "parked", "far", "freed"};
  return kNames[static_cast<std::size_t>(start)];
}

const char* name_of(Trouble trouble) {
  static constexpr std::array kNames = {
      "none",        "reads-fail", "one-read-fails", "writes-fail", "one-write-fails",
      "device-full", "pinned",     "shared",         "move-again",  "short-calls"};
  return kNames[static_cast<std::size_t>(trouble)];
}

}  // namespace hinterland::testing
