#include "access/patterns.hpp"

#include <barrier>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "access/other_end.hpp"
#include "hinterland/hint.hpp"

namespace access_bench {
namespace {

using Clock = std::chrono::steady_clock;

// One thread's part of the memory: [first, first + pages).
struct Slice {
  Memory& memory;
  std::size_t first, pages;
  std::uint64_t accesses;
  std::uint64_t seed;
};

[[noreturn]] void wrong_page(std::size_t page) {
  throw std::runtime_error("page " + std::to_string(page) + " does not hold what was written to it");
}

std::uint64_t read_word(const Slice& slice, std::size_t page) {
  std::uint64_t value = *slice.memory.word(slice.first + page);
  if (value != slice.first + page) wrong_page(slice.first + page);
  return value;
}

// The second word counts the writes, so that the first still tells the page.
std::uint64_t write_word(const Slice& slice, std::size_t page) {
  volatile std::uint64_t* word = slice.memory.word(slice.first + page);
  word[1] = word[1] + 1;
  return word[0];
}

std::uint64_t read_hinted(const Slice& slice, std::size_t page) {
  hl::read(slice.memory.word(slice.first + page));
  return read_word(slice, page);
}
std::uint64_t write_hinted(const Slice& slice, std::size_t page) {
  hl::write(slice.memory.word(slice.first + page));
  return write_word(slice, page);
}
std::uint64_t read_hinted_in_order(const Slice& slice, std::size_t page) {
  hl::seq_read(slice.memory.word(slice.first + page));
  return read_word(slice, page);
}
std::uint64_t write_hinted_in_order(const Slice& slice, std::size_t page) {
  hl::seq_write(slice.memory.word(slice.first + page));
  return write_word(slice, page);
}

template <typename Access>
std::uint64_t in_order(const Slice& slice, Access access) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < slice.accesses; ++i) sum += access(slice, i % slice.pages);
  return sum;
}

template <typename Access>
std::uint64_t at_random(const Slice& slice, Access access) {
  Random random(slice.seed);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < slice.accesses; ++i) sum += access(slice, (random.next() >> 11) % slice.pages);
  return sum;
}

// Nine of ten go to the first tenth of the pages. (Crotty et al., as ExtMem has it, ATC 2024, figure 6.)
std::uint64_t mostly_in_working_set(const Slice& slice) {
  Random random(slice.seed);
  const std::uint64_t set = std::max<std::uint64_t>(slice.pages / 10, 1);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < slice.accesses; ++i) {
    std::uint64_t drawn = random.next() >> 11;
    sum += write_word(slice, drawn / 10 % (drawn % 10 != 0 ? set : slice.pages));
  }
  return sum;
}

// Every kStride-th page, then the same from the next page on: the columns of a matrix whose rows are that long.
std::uint64_t in_steps(const Slice& slice) {
  constexpr std::uint64_t kStride = 32;
  std::uint64_t sum = 0, page = 0, column = 0;
  for (std::uint64_t i = 0; i < slice.accesses; ++i, page += kStride) {
    if (page >= slice.pages) page = column = (column + 1) % std::min<std::uint64_t>(kStride, slice.pages);
    sum += read_word(slice, page);
  }
  return sum;
}

std::uint64_t first_touch(const Slice& slice) {
  for (std::size_t page = 0; page < slice.pages; ++page) *slice.memory.word(slice.first + page) = slice.first + page;
  return slice.pages;
}

std::uint64_t by_calls(const Slice& slice, bool reading, OtherEnd& other_end) {
  std::uint64_t done = 0;
  for (std::uint64_t left = slice.accesses; left > 0;) {
    std::uint64_t pages = std::min<std::uint64_t>(left, slice.pages);
    std::byte* start = slice.memory.data() + slice.first * kPageBytes;
    reading ? other_end.read_into(start, pages * kPageBytes) : other_end.write_from(start, pages * kPageBytes);
    left -= pages;
    done += pages;
  }
  return done;
}

struct Free {
  void operator()(void* block) const { std::free(block); }
};

// Blocks that live for a moment, as those of expressions over arrays do. The memory lies beside them, untouched.
std::uint64_t in_temporary_blocks(const Slice& slice, std::size_t block_pages) {
  for (std::uint64_t done = 0; done < slice.accesses;) {
    const std::uint64_t pages = std::min<std::uint64_t>(slice.accesses - done, block_pages);
    std::unique_ptr<void, Free> block(std::malloc(pages * kPageBytes));
    if (block == nullptr) throw std::bad_alloc();
    auto word_of = [start = static_cast<std::byte*>(block.get())](std::uint64_t page) {
      return reinterpret_cast<volatile std::uint64_t*>(start + page * kPageBytes);
    };
    for (std::uint64_t page = 0; page < pages; ++page) *word_of(page) = done + page;
    for (std::uint64_t page = 0; page < pages; ++page)
      if (*word_of(page) != done + page) wrong_page(page);
    done += pages;
  }
  return slice.accesses;
}

