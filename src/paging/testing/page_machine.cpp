// Building the machine, and what its program can do.
#include "paging/testing/page_machine.hpp"

#include <sys/mman.h>

#include <cstring>

#include "base/check.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

std::unique_ptr<Pager> PagerParts::assemble(Window&& window, Pager::Impl* impl) {
  std::unique_ptr<Pager> pager(new Pager);
  impl->core.window = std::move(window);
  pager->base_ = impl->core.window.base();
  pager->bytes_ = impl->core.window.bytes();
  pager->impl_ = impl;
  return pager;
}

namespace testing {

PageMachine::PageMachine(const MachineOptions& options, std::uint64_t seed, std::unique_ptr<FakeKernel> kernel)
    : options_(options),
      random_(seed),
      owned_kernel_(kernel != nullptr ? std::move(kernel) : std::make_unique<FakeKernel>(options.features)),
      kernel_(*owned_kernel_),
      shadows_(options.window_pages) {
  build(options, seed);
}

void PageMachine::build(const MachineOptions& options, std::uint64_t seed) {
  auto device = far::open_device(options.far_url.empty() ? "mem:" : options.far_url, {});
  HL_CHECK(device.has_value());
  if (options.far_url.empty()) {
    auto flaky = std::make_unique<FlakyDevice>(std::move(*device), options.direct, seed, options.at_once);
    device_ = flaky.get();
    *device = std::move(flaky);
  }
  std::size_t bytes = bytes_of_pages(options.window_pages);
  auto window = Window::reserve(bytes, bytes);
  HL_CHECK(window.has_value());
  parts_ = new Pager::Impl(kernel_, std::move(*device));
  parts_->options.policy = options.policy;
  pager_ = PagerParts::assemble(std::move(*window), parts_);
  base_ = pager_->window_base();

  Core& core = parts_->core;
  core.take_by_move = options.take_by_move && options.features.move;
  core.read_ahead_pages_max = options.read_ahead_pages;
  core.budget.set_limit(bytes_of_pages(options.budget_pages));
  core.second_chance.enabled = true;
  if (options.policy->worth_a_frame != nullptr) core.budget.park_an_eighth();
  parts_->leave_out(options.parts);
  HL_CHECK(core.pages.create(options.window_pages).has_value());
  HL_CHECK(core.marks.create(options.window_pages).has_value());
  HL_CHECK(core.forecast.create(options.window_pages).has_value());
  HL_CHECK(core.hint_map.create(options.window_pages).has_value());
  HL_CHECK(core.frames.create(options.frames).has_value());
  HL_CHECK(core.policy.create(options.policy, core.pages, {.hints = &core.hint_map}).has_value());
  HL_CHECK(core.devices.create_space(4 * bytes).has_value());
  HL_CHECK(core.frames.attach(kernel_) == 0);
  HL_CHECK(parts_->create_paging_parts().has_value());
  core.managed.store(true);
  if (options.second != MachineOptions::Second::none) add_second_device(seed + 1);
}

void PageMachine::add_second_device(std::uint64_t seed) {
  auto device = far::open_device("mem:", {});
  HL_CHECK(device.has_value());
  auto flaky =
      std::make_unique<FlakyDevice>(std::move(*device), options_.second == MachineOptions::Second::direct, seed);
  second_ = flaky.get();
  PolicyHost& policy = parts_->core.policy;
  auto number = parts_->add_device(std::move(flaky), "second");
  HL_CHECK(number.has_value());
  int pool = policy.open_pool(nullptr, PolicyHost::kCommonShare, -1, *number);
  HL_CHECK(pool > 0);
  policy.assign({{options_.window_pages / 2}, options_.window_pages / 2}, pool);
}

PageMachine::~PageMachine() {
  Core& core = parts_->core;
  raw_munmap(reinterpret_cast<void*>(base_), bytes_of_pages(options_.window_pages));
  raw_munmap(reinterpret_cast<void*>(core.frames.address_of(0)), bytes_of_pages(core.frames.capacity()));
  // A device that was opened on the way may have started the thread that gathers for hints, which lives as long as
  // the process and looks at its pager's parts.
  if (!parts_->gatherer_started) delete parts_;
}

void PageMachine::fail(const char* what, std::uint32_t page) {
  if (failure_.empty()) failure_ = std::string(what) + ", page " + std::to_string(page);
}

void PageMachine::serve(const FaultMessage& message) {
  parts_->handlers.first().serve(message);
  drain();
}

void PageMachine::drain() {
  while (parts_->handlers.first().in_flight() != 0) parts_->handlers.first().progress();
}

std::size_t PageMachine::reclaim(std::size_t pages) {
  return (random_() % 2 == 0 ? parts_->background : parts_->direct)->reclaim(pages);
}

bool PageMachine::touch(std::uint32_t page, bool write) {
  std::uintptr_t address = address_of(page);
  for (int tries = 0; tries < 50; ++tries) {
    FakeKernel::Outcome outcome = kernel_.access(address, write);
    switch (outcome.result) {
      case FakeKernel::Access::done:
        return true;
      case FakeKernel::Access::segmentation_fault:
        fail("the mapping is not there", page);
        return false;
      case FakeKernel::Access::bus_error:
        ++lost_seen_;
        if (!options_.device_failures) fail("lost, though the device never failed", page);
        return false;
      case FakeKernel::Access::fault:
        fetches_ += parts_->core.pages[{page}].load().state() == PageState::far;
        serve(outcome.message);
        if (kernel_.look(address).waiting) gather();  // what the gatherer is woken for
        if (kernel_.look(address).waiting) {
          fail("a fault was served and nobody woke", page);
          return false;
        }
    }
  }
  fail("faults for ever", page);
  return false;
}

void PageMachine::read(std::uint32_t page) {
  if (!touch(page, false)) return;
  std::array<std::byte, kPageSize> seen;
  kernel_.load(seen.data(), address_of(page), kPageSize);
  if (seen != shadows_[page].bytes) fail("the program read bytes that it had not written", page);
}

void PageMachine::read_together(std::span<const std::uint32_t> pages) {
  std::vector<FaultMessage> messages;
  for (std::uint32_t page : pages) {
    FakeKernel::Outcome outcome = kernel_.access(address_of(page), false);
    if (outcome.result == FakeKernel::Access::fault) messages.push_back(outcome.message);
  }
  if (!messages.empty()) parts_->handlers.first().serve_all(messages);
  drain();
  gather();
  for (std::uint32_t page : pages) {
    if (kernel_.look(address_of(page)).waiting) fail("a fault was served and nobody woke", page);
    read(page);
  }
}

void PageMachine::write(std::uint32_t page, bool zeros) {
  if (!touch(page, true)) return;
  Shadow& shadow = shadows_[page];
  if (zeros) {
    shadow.bytes.fill(std::byte{0});
    kernel_.store(address_of(page), shadow.bytes.data(), kPageSize);
    return sent_.written(page, shadow.bytes);
  }
  std::uint64_t word = random_() | 1;
  std::size_t offset = below(kPageSize / 8) * sizeof word;
  std::memcpy(&shadow.bytes[offset], &word, sizeof word);
  kernel_.store(address_of(page) + offset, &word, sizeof word);
  sent_.written(page, shadow.bytes);
}

void PageMachine::send(std::uint32_t page) {
  if (touch(page, false)) sent_.send(page, address_of(page), shadows_[page].bytes);
}

void PageMachine::begin_hint(const Hint& hint) {
  bool on_its_way = pager_->begin_hint(hint);
  if (on_its_way != pager_->is_on_its_way(hint)) fail("begin_hint() says otherwise than is_on_its_way()", 0);
}

void PageMachine::gather() {
  while (parts_->hints.anything_on_its_way())
    if (!pager_->poll_hints()) pager_->wait_for_hints(1'000'000);
}

void PageMachine::hint(const Hint& hint) {
  pager_->hint(hint);
  if (pager_->is_on_its_way(hint)) fail("a hint did not wait for its pages", 0);
  gather();
  for (std::uint32_t page = 0; page < options_.window_pages; ++page)
    if (core().pages[{page}].load().busy()) return fail("a hint left a page busy", page);
}

void PageMachine::adopt_all() {
  for (std::uint32_t page = 0; page < options_.window_pages; ++page) {
    Shadow& shadow = shadows_[page];
    const Region* region = parts_->regions.find(address_of(page));
    shadow.state = region == nullptr ? Shadow::State::unmapped : Shadow::State::valid;
    if (region == nullptr) continue;
    shadow.protection = region->protection;
    if (touch(page, false)) kernel_.load(shadow.bytes.data(), address_of(page), kPageSize);
  }
}

void PageMachine::zero_shadow(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t page = first; page < first + count; ++page) shadows_[page].bytes.fill(std::byte{0});
}

