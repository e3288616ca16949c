#include "cli/core/segments.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "paging/page/address_set.hpp"
#include "paging/page/page_marks.hpp"
#include "paging/page/page_table.hpp"

namespace hinterland::cli {
namespace {

// Bits of /proc/PID/pagemap: the page is present, or swapped. (For what is paged by us neither says anything.)
constexpr std::uint64_t kPresentOrSwapped = std::uint64_t{3} << 62;

void append(std::vector<Piece>& pieces, std::uint64_t start, std::uint64_t end, Take take) {
  if (start >= end) return;
  if (!pieces.empty() && pieces.back().end == start && pieces.back().take == take)
    pieces.back().end = end;
  else
    pieces.push_back({start, end, take});
}

Take take_of(PageWord word) {
  switch (word.state()) {
    case PageState::untouched:
      // Busy: somebody is just bringing it, or freeing it.
      return word.busy() ? Take::far : Take::zeros;
    case PageState::lost:
      return Take::absent;
    default:
      return Take::far;
  }
}

// Reads page words and marks out of the other process's tables (paging/page/page_table.hpp), a chunk at a time.
class TableReader {
 public:
  static constexpr std::uint32_t kPages = PageTable::kChunkPages, kGroupPages = PageTable::kGroupPages;
  static_assert(kPages == PageMarks::kChunkPages);

  TableReader(const RuntimeView& view, const ProcessMemory& memory) : view_(view), memory_(memory) {}

  // Of the chunk that holds page `first`; false when the tables cannot be read.
  bool read(std::uint64_t first) {
    first_ = first / kPages * kPages;
    std::array<std::uint32_t, kPages / kGroupPages> places;
    std::uint64_t pages = view_.places_bytes >> kPageShift;
    if (!read_array(view_.page_directory + first_ / kGroupPages * sizeof places[0], places.data(), places.size()) ||
        !read_array(view_.page_marks + first_, marks_.data(), marks_.size()) ||
        !read_array(view_.page_marks + pages + first_ / kPages, &chunk_mark_, 1))
      return false;
    for (std::size_t group = 0; group < places.size(); ++group) {
      std::uint64_t* words = words_.data() + group * kGroupPages;
      if (!read_array(view_.page_words + std::uint64_t{places[group]} * kGroupPages * sizeof *words, words,
                      kGroupPages))
        return false;
    }
    return true;
  }
  Take take(std::uint64_t page) const {
    if ((chunk_mark_ & PageMarks::kNoneDumped) != 0) return Take::absent;
    if ((marks_[page - first_] & PageMarks::kNotDumped) != 0) return Take::absent;
    return take_of(PageWord(words_[page - first_]));
  }

 private:
  template <typename Item>
  bool read_array(std::uint64_t address, Item* out, std::size_t count) const {
    return memory_.read_resident(address, out, count * sizeof(Item)) == count * sizeof(Item);
  }