std::uint64_t go(const Work& work, const Slice& slice, OtherEnd* other_end) {
  switch (work.pattern) {
    case Pattern::first_touch:
      return first_touch(slice);
    case Pattern::sequential_read:
      return in_order(slice, work.hints ? read_hinted_in_order : read_word);
    case Pattern::sequential_write:
      return in_order(slice, work.hints ? write_hinted_in_order : write_word);
    case Pattern::random_read:
      return at_random(slice, work.hints ? read_hinted : read_word);
    case Pattern::random_write:
      return at_random(slice, work.hints ? write_hinted : write_word);
    case Pattern::working_set_write:
      return mostly_in_working_set(slice);
    case Pattern::strided_read:
      return in_steps(slice);
    case Pattern::reverse_read:
      return in_order(slice, [](const Slice& all, std::size_t page) { return read_word(all, all.pages - 1 - page); });
    case Pattern::read_call:
      return by_calls(slice, true, *other_end);
    case Pattern::write_call:
      return by_calls(slice, false, *other_end);
    case Pattern::temporary:
      return in_temporary_blocks(slice, work.piece_bytes / kPageBytes);
  }
  return 0;
}

// After read(2): the bytes are those of the other end. One word of every page.
void check_read(const Slice& slice, const OtherEnd& other_end) {
  for (std::size_t page = 0; page < slice.pages; ++page)
    if (*slice.memory.word(slice.first + page) != other_end.word_at(page * kPageBytes))
      wrong_page(slice.first + page);
}

struct Part {
  Clock::time_point started, ended;
  std::uint64_t sum = 0;
  std::exception_ptr failure;
};

void run_part(const Work& work, const Slice& slice, std::barrier<>& together, Part& part) {
  std::unique_ptr<OtherEnd> other_end;
  try {
    if (work.pattern == Pattern::read_call || work.pattern == Pattern::write_call) other_end = open_other_end(work);
  } catch (...) {
    part.failure = std::current_exception();
  }
  together.arrive_and_wait();
  if (part.failure) return;
  try {
    part.started = Clock::now();
    part.sum = go(work, slice, other_end.get());
    part.ended = Clock::now();
    if (work.pattern == Pattern::read_call) check_read(slice, *other_end);
    if (other_end) other_end->finish();
  } catch (...) {
    part.failure = std::current_exception();
  }
}

}  // namespace

const std::vector<PatternName>& pattern_names() {
  static const std::vector<PatternName> names = {
      {Pattern::first_touch, "first-touch", "write each page of fresh memory once, in order"},
      {Pattern::sequential_read, "sequential-read", "read a word of each page, in order"},
      {Pattern::sequential_write, "sequential-write", "change a word of each page, in order"},
      {Pattern::random_read, "random-read", "read a word of a random page"},
      {Pattern::random_write, "random-write", "change a word of a random page"},
      {Pattern::working_set_write, "working-set-write", "change a word of a page, mostly of one in the first tenth"},
      {Pattern::strided_read, "strided-read",
       "read a word of every 32nd page, then of those behind these, and so on"},
      {Pattern::reverse_read, "reverse-read", "read a word of each page, from the last to the first"},
      {Pattern::read_call, "read-call", "read(2) into the memory, piece by piece"},
      {Pattern::write_call, "write-call", "write(2) out of the memory, piece by piece"},
      {Pattern::temporary, "temporary", "write each page of a block that malloc gives, and free it, again and again"},
  };
  return names;
}

Done perform(const Work& work, Memory& memory) {
  if (work.pattern != Pattern::first_touch) memory.fill(work.content, work.seed);
  if (work.unwritable_pages != 0) memory.forbid_writing(work.unwritable_pages);
  std::size_t pages = memory.pages() / work.threads;
  std::uint64_t accesses = (work.accesses == 0 ? memory.pages() : work.accesses) / work.threads;
  if (work.pattern == Pattern::first_touch) accesses = pages;
  std::vector<Part> parts(work.threads);
  std::barrier<> together(work.threads);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= work.threads; ++i) {
    Slice slice{memory, (i - 1) * pages, pages, accesses, work.seed + i};
    auto run = [&work, slice, &together, part = &parts[i - 1]] { run_part(work, slice, together, *part); };
    i < work.threads ? static_cast<void>(threads.emplace_back(run)) : run();  // the last one on this thread
  }
  for (std::thread& thread : threads) thread.join();
  Done done;
  Clock::time_point started = Clock::time_point::max(), ended = Clock::time_point::min();
  for (const Part& part : parts) {
    if (part.failure) std::rethrow_exception(part.failure);
    started = std::min(started, part.started);
    ended = std::max(ended, part.ended);
    done.checksum += part.sum;
    done.accesses += accesses;
  }
  done.seconds = std::chrono::duration<double>(ended - started).count();
  return done;
}

}  // namespace access_bench