void PageMachine::map(std::uint32_t first, std::uint32_t count, int protection) {
  kernel_.unmapped(address_of(first), bytes_of_pages(count));
  std::intptr_t placed = pager_->map_at(address_of(first), bytes_of_pages(count), protection, 0, false);
  if (placed != static_cast<std::intptr_t>(address_of(first))) return fail("map_at failed", first);
  sent_.left(first, count);
  kernel_.mapped(address_of(first), bytes_of_pages(count), protection);
  zero_shadow(first, count);
  for (std::uint32_t page = first; page < first + count; ++page) {
    shadows_[page].state = Shadow::State::valid;
    shadows_[page].protection = protection;
  }
}

void PageMachine::unmap(std::uint32_t first, std::uint32_t count) {
  kernel_.unmapped(address_of(first), bytes_of_pages(count));
  if (pager_->unmap(address_of(first), bytes_of_pages(count)) != 0) fail("unmap failed", first);
  sent_.left(first, count);
  for (std::uint32_t page = first; page < first + count; ++page) shadows_[page].state = Shadow::State::unmapped;
}

// A pinned page in a mapping that MOVE refuses (not plainly writable) is taken by a copy, which cannot see the pin:
// a limit that the program here keeps away from.
void PageMachine::protect(std::uint32_t first, std::uint32_t count, int protection) {
  for (std::uint32_t page = first; page < first + count; ++page) kernel_.pin(address_of(page), false);
  if (pager_->protect(address_of(first), bytes_of_pages(count), protection) != 0) fail("protect failed", first);
  kernel_.protected_as(address_of(first), bytes_of_pages(count), protection);
  for (std::uint32_t page = first; page < first + count; ++page) shadows_[page].protection = protection;
}

