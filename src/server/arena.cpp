#include "server/arena.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace hinterland {
namespace {

constexpr std::size_t kHugePage = 2 * kMiB;  // aligned so that the kernel may use huge pages where it is set to

void* reserve(std::size_t bytes) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// Makes whole pages read as zeros and gives their memory back.
void drop(void* address, std::size_t bytes) {
  // Refused for locked memory (mlockall): then the zeros are written, so that no byte survives.
  if (::madvise(address, bytes, MADV_DONTNEED) != 0) std::memset(address, 0, bytes);
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::create(std::uint64_t bytes) {
  std::uint64_t slabs = bytes / far::kSlabBytes;
  if (slabs == 0)
    return std::unexpected(Error::make(0, "a memory server needs at least %zu MiB", far::kSlabBytes / kMiB)
                               .remedy("give it more with --memory"));
  if (slabs > UINT32_MAX) return std::unexpected(Error::make(0, "more memory than a server can address"));
  std::unique_ptr<Arena> arena(new Arena);
  arena->slabs_ = static_cast<std::uint32_t>(slabs);
  arena->mapping_bytes_ = slabs * far::kSlabBytes + kHugePage;
  void* memory = reserve(arena->mapping_bytes_);
  if (memory == MAP_FAILED)
    return std::unexpected(
        Error::make(errno, "cannot reserve %llu MiB of memory", static_cast<unsigned long long>(bytes / kMiB))
            .remedy("offer less with --memory, or raise the limit: ulimit -v unlimited"));
  arena->mapping_ = static_cast<std::byte*>(memory);
  auto start = reinterpret_cast<std::uintptr_t>(memory);
  arena->memory_ = arena->mapping_ + ((kHugePage - start % kHugePage) % kHugePage);
  // A program that dumps core must not write its clients' memory to disk.
  ::madvise(memory, arena->mapping_bytes_, MADV_DONTDUMP);
  void* stamps = reserve(slabs * far::kSlabPages * sizeof(std::uint64_t));
  if (stamps == MAP_FAILED) return std::unexpected(Error::make(errno, "cannot reserve memory for page stamps"));
  arena->stamps_ = static_cast<std::uint64_t*>(stamps);
  arena->slab_ = std::make_unique<Slab[]>(slabs);
  arena->free_.reserve(slabs);
  arena->dirty_.reserve(slabs);
  for (std::uint32_t slab = arena->slabs_; slab > 0; --slab) arena->free_.push_back(slab - 1);
  return arena;
}

Arena::~Arena() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
  if (stamps_ != nullptr) ::munmap(stamps_, std::size_t{slabs_} * far::kSlabPages * sizeof(std::uint64_t));
}

bool Arena::allocate(const std::shared_ptr<SlabAccount>& account, std::uint32_t* slab) {
  if (!account->take()) return false;
  Taken taken = take_free(slab);
  // The next one is clean within a millisecond.
  for (; taken == Taken::soon; taken = take_free(slab)) ::sched_yield();
  if (taken == Taken::none) {
    account->give_back();
    return false;
  }
  // None is clean: better one wiped here than a client told that there is no memory while there is.
  if (taken == Taken::dirty) {
    wipe(*slab);
    to_wipe_.fetch_sub(1, std::memory_order_relaxed);
  }
  slab_[*slab].account = account;
  // release: pairs with the acquire in hold(): whoever holds the slab sees it wiped
  slab_[*slab].holders.store(1, std::memory_order_release);
  used_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool Arena::hold(std::uint32_t slab) {
  std::atomic<std::uint32_t>& holders = slab_[slab].holders;
  std::uint32_t seen = holders.load(std::memory_order_relaxed);
  do {
    if (seen == 0) return false;
    // acquire: pairs with the release in allocate() and let_go()
  } while (!holders.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void Arena::let_go(std::uint32_t slab) {
  // acq_rel: what the other holders did with the memory is over before it is wiped
  std::uint32_t before = slab_[slab].holders.fetch_sub(1, std::memory_order_acq_rel);
  HL_CHECK_OP(before, >, 0u);
  if (before != 1) return;
  std::exchange(slab_[slab].account, nullptr)->give_back();
  used_.fetch_sub(1, std::memory_order_relaxed);
  {
    LockGuard lock(free_mutex_);
    dirty_.push_back(slab);
    to_wipe_.fetch_add(1, std::memory_order_relaxed);
  }
  work_.fetch_add(1);
  futex_wake(&work_, 1);
}

Arena::Taken Arena::take_free(std::uint32_t* slab) {
  LockGuard lock(free_mutex_);
  if (free_.empty()) return take_to_wipe_locked(slab) ? Taken::dirty : wiping_ ? Taken::soon : Taken::none;
  *slab = free_.back();
  free_.pop_back();
  return Taken::clean;
}

bool Arena::take_to_wipe_locked(std::uint32_t* slab) {
  if (dirty_.empty()) return false;
  *slab = dirty_.back();
  dirty_.pop_back();
  return true;
}

void Arena::wipe_until_stopped() {
  while (!stopped_.load()) {
    std::uint32_t seen = work_.load(), slab = 0;
    bool any = false;
    {
      LockGuard lock(free_mutex_);
      any = take_to_wipe_locked(&slab);
      wiping_ = any;
    }
    if (!any) {
      futex_wait(&work_, seen);
      continue;
    }
    wipe(slab);
    LockGuard lock(free_mutex_);
    wiping_ = false;
    free_.push_back(slab);
    to_wipe_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Arena::stop_wiping() {
  stopped_.store(true);
  work_.fetch_add(1);
  futex_wake(&work_, 1);
}

void Arena::wipe(std::uint32_t slab) {
  constexpr std::size_t kSlice = kMiB;  // 40 us: a thread that serves may want this CPU
  for (std::size_t at = 0; at < far::kSlabBytes; at += kSlice) {
    drop(page(slab, 0) + at, kSlice);
    ::sched_yield();
  }
  drop(stamps(slab), far::kSlabPages * sizeof(std::uint64_t));
}

bool Arena::begin_write(std::uint32_t slab, std::uint32_t page, std::uint64_t stamp) {
  LockGuard lock(slab_[slab].mutex);
  std::uint64_t& last = stamps(slab)[page];
  if (last > stamp) return false;
  last = stamp;
  return true;
}

void Arena::write(std::uint32_t slab, std::uint32_t number, std::uint64_t stamp, const std::byte* bytes) {
  LockGuard lock(slab_[slab].mutex);
  std::uint64_t& last = stamps(slab)[number];
  if (last > stamp) return;
  last = stamp;
  std::memcpy(page(slab, number), bytes, kPageSize);
}

std::uint32_t Arena::discard(std::uint32_t slab, std::uint32_t first, std::uint32_t count, std::uint64_t stamp) {
  LockGuard lock(slab_[slab].mutex);
  const std::uint64_t* last = stamps(slab);
  std::uint32_t given_back = 0;
  for (std::uint32_t at = first, end = first + count; at < end;) {
    std::uint32_t run = at;
    // A stamp of 0: never written, so nothing is there.
    while (run < end && last[run] != 0 && last[run] < stamp) ++run;
    if (run == at) {
      ++at;
      continue;
    }
    drop(page(slab, at), bytes_of_pages(run - at));
    given_back += run - at;
    at = run;
  }
  return given_back;
}

}  // namespace hinterland
