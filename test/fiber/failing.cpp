// Fibers that wait for pages which never come: all of them go on, and what cannot be had is lost, not wrong. Says
// when its memory is filled and when its fibers are parked, waits for a line on standard input each time, and says
// what became of them and of the memory. With the argument "touch" the fibers touch their pages, which ends the
// program; with "fault" they do so without a hint, where faults may park them.
#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hinterland/fiber.hpp"
#include "hinterland/hint.h"

namespace {

using namespace hl::fibers;

constexpr std::size_t kPage = 4096, kPages = 6144, kFibers = 96;  // 24 MiB, of which a part is local
volatile unsigned char* g_memory;
sigjmp_buf g_out;

unsigned char value_of(std::size_t page) { return static_cast<unsigned char>(page * 7 + 1); }

bool is_missing(std::size_t page) {
  return hl__is_missing(reinterpret_cast<std::uintptr_t>(g_memory + page * kPage), HL_THERE | HL_ASKED) != 0;
}

void hint(std::size_t page) { hl_read(const_cast<const unsigned char*>(g_memory + page * kPage)); }

void fill() {
  hl_read(const_cast<const unsigned char*>(g_memory));  // the map is kept from now on
  for (std::size_t page = 0; page < kPages; ++page)
    std::memset(const_cast<unsigned char*>(g_memory + page * kPage), value_of(page), kPage);
}

void say_and_wait(const char* what) {
  std::puts(what);
  std::fflush(stdout);
  std::getchar();
}

// Far pages, each in the hands of one fiber.
std::vector<std::size_t> far_pages() {
  std::vector<std::size_t> pages;
  for (std::size_t page = 0; page < kPages && pages.size() < kFibers; page += 17)
    if (is_missing(page)) pages.push_back(page);
  return pages;
}

// The device fails between "filled" and "parked". All that the program itself needs then is made and touched before:
// it would wait for its own lists and stacks, too, where they are far.
void park(bool cold, bool touch, bool fault) {
  std::atomic<std::size_t> begun{0}, went_on{0};
  std::atomic<bool> go{false};
  run({.workers = 2}, [&] {
    // On both workers, so that each has its way to the device.
    if (!cold) parallel_for(0, 256, [](std::size_t page) { hint(page * 16 + 1); }, 1);
    std::vector<std::size_t> pages = far_pages();
    std::vector<fiber> fibers;
    fibers.reserve(pages.size());
    for (std::size_t page : pages)
      fibers.emplace_back([&, page] {
        while (!go) this_fiber::yield();
        ++begun;
        faults_may_park declared;
        if (!fault) hint(page);
        if ((touch || fault) && g_memory[page * kPage] != value_of(page)) std::_Exit(9);
        ++went_on;
      });
    say_and_wait("filled");
    go = true;
    while (begun < pages.size()) this_fiber::yield();
    say_and_wait("parked");
    for (fiber& each : fibers) each.join();
  });
  std::printf("went on %zu of %zu\n", went_on.load(), kFibers);
}

enum class Found : std::uint8_t { lost, right, wrong };

[[gnu::noinline]] Found touch(std::size_t page) {
  if (sigsetjmp(g_out, 1) != 0) return Found::lost;
  return g_memory[page * kPage + 5] == value_of(page) ? Found::right : Found::wrong;
}

void look() {
  std::array<std::size_t, 3> found{};
  for (std::size_t page = 0; page < kPages; ++page) ++found[static_cast<std::size_t>(touch(page))];
  std::printf("lost %zu right %zu wrong %zu\n", found[0], found[1], found[2]);
}

}  // namespace

int main(int count, char** words) {
  const char* how = count > 1 ? words[1] : "";
  if (&hl_runtime == nullptr) return 2;
  static char buffers[2][BUFSIZ];  // not on the heap
  std::setvbuf(stdin, buffers[0], _IOFBF, BUFSIZ);
  std::setvbuf(stdout, buffers[1], _IOFBF, BUFSIZ);
  g_memory = static_cast<unsigned char*>(std::aligned_alloc(kPage, kPages * kPage));
  fill();
  park(std::strcmp(how, "cold") == 0, std::strcmp(how, "touch") == 0, std::strcmp(how, "fault") == 0);
  std::signal(SIGBUS, [](int) { siglongjmp(g_out, 1); });
  look();
}
