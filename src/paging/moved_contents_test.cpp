// What is in one extent of the heap goes to another: each byte, and zeros where nobody wrote, whatever was there.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::size_t kPages = 3000;  // of a budget of 1024
constexpr std::size_t kBytes = bytes_of_pages(kPages), kWords = kPageSize / sizeof(std::uint64_t);

class Extent {
 public:
  explicit Extent(Pager& pager) : address_(static_cast<std::uintptr_t>(pager.map(kBytes, kPageSize, kReadWrite))) {}
  std::uintptr_t address() const { return address_; }
  std::uint64_t* page(std::size_t number) const {
    return reinterpret_cast<std::uint64_t*>(address_ + bytes_of_pages(number));
  }
  // A third of the pages stays untouched.
  static std::uint64_t expected(std::size_t page, std::size_t word) {
    return page % 3 == 0 ? 0 : page * kWords + word;
  }
  void fill() const {
    for (std::size_t number = 0; number < kPages; ++number)
      for (std::size_t word = 0; word < kWords && number % 3 != 0; ++word)
        page(number)[word] = expected(number, word);
  }
  void fill_with_other() const {
    for (std::size_t number = 0; number < kPages; ++number) std::fill_n(page(number), kWords, ~std::uint64_t{0});
  }
  // "", or the first page that is not as it was filled; or not empty.
  std::string problem(bool empty) const {
    for (std::size_t number = 0; number < kPages; ++number)
      for (std::size_t word = 0; word < kWords; ++word)
        if (page(number)[word] != (empty ? 0 : expected(number, word)))
          return "page " + std::to_string(number) + " holds " + std::to_string(page(number)[word]);
    return "";
  }

 private:
  std::uintptr_t address_;
};

std::string move_there_and_back(Pager& pager) {
  const Extent first(pager), second(pager);
  first.fill();
  second.fill_with_other();
  const Extent* from = &first;
  const Extent* to = &second;
  for (int times = 0; times < 5; ++times) {
    if (!pager.move_contents(from->address(), to->address(), kBytes)) return "it did not move";
    if (std::string reason = to->problem(false); !reason.empty()) return "there: " + reason;
    if (std::string reason = from->problem(true); !reason.empty()) return "in the old place: " + reason;
    std::swap(from, to);
  }
  return audit(pager, true);
}

TEST(MovedContentsTest, EachByteAndZerosWhereNobodyWrote) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({}, move_there_and_back);
}

TEST(MovedContentsTest, WherePagesAreTakenByCopying) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({.take_by_move = false}, move_there_and_back);
}

TEST(MovedContentsTest, WhereFaultsAreSignals) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({.faults_by_signal = true}, move_there_and_back);
}

// What is special, the caller copies.
TEST(MovedContentsTest, NotWhatIsSpecial) {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({}, [](Pager& pager) -> std::string {
    const Extent source(pager), target(pager);
    source.fill();
    const std::uintptr_t middle = bytes_of_pages(kPages / 2);
    for (const Extent* special : {&source, &target}) {
      if (pager.protect(special->address() + middle, kPageSize, PROT_READ) != 0) return "cannot protect";
      if (pager.move_contents(source.address(), target.address(), kBytes)) return "it moved what may not be written";
      if (pager.protect(special->address() + middle, kPageSize, kReadWrite) != 0) return "cannot lift the protection";
      if (pager.advise(special->address() + middle, kPageSize, MADV_WIPEONFORK) != 0) return "cannot advise";
      if (pager.move_contents(source.address(), target.address(), kBytes)) return "it moved what forks are to wipe";
      if (pager.advise(special->address() + middle, kPageSize, MADV_KEEPONFORK) != 0) return "cannot advise";
    }
    if (std::string reason = source.problem(false); !reason.empty()) return "after refusals: " + reason;
    if (pager.unmap(target.address() + middle, kPageSize) != 0) return "cannot unmap";
    if (pager.move_contents(source.address(), target.address(), kBytes)) return "it moved over a hole";
    if (std::string reason = source.problem(false); !reason.empty()) return "after the hole: " + reason;
    return audit(pager, true);
  });
}

}  // namespace
}  // namespace hinterland::testing