  const RuntimeView& view_;
  const ProcessMemory& memory_;
  std::uint64_t first_ = 0;
  std::array<std::uint64_t, kPages> words_;
  std::array<std::uint8_t, kPages> marks_;
  std::uint8_t chunk_mark_ = 0;
};

// A part of the window: each page's word says where it is.
std::vector<Piece> paged_pieces(const Mapping& mapping, const RuntimeView& view, const ProcessMemory& memory) {
  constexpr std::uint64_t kChunk = PageTable::kChunkPages;
  std::vector<Piece> pieces;
  std::uint64_t first = (mapping.start - view.places_base) >> kPageShift;
  std::uint64_t last = (mapping.end - view.places_base) >> kPageShift;
  std::vector<std::uint8_t> used((last + kChunk - 1) / kChunk - first / kChunk);
  if (memory.read_resident(view.page_chunks + first / kChunk, used.data(), used.size()) != used.size())
    return {{mapping.start, mapping.end, Take::absent}};
  TableReader tables(view, memory);
  for (std::uint64_t at = first; at < last;) {
    std::uint64_t end = std::min((at / kChunk + 1) * kChunk, last);
    bool touched = used[at / kChunk - first / kChunk] != 0;
    auto address_of = [&view](std::uint64_t page) { return view.places_base + (page << kPageShift); };
    if (touched && tables.read(at)) {
      for (; at < end; ++at) append(pieces, address_of(at), address_of(at + 1), tables.take(at));
    } else {  // at once: terabytes of the window are only reserved
      append(pieces, address_of(at), address_of(end), touched ? Take::absent : Take::zeros);
      at = end;
    }
  }
  return pieces;
}

// Memory that the kernel has alone: what is not present was never touched.
std::vector<Piece> private_pieces(const Mapping& mapping, int pagemap) {
  std::vector<Piece> pieces;
  std::array<std::uint64_t, 4096> entries;
  for (std::uint64_t at = mapping.start; at < mapping.end;) {
    std::size_t pages = std::min<std::uint64_t>(entries.size(), (mapping.end - at) >> kPageShift);
    ssize_t got = pread(pagemap, entries.data(), pages * 8, static_cast<off_t>((at >> kPageShift) * 8));
    if (got <= 0) {  // then everything is looked at
      append(pieces, at, mapping.end, Take::resident);
      break;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / 8; ++i, at += kPageSize)
      append(pieces, at, at + kPageSize, (entries[i] & kPresentOrSwapped) != 0 ? Take::resident : Take::zeros);
  }
  return pieces;
}

}  // namespace

RuntimeView RuntimeView::of(const StatPage& page) {
  RuntimeView view;
  view.window_base = page.inside.window_base;
  view.window_bytes = page.inside.window_bytes;
  view.outside_chunks = page.inside.outside_chunks;
  view.outside_bits = page.inside.outside_bits;
  view.places_base = page.inside.places_base;
  view.places_bytes = page.inside.places_bytes;
  view.page_words = page.inside.page_words;
  view.page_directory = page.inside.page_directory;
  view.page_chunks = page.inside.page_chunks;
  view.page_marks = page.inside.page_marks;
  view.inside_offset = page.inside.inside_offset;
  for (const auto& thread : page.inside.runtime_threads)
    if (thread != 0) view.threads.push_back(thread);
  view.managed = page.gauges[static_cast<std::size_t>(Gauge::managed)] != 0;
  return view;
}

bool RuntimeView::holds(std::uint64_t address, const ProcessMemory& memory) const {
  if (address - window_base < window_bytes) return true;
  return AddressSet::contains_from_outside(outside_chunks, outside_bits, address, [&](std::uint64_t at, auto* value) {
    return memory.read_value(at, value);
  });
}

bool RuntimeView::is_paged(const Mapping& mapping, const ProcessMemory& memory) const {
  return managed && !mapping.shared && mapping.inode == 0 && holds(mapping.start, memory);
}

// As the kernel's own core files, with their usual filter: what the process wrote, anonymous memory shared or not,
// and the first page of a file that is mapped, which tells debuggers which file it is.
std::vector<Piece> pieces_of(const Mapping& mapping, const RuntimeView& view, const ProcessMemory& memory,
                             int pagemap) {
  if (view.is_paged(mapping, memory)) {
    std::vector<Piece> pieces = paged_pieces(mapping, view, memory);
    // Address space that is only reserved.
    if (mapping.permissions == 0)
      for (Piece& piece : pieces)
        if (piece.take == Take::zeros) piece.take = Take::absent;
    return pieces;
  }
  bool anonymous = mapping.inode == 0;
  bool shared_anonymous = mapping.shared && mapping.name.starts_with("/dev/zero");
  bool unreadable = mapping.not_dumped || mapping.is_device || mapping.name.starts_with("[vvar") ||
                    mapping.name.starts_with("[vsyscall") || (mapping.shared && !shared_anonymous);
  if (unreadable) return {{mapping.start, mapping.end, Take::absent}};
  if (shared_anonymous || mapping.name == "[vdso]") return {{mapping.start, mapping.end, Take::resident}};
  if (anonymous && mapping.permissions == 0 && mapping.anonymous_bytes == 0)
    return {{mapping.start, mapping.end, Take::absent}};
  if (anonymous) return private_pieces(mapping, pagemap);
  if (mapping.anonymous_bytes != 0) return {{mapping.start, mapping.end, Take::resident}};
  std::vector<Piece> pieces;
  append(pieces, mapping.start, mapping.start + kPageSize, mapping.offset == 0 ? Take::resident : Take::absent);
  append(pieces, mapping.start + kPageSize, mapping.end, Take::absent);
  return pieces;
}

}  // namespace hinterland::cli
