// The random program: one step at a time.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "paging/testing/page_machine.hpp"

namespace hinterland::testing {

template <typename Property>
PageMachine::Range PageMachine::random_run(std::uint32_t most, Property&& property) {
  std::uint32_t first = any_page(), tried = 0;
  while (!property(first) && ++tried < options_.window_pages) first = (first + 1) % options_.window_pages;
  std::uint32_t wanted = 1 + below(most), count = 0;
  while (count < wanted && first + count < options_.window_pages && property(first + count)) ++count;
  return {first, count};
}

void PageMachine::random_step() {
  struct Kind {
    std::uint32_t weight;
    const char* name;
    void (PageMachine::*step)();
  };
  static constexpr std::array kKinds = {
      Kind{400, "access", &PageMachine::step_access},
      Kind{40, "stream", &PageMachine::step_stream},
      Kind{60, "hint", &PageMachine::step_hint},
      Kind{40, "crowd", &PageMachine::step_crowd},
      Kind{120, "evict", &PageMachine::step_evict},
      Kind{12, "mappings", &PageMachine::step_mappings},
      Kind{25, "protect", &PageMachine::step_protect},
      Kind{40, "heap", &PageMachine::step_heap},
      Kind{10, "remap", &PageMachine::step_remap},
      Kind{30, "pins and sharing", &PageMachine::step_pins_and_sharing},
      Kind{30, "device write", &PageMachine::step_device_write},
      Kind{20, "send", &PageMachine::step_send},
      Kind{30, "failures", &PageMachine::step_failures},
      Kind{30, "collision", &PageMachine::step_collision},
      Kind{60, "stale message", &PageMachine::step_stale_message},
  };
  std::uint32_t all = 0;
  for (const Kind& kind : kKinds) all += kind.weight;
  std::uint32_t at = below(all);
  for (const Kind& kind : kKinds) {
    if (at < kind.weight) {
      last_step_ = kind.name;
      (this->*kind.step)();
      return;
    }
    at -= kind.weight;
  }
}

void PageMachine::step_access() {
  // Half of all accesses go to an eighth of the memory.
  std::uint32_t page = random_() % 2 == 0 ? any_page() : any_page() / 8 * 8;
  std::uint32_t kind = below(8);
  if (kind < 4) {
    if (accessible(page, PROT_READ)) read(page);
  } else if (accessible(page, PROT_READ | PROT_WRITE)) {
    write(page, kind == 7);
  }
}

// Sometimes two threads want the same page.
void PageMachine::step_crowd() {
  std::vector<std::uint32_t> pages;
  for (std::uint32_t left = 1 + below(24); left > 0; --left)
    if (std::uint32_t page = any_page(); accessible(page, PROT_READ)) pages.push_back(page);
  if (!pages.empty() && random_() % 4 == 0) pages.push_back(pages.front());
  read_together(pages);
}

void PageMachine::step_stream() {
  bool write_it = random_() % 2 == 0, down = random_() % 4 == 0;
  auto [first, count] =
      random_run(60, [this](std::uint32_t page) { return accessible(page, PROT_READ | PROT_WRITE); });
  std::uint32_t step = below(3) == 0 ? 4 + below(3) : 1;
  for (std::uint32_t i = 0; i < count; i += step) {
    std::uint32_t page = down ? first + count - 1 - i : first + i;
    if (write_it)
      write(page);
    else
      read(page);
  }
}

// Hints of every kind, good and bad: the program is not held to what it says.
void PageMachine::step_hint() {
  Hint wanted{.address = address_of(any_page()) + below(kPageSize)};
  switch (below(8)) {
    case 0:
      wanted.address = random_();  // anywhere
      break;
    case 1:
      wanted.size = random_();  // far beyond the end
      break;
    default:
      wanted.size = below(2) == 0 ? below(16) : bytes_of_pages(below(40));
  }
  wanted.read_ahead = static_cast<std::int32_t>(below(200)) - 100;
  if (below(4) != 0) wanted.read_ahead = 0;
  wanted.read_ahead_limited = below(2) == 0;
  wanted.write = below(2) == 0;
  wanted.priority = static_cast<std::uint8_t>(below(16));
  if (below(8) == 0) return pager_->cold(wanted.address, wanted.size);
  below(2) == 0 ? hint(wanted) : begin_hint(wanted);
}

void PageMachine::step_evict() { evict(1 + below(random_() % 4 == 0 ? options_.budget_pages : 16)); }

void PageMachine::step_mappings() {
  auto pages = static_cast<std::uint32_t>(std::count_if(shadows_.begin(), shadows_.end(), [](const Shadow& shadow) {
    return shadow.state != Shadow::State::unmapped;
  }));
  if (pages < options_.window_pages / 2 || (pages < options_.window_pages * 3 / 4 && random_() % 2 == 0)) {
    std::uint32_t count = 1 + below(64);
    map(below(options_.window_pages - count), count, random_() % 8 == 0 ? PROT_READ : PROT_READ | PROT_WRITE);
    return;
  }
  auto [first, count] = random_run(48, [](std::uint32_t) { return true; });
  unmap(first, count);
}

void PageMachine::step_protect() {
  static constexpr std::array kProtections = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE};
  auto [first, count] = random_run(32, [this](std::uint32_t page) { return accessible(page, PROT_NONE); });
  if (count != 0) protect(first, count, kProtections[below(kProtections.size())]);
}