void PageMachine::drop(std::uint32_t first, std::uint32_t count) {
  kernel_.discarding_pinned_is_fine = true;
  if (pager_->advise(address_of(first), bytes_of_pages(count), MADV_DONTNEED) != 0) fail("advise failed", first);
  kernel_.discarding_pinned_is_fine = false;
  sent_.left(first, count);
  zero_shadow(first, count);
}

void PageMachine::decommit(std::uint32_t first, std::uint32_t count) {
  sent_.freed(first, count);
  for (std::uint32_t page = first; page < first + count; ++page) {
    if (kernel_.look(address_of(page)).pinned) kernel_.pin(address_of(page), false);
    shadows_[page].state = Shadow::State::undefined;
  }
  pager_->decommit(address_of(first), bytes_of_pages(count));
}

void PageMachine::commit(std::uint32_t first, std::uint32_t count) {
  pager_->commit(address_of(first), bytes_of_pages(count));
  zero_shadow(first, count);
  for (std::uint32_t page = first; page < first + count; ++page) shadows_[page].state = Shadow::State::valid;
}

// What is there may be anything, but stays what it is; where nothing is, it is zeros.
void PageMachine::commit_uncleared(std::uint32_t first, std::uint32_t count) {
  pager_->commit_uncleared(address_of(first), bytes_of_pages(count));
  zero_shadow(first, count);
  for (std::uint32_t page = first; page < first + count; ++page) {
    Shadow& shadow = shadows_[page];
    shadow.state = Shadow::State::valid;
    if (kernel_.look(address_of(page)).present) kernel_.load(shadow.bytes.data(), address_of(page), kPageSize);
  }
}

void PageMachine::remap(std::uint32_t first, std::uint32_t count, std::uint32_t new_count) {
  std::uint32_t kept = std::min(count, new_count);
  int protection = shadows_[first].protection;
  for (std::uint32_t page = first; page < first + count; ++page) kernel_.pin(address_of(page), false);
  // Before the call, as in unmap(): what hints have on its way may arrive in the midst of it.
  if (new_count < count) kernel_.unmapped(address_of(first + new_count), bytes_of_pages(count - new_count));
  std::intptr_t result =
      pager_->remap(address_of(first), bytes_of_pages(count), bytes_of_pages(new_count), MREMAP_MAYMOVE, 0);
  if (result == -ENOMEM || result == -EFAULT) return;
  if (result < 0) return fail("remap failed", first);
  std::uint32_t target = static_cast<std::uint32_t>((static_cast<std::uintptr_t>(result) - base_) >> kPageShift);
  sent_.left(first + kept, count - kept);
  sent_.left(target + kept, new_count - kept);
  sent_.moved(first, kept, target);
  if (new_count > count) kernel_.mapped(address_of(target + count), bytes_of_pages(new_count - count), protection);
  if (target != first) {
    kernel_.unmapped(address_of(first), bytes_of_pages(count));
    for (std::uint32_t i = 0; i < kept; ++i) shadows_[target + i] = shadows_[first + i];
    for (std::uint32_t i = 0; i < count; ++i) shadows_[first + i].state = Shadow::State::unmapped;
  } else if (new_count < count) {
    for (std::uint32_t i = new_count; i < count; ++i) shadows_[first + i].state = Shadow::State::unmapped;
  }
  for (std::uint32_t i = kept; i < new_count; ++i) {
    shadows_[target + i] = {.state = Shadow::State::valid, .protection = protection, .bytes = {}};
  }
  kernel_.protected_as(address_of(target), bytes_of_pages(new_count), protection);
}

}  // namespace testing
}  // namespace hinterland
