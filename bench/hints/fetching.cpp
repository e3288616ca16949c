#include "hints/fetching.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

#include "access/memory.hpp"
#include "common/look.hpp"
#include "hinterland/hint.hpp"

namespace hints_bench {
namespace {

using access_bench::kPageBytes;
using access_bench::Memory;
using access_bench::Random;
using Clock = std::chrono::steady_clock;

constexpr double kFarShareMin = 0.5;  // of all pages: with less of it the figure would be of something else
constexpr std::chrono::seconds kLeavingMax{20};

bool runtime_is_there() { return hl__runtime()->size != 0; }

// One byte a page: 1 where it is there. The system call itself: what is asked is the kernel's view, not the
// program's.
std::vector<unsigned char> residency(const Memory& memory) {
  std::vector<unsigned char> there(memory.pages());
  if (syscall(SYS_mincore, memory.data(), memory.bytes(), there.data()) != 0)
    throw std::runtime_error(std::string("mincore: ") + std::strerror(errno));
  return there;
}

std::size_t far_pages(const Memory& memory) {
  std::size_t count = 0;
  for (unsigned char there : residency(memory)) count += (there & 1) == 0 ? 1 : 0;
  return count;
}

// Until no more leaves.
void wait_for_leaving(const Memory& memory) {
  auto wanted = static_cast<std::size_t>(kFarShareMin * static_cast<double>(memory.pages()));
  Clock::time_point give_up = Clock::now() + kLeavingMax;
  for (std::size_t before = 0, now = far_pages(memory); now < wanted || now > before; now = far_pages(memory)) {
    if (Clock::now() > give_up)
      throw std::runtime_error("only " + std::to_string(now) + " of " + std::to_string(memory.pages()) +
                               " pages have left: --shrink is to leave a quarter of --size local");
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
}

void send_away(const Memory& memory, const Work& work) {
  if (!runtime_is_there()) {
    if (madvise(memory.data(), memory.bytes(), MADV_PAGEOUT) != 0)
      throw std::runtime_error(std::string("madvise(MADV_PAGEOUT): ") + std::strerror(errno));
    wait_for_leaving(memory);
    return;
  }
  apps::output_of(work.shrink);
  wait_for_leaving(memory);
  apps::output_of(work.grow);
}

// The far pages of a thread's part, in the order in which it reads them.
std::vector<std::size_t> order_of(const std::vector<unsigned char>& there, const Work& work, unsigned number) {
  std::size_t part = there.size() / work.threads;
  std::vector<std::size_t> pages;
  for (std::size_t page = number * part; page < (number + 1) * part; ++page)
    if ((there[page] & 1) == 0) pages.push_back(page);
  if (work.figure == "fetch-random") {
    Random random(number + 1);
    for (std::size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[(random.next() >> 11) % i]);
  }
  return pages;
}

void fetch(const Memory& memory, const Work& work, const std::vector<std::size_t>& pages) {
  bool in_order = work.figure == "fetch-in-order";
  for (std::size_t page : pages) {
    const volatile std::uint64_t* word = memory.word(page);
    if (work.hints) {
      if (work.read_ahead >= 0)
        hl::hint(word, {.rdahead = work.read_ahead});
      else if (in_order)
        hl::seq_read(word);
      else
        hl::read(word);
    }
    if (*word != page) throw std::runtime_error("page " + std::to_string(page) + " came back with other bytes");
  }
}

// Nanoseconds from the first thread's start until all have read theirs.
double timed(const Memory& memory, const Work& work, const std::vector<std::vector<std::size_t>>& orders) {
  std::vector<std::exception_ptr> failures(orders.size());
  std::vector<Clock::time_point> starts(orders.size()), ends(orders.size());
  std::barrier together(static_cast<std::ptrdiff_t>(orders.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < orders.size(); ++i)
    threads.emplace_back([&, i] {
      together.arrive_and_wait();
      starts[i] = Clock::now();
      try {
        fetch(memory, work, orders[i]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
      ends[i] = Clock::now();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  auto spent = *std::ranges::max_element(ends) - *std::ranges::min_element(starts);
  return std::chrono::duration<double, std::nano>(spent).count();
}

}  // namespace

Measured measure_fetching(const Work& work) {
  Memory memory(work.size_bytes, false);
  memory.fill(access_bench::Content::half, 1);
  hl::read(memory.data());  // the map is kept from the first hint on
  Measured measured;
  measured.with_runtime = runtime_is_there();
  if (measured.with_runtime && (work.shrink.empty() || work.grow.empty()))
    throw std::runtime_error("under hinterland, the fetch figures need --shrink and --grow: commands for its budget");
  for (int i = 0; i < work.repeat; ++i) {
    send_away(memory, work);
    std::vector<unsigned char> there = residency(memory);
    std::vector<std::vector<std::size_t>> orders;
    std::size_t pages = 0;
    for (unsigned number = 0; number < work.threads; ++number) {
      orders.push_back(order_of(there, work, number));
      pages += orders.back().size();
    }
    measured.values.push_back(timed(memory, work, orders) / static_cast<double>(pages));
    measured.pages_in += pages;
    measured.accesses += pages;
  }
  return measured;
}

}  // namespace hints_bench
