// The invariants of docs/architecture.md, as equations over page words, frames, far space and the fake kernel's
// flags.
#include <algorithm>
#include <cstring>

#include "paging/testing/page_machine.hpp"

namespace hinterland::testing {
namespace {

std::string at_page(const char* what, std::uint32_t page, PageWord word) {
  char text[200];
  std::snprintf(text, sizeof text, "page %u, word %#llx: %s", page, static_cast<unsigned long long>(word.bits()),
                what);
  return text;
}

bool all_zero(const std::array<std::byte, kPageSize>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// What the hint map may say of the page at most.
// All that the map of hints may say of such a page.
unsigned map_of(PageWord word) {
  if (word.state() != PageState::resident) return 0;
  return HintMap::kThere | HintMap::kAsked | (word.dirty() ? HintMap::kWritable : 0u);
}

}  // namespace

std::string PageMachine::check_invariants(std::uint32_t sample) {
  if (!failure_.empty()) return failure_;
  if (!kernel_.violations().empty()) return kernel_.violations();
  Tally tally;
  for (std::uint32_t page = 0; page < options_.window_pages; ++page)
    if (std::string wrong = check_word(page, &tally); !wrong.empty()) return wrong;
  if (std::string wrong = check_frames(&tally); !wrong.empty()) return wrong;
  if (std::string wrong = check_totals(tally); !wrong.empty()) return wrong;
  if (std::string wrong = sent_.check(); !wrong.empty()) return wrong;
  for (std::uint32_t i = 0; i < (sample == 0 ? options_.window_pages : sample); ++i)
    if (std::string wrong = check_bytes(sample == 0 ? i : any_page()); !wrong.empty()) return wrong;
  return "";
}

std::string PageMachine::check_word(std::uint32_t page, Tally* tally) {
  PageWord word = core().pages[{page}].load();
  const FakeKernel::Page& flags = kernel_.look(address_of(page));
  auto wrong = [&](const char* what) { return at_page(what, page, word); };
  if (word.busy() && word.state() == PageState::arriving && parts_->hints.anything_on_its_way()) {
    ++tally->arriving;
    ++tally->far;
    return flags.present || flags.waiting ? wrong("on its way, and there or waited for") : "";
  }
  if (word.busy() || word.waiters()) return wrong("I1: busy, though nobody moves it");
  if (!mapped(page) && word.state() != PageState::untouched) return wrong("not mapped, and yet not forgotten");
  if (flags.waiting) return wrong("somebody waits for it, and nobody will wake him");
  if (word.discardable() && word.state() != PageState::resident) return wrong("discardable, but not resident");
  if (flags.present != (word.state() == PageState::resident)) return wrong("resident <=> present");
  if (flags.poisoned != (word.state() == PageState::lost)) return wrong("I4: lost <=> poisoned");
  if (core().hint_map.active() && (core().hint_map.of({page}) & ~map_of(word)) != 0)
    return wrong("the hint map promises more");
  if (word.has_far()) ++tally->far;
  switch (word.state()) {
    case PageState::untouched:
      return "";
    case PageState::resident:
      ++tally->resident;
      return check_resident(page, word);
    case PageState::parked: {
      if (word.frame() >= core().frames.capacity()) return wrong("parked in no frame");
      Frame& frame = core().frames[word.frame()];
      ++tally->parked;
      ++tally->far;
      return frame.state.load() == FrameState::parked && frame.page.load().value == page ? ""
                                                                                         : wrong("parked, not there");
    }
    case PageState::far:
      return word.has_far() ? "" : wrong("far, but nowhere");
    case PageState::lost:
      return "";
    case PageState::leaving:
    case PageState::arriving:
      break;
  }
  return wrong("on its way, though nothing moves");
}

std::string PageMachine::check_resident(std::uint32_t page, PageWord word) {
  const FakeKernel::Page& flags = kernel_.look(address_of(page));
  if (word.dirty() == word.has_far()) return at_page("I3: dirty <=> no far copy", page, word);
  if (!word.dirty() && !flags.write_protected) return at_page("I3: clean, but writable without a fault", page, word);
  if (word.dirty() && flags.write_protected) return at_page("dirty, but protected", page, word);
  return "";
}

std::string PageMachine::check_frames(Tally* tally) {
  std::int64_t parked = 0;
  for (std::uint32_t index = 0; index < core().frames.capacity(); ++index) {
    FrameState state = core().frames[index].state.load();
    bool there = kernel_.look(core().frames.address_of(index)).present;
    if (state == FrameState::leaving) return "frame " + std::to_string(index) + " still leaving";
    if (there != (state != FrameState::empty)) return "frame " + std::to_string(index) + " empty <=> absent";
    tally->frames += there;
    parked += state == FrameState::parked;
  }
  if (parked != tally->parked)
    return std::to_string(parked) + " frames parked, " + std::to_string(tally->parked) + " words";
  if (core().frames.used() < tally->frames || core().frames.used() > core().frames.capacity())
    return "frames lie outside the ring";
  return "";
}

std::string PageMachine::check_totals(const Tally& tally) {
  char text[160];
  std::int64_t local = core().budget.local();
  if (local != tally.resident + tally.arriving + tally.frames) {
    std::snprintf(text, sizeof text, "I5: budget counts %lld pages; %lld resident, %lld arriving, %lld in frames",
                  static_cast<long long>(local), static_cast<long long>(tally.resident),
                  static_cast<long long>(tally.arriving), static_cast<long long>(tally.frames));
    return text;
  }
  std::uint64_t listed = core().policy.size();
  if (listed != static_cast<std::uint64_t>(tally.resident))
    return "the policy lists " + std::to_string(listed) + " pages, resident are " + std::to_string(tally.resident);
  std::uint64_t used = core().devices.pages_in_use();
  if (used != static_cast<std::uint64_t>(tally.far))
    return "far pages in use: " + std::to_string(used) + ", referred to: " + std::to_string(tally.far);
  return "";
}

std::string PageMachine::check_bytes(std::uint32_t page) {
  const Shadow& shadow = shadows_[page];
  PageWord word = core().pages[{page}].load();
  if (shadow.state == Shadow::State::unmapped) return "";
  if (word.state() != PageState::resident && !kernel_.garbage_intact(address_of(page)))
    return at_page("written behind the program's back while it was away", page, word);
  if (shadow.state == Shadow::State::undefined) return "";
  if (word.state() == PageState::untouched && !all_zero(shadow.bytes))
    return at_page("I3: untouched, but it held something", page, word);
  auto equal = [&](const void* bytes) { return std::memcmp(bytes, shadow.bytes.data(), kPageSize) == 0; };
  auto far_equal = [&](far::FarPage far) {
    return device_ == nullptr || equal((far.device() == 0 ? device_ : second_)->peek(far.on_device()));
  };
  if (word.state() == PageState::resident) {
    std::array<std::byte, kPageSize> bytes;
    kernel_.load(bytes.data(), address_of(page), kPageSize);
    if (!equal(bytes.data())) return at_page("resident bytes differ from what was written", page, word);
  }
  if (word.has_far() && !far_equal(word.far_page())) return at_page("I3: the far copy differs", page, word);
  if (word.state() != PageState::parked) return "";
  if (!equal(core().frames.memory_of(word.frame()))) return at_page("the parked bytes differ", page, word);
  if (!far_equal(core().frames[word.frame()].far))
    return at_page("I3: the parked page's far copy differs", page, word);
  return "";
}

}  // namespace hinterland::testing
