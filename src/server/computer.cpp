#include "server/computer.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "far/tcp/shared_pages.hpp"

namespace hinterland {

using far::wire::Code;
namespace elements = hl::far::detail;

namespace {

// The elements that the mask chooses, one after the other; the end of what was written.
template <typename Element>
std::byte* choose(const std::byte* from, std::span<const std::byte> mask, std::byte* to) {
  for (std::size_t at = 0; at < mask.size(); at += 8) {
    std::uint64_t bits;
    std::memcpy(&bits, mask.data() + at, sizeof bits);
    const std::byte* const here = from + at * 8 * sizeof(Element);
    for (; bits != 0; bits &= bits - 1) {
      std::memcpy(to, here + static_cast<std::size_t>(std::countr_zero(bits)) * sizeof(Element), sizeof(Element));
      to += sizeof(Element);
    }
  }
  return to;
}

}  // namespace

// Whether the page is what the client wrote.
bool ComputeJob::check(const Held& piece) {
  const std::byte* page = piece.page.memory();
  if (page != checked_) checksum_ = far::SharedPages::checksum_of(page);
  checked_ = page;
  if (checksum_ != piece.checksum) code = Code::damaged;
  return checksum_ == piece.checksum;
}

void ComputeJob::compute() {
  const std::size_t step = what.operation == elements::spread ? 0 : elements::result_bytes(what.operation, 1);
  std::byte* result = results.get();
  if (step == 0) std::memset(result, 0, result_bytes);
  for (const Held& piece : pieces) {
    if (!check(piece)) return;
    elements::compute_piece(what, piece.page.memory() + piece.offset, piece.bytes, result);
    result += step;
  }
}

void ComputeJob::apply() {
  const hl_operator* which = operators->get(number);
  if (which == nullptr) {
    code = Code::no_operator;
    return;
  }
  std::vector<OperatorProcess::Piece> list;
  list.reserve(pieces.size());
  for (const Held& piece : pieces) {
    if (!check(piece)) return;
    list.push_back({piece.page.memory(), piece.offset, piece.bytes, piece.word});
  }
  code = operators->run(number, std::span(argument).first(which->argument_bytes), list, results.get());
}

void ComputeJob::compose() {
  const std::size_t count = composition.pages.size();
  const std::uint32_t element = composition.element_bytes, mask_bytes = far::wire::mask_bytes(element);
  composition.made = std::make_unique_for_overwrite<std::byte[]>(bytes_of_pages(count));
  std::byte* end = composition.made.get();
  std::span<const std::byte> masks = composition.masks;
  for (const Held& piece : pieces) {
    if (!check(piece)) return;
    const std::byte* const from = piece.page.memory() + piece.offset;
    if (element == 4) end = choose<std::uint32_t>(from, masks.first(mask_bytes), end);
    if (element == 8) end = choose<std::uint64_t>(from, masks.first(mask_bytes), end);
    if (element == 0) end = std::copy_n(from, piece.bytes, end);
    masks = masks.subspan(mask_bytes);
  }
  tell_checksums();
}

void ComputeJob::patch() {
  const std::size_t count = composition.pages.size();
  composition.made = std::make_unique_for_overwrite<std::byte[]>(bytes_of_pages(count));
  std::byte* end = composition.made.get();
  auto piece = pieces.begin();
  for (const std::optional<std::uint64_t>& fill : composition.fills) {
    if (fill) {
      for (std::size_t i = 0; i < kPageSize; i += sizeof *fill) std::memcpy(end + i, &*fill, sizeof *fill);
    } else {
      if (!check(*piece)) return;
      std::memcpy(end, piece++->page.memory(), kPageSize);
    }
    end += kPageSize;
  }
  put_elements();
  tell_checksums();
}

void ComputeJob::put_elements() {
  const std::size_t element = composition.element_bytes;
  const std::byte* from = composition.elements.data();
  for (const far::wire::Place place : composition.places) {
    std::memcpy(composition.made.get() + bytes_of_pages(place_page(place)) + place_element(place) * element, from,
                element);
    from += element;
  }
}

void ComputeJob::tell_checksums() {
  for (std::size_t i = 0; i < composition.pages.size(); ++i) {
    const far::wire::Le<std::uint64_t> checksum =
        far::SharedPages::checksum_of(composition.made.get() + bytes_of_pages(i));
    std::memcpy(results.get() + i * sizeof checksum, &checksum, sizeof checksum);
  }
}

void ComputeJob::store() {
  for (std::size_t i = 0; i < composition.pages.size(); ++i)
    composition.pages[i].write(composition.stamp, composition.made.get() + bytes_of_pages(i));
  composition = {};
}

void ComputeJob::run() {
  if (!composition.fills.empty()) return patch();
  if (!composition.pages.empty()) return compose();
  operators != nullptr ? apply() : compute();
}

void ComputeJob::finish() {
  if (!cancelled_.load(std::memory_order_relaxed)) run();
  pieces.clear();  // here, so that a slab that was given up meanwhile is free when the client hears of the job
  // The job may end with this: its connection looks at it at any time.
  const int told = event;
  done_.store(true, std::memory_order_release);  // pairs with done()
  std::uint64_t one = 1;
  static_cast<void>(!::write(told, &one, sizeof one));  // full only when the thread is awake anyway
}

Computer::~Computer() = default;

void Computer::take(std::shared_ptr<ComputeJob> job) {
  {
    LockGuard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  work_.fetch_add(1);
  futex_wake(&work_, 1);
}

std::shared_ptr<ComputeJob> Computer::next() {
  LockGuard lock(mutex_);
  if (jobs_.empty()) return nullptr;
  std::shared_ptr<ComputeJob> job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void Computer::run() {
  // The caller's own: others that want this CPU have it first. Where it is refused, all are alike.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, 19));
  while (!stopped_.load()) {
    std::uint32_t seen = work_.load();
    if (!run_one()) futex_wait(&work_, seen);
  }
}

bool Computer::run_one() {
  std::shared_ptr<ComputeJob> job = next();
  if (job != nullptr) job->finish();
  return job != nullptr;
}

void Computer::stop() {
  stopped_.store(true);
  work_.fetch_add(1);
  futex_wake(&work_, 1);
}

}  // namespace hinterland