void PageMachine::step_heap() {
  switch (below(4)) {
    case 0: {
      auto [first, count] = random_run(32, [this](std::uint32_t page) { return accessible(page, PROT_NONE); });
      if (count != 0) drop(first, count);
      break;
    }
    case 1: {
      auto [first, count] =
          random_run(32, [this](std::uint32_t page) { return accessible(page, PROT_READ | PROT_WRITE); });
      if (count != 0) decommit(first, count);
      break;
    }
    default: {
      auto [first, count] =
          random_run(48, [this](std::uint32_t page) { return shadows_[page].state == Shadow::State::undefined; });
      if (count != 0) below(2) == 0 ? commit(first, count) : commit_uncleared(first, count);
    }
  }
}

void PageMachine::step_remap() {
  int protection = random_() % 4 == 0 ? PROT_READ : PROT_READ | PROT_WRITE;
  auto [first, count] = random_run(
      32, [&](std::uint32_t page) { return accessible(page, PROT_NONE) && shadows_[page].protection == protection; });
  if (count != 0) remap(first, count, std::max(1u, random_() % 2 == 0 ? count : 1 + below(2 * count)));
}

void PageMachine::step_pins_and_sharing() {
  if (!options_.take_by_move) return;  // without MOVE the kernel cannot tell us about pins
  std::uint32_t page = any_page();
  switch (below(4)) {
    case 0:
      kernel_.share_all();
      break;
    case 1:
      if (accessible(page, PROT_READ | PROT_WRITE) && touch(page, true)) {
        kernel_.failures = {};  // an injected EINVAL would hide the pin from the pager
        kernel_.pin(address_of(page), true);
        pinned_.push_back(page);
      }
      break;
    default:
      if (pinned_.empty()) return;
      page = pinned_[below(static_cast<std::uint32_t>(pinned_.size()))];
      std::erase(pinned_, page);
      if (kernel_.look(address_of(page)).pinned) kernel_.pin(address_of(page), false);
  }
}

// A device writes into a page that it pinned: no fault, no message.
void PageMachine::step_device_write() {
  if (pinned_.empty()) return;
  std::uint32_t page = pinned_[below(static_cast<std::uint32_t>(pinned_.size()))];
  if (!kernel_.look(address_of(page)).pinned) {  // unmapped or moved since
    std::erase(pinned_, page);
    return;
  }
  std::byte value{static_cast<unsigned char>(random_())};
  std::size_t offset = below(kPageSize);
  shadows_[page].bytes[offset] = value;
  kernel_.store(address_of(page) + offset, &value, 1);
  sent_.written(page, shadows_[page].bytes);
}

// Pages go to others by reference, and are received much later.
void PageMachine::step_send() {
  if (sent_.count() == SentPages::kMost) sent_.receive(below(SentPages::kMost));
  std::uint32_t page = any_page();
  if (accessible(page, PROT_READ)) send(page);
}

void PageMachine::step_failures() {
  static constexpr std::array kMoveErrors = {-EAGAIN, -EBUSY, -ENOMEM, -EINVAL};
  kernel_.failures = {};
  if (device_ != nullptr) device_->faults = {};
  if (second_ != nullptr) second_->faults = {};
  FlakyDevice* failing = second_ != nullptr && random_() % 2 == 0 ? second_ : device_;
  core().budget.set_limit(bytes_of_pages(options_.budget_pages));
  switch (below(8)) {
    case 0:
      kernel_.failures.moves = static_cast<int>(1 + below(8));
      kernel_.failures.move_error = kMoveErrors[below(kMoveErrors.size() - !pinned_.empty())];
      break;
    case 1:
      kernel_.failures.copies = static_cast<int>(1 + below(3));
      kernel_.failures.copy_error = random_() % 32 == 0 ? -ENOMEM : -EAGAIN;
      break;
    case 2:
      kernel_.failures.protections = static_cast<int>(1 + below(4));
      kernel_.failures.protection_error = -EAGAIN;
      break;
    case 3:
      kernel_.failures.partial_pages = 1 + below(4);
      break;
    case 4:
      core().budget.set_limit(bytes_of_pages(options_.budget_pages / 2 + below(options_.budget_pages)));
      break;
    case 5:
      if (options_.device_failures) failing->faults.writes = random_() % 2 == 0 ? 0.3 : 1.0;
      break;
    case 6:
      if (options_.device_failures) failing->faults.reads = 0.05;
      break;
    default:
      if (options_.device_failures) failing->faults.full = true;
  }
}

// Another mover holds the page while the program touches it, and the evictors come by.
void PageMachine::step_collision() {
  std::uint32_t page = any_page();
  PageWord word;
  if (!accessible(page, PROT_READ | PROT_WRITE)) return;
  core().pages.note_used({page});
  if (!core().pages[{page}].try_lock(&word)) return;
  FakeKernel::Outcome outcome = kernel_.access(address_of(page), random_() % 2 == 0);
  bool waits = outcome.result == FakeKernel::Access::fault;
  if (waits) serve(outcome.message);
  if (waits && !kernel_.look(address_of(page)).waiting) fail("a page was moved that another mover holds", page);
  evict(1 + below(32));
  core().transitions.none({page}, word);
  if (kernel_.look(address_of(page)).waiting) fail("who waited for a busy page was not woken", page);
}

// A message that was true when it was sent, or for a page that was unmapped since.
void PageMachine::step_stale_message() {
  std::uint32_t page = any_page();
  bool write = random_() % 2 == 0;
  serve({address_of(page), 0, write, write && random_() % 2 == 0});
}

}  // namespace hinterland::testing
