// io_uring in signal mode: what its entries name is held from the call that submits them until their completion is
// there, because the kernel reads and writes it at a time of its own choice.
//
// Looked at is the ring's own memory, mapped for the moment of a call: a mapping that stayed would keep the ring when
// the program has closed it. Not seen are rings that take entries without a call (SQPOLL), that lie in memory of the
// program's (NO_MMAP), or that are named otherwise than by the number that io_uring_setup(2) gave.
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cstring>

#include "base/raw_call.hpp"
#include "base/readable.hpp"
#include "base/units.hpp"
#include "signal/local_memory.hpp"
#include "signal/self_paging.hpp"
#include "signal/system_calls.hpp"
#include "signal/tried_lock.hpp"

namespace hinterland {
namespace {

constexpr unsigned kWithoutArray = 1U << 16;   // IORING_SETUP_NO_SQARRAY
constexpr unsigned kOwnMemory = 1U << 14;      // IORING_SETUP_NO_MMAP
constexpr unsigned kByRegistration = 1U << 4;  // IORING_ENTER_REGISTERED_RING
constexpr unsigned kYounger = 7U << 18;  // entries of two sizes in one queue, and queues that begin anew each time

// Something that is held for an entry; and one note more, of no bytes, for the entry itself.
struct Note {
  std::uint64_t name;  // what the program gave the entry, and its completion has
  unsigned entry;      // which of all that were submitted
  bool until_first;    // completion, though more of the entry's come: those of a send that has its pages
  std::uintptr_t address;
  std::size_t bytes;
  unsigned done = 0;  // of the first note with its name: how many entries with that name are
};

struct Ring {
  std::atomic<bool> busy{false};
  std::atomic<int> descriptor{-1};
  io_uring_params about{};
  unsigned seen = 0;  // completions
  Note* notes = nullptr;
  std::size_t count = 0, room = 0;
};
std::array<Ring, 64> g_rings;

// The two queues and the entries.
class Queues {
 public:
  Queues(int descriptor, const io_uring_params& about) : about_(about) {
    std::size_t sent = about.sq_off.array + about.sq_entries * sizeof(unsigned);
    std::size_t done = about.cq_off.cqes + about.cq_entries * cqe_bytes();
    queue_bytes_ = sent > done ? sent : done;
    entry_bytes_ = about.sq_entries * sqe_bytes();
    queue_ = map(descriptor, queue_bytes_, IORING_OFF_SQ_RING);
    entries_ = map(descriptor, entry_bytes_, IORING_OFF_SQES);
  }
  ~Queues() {
    if (queue_ != nullptr) unmap_local(queue_, queue_bytes_);
    if (entries_ != nullptr) unmap_local(entries_, entry_bytes_);
  }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;
  bool are_there() const { return queue_ != nullptr && entries_ != nullptr; }

  unsigned head() const { return word(about_.sq_off.head); }
  unsigned tail() const { return word(about_.sq_off.tail); }
  unsigned completions() const { return word(about_.cq_off.tail); }
  // Null: its place is none, which the kernel drops.
  const io_uring_sqe* entry(unsigned number) const {
    unsigned at = number & (about_.sq_entries - 1);
    if ((about_.flags & kWithoutArray) == 0)
      at = word(about_.sq_off.array + at * static_cast<unsigned>(sizeof(unsigned)));
    return at < about_.sq_entries ? reinterpret_cast<const io_uring_sqe*>(entries_ + at * sqe_bytes()) : nullptr;
  }
  io_uring_cqe completion(unsigned number) const {
    io_uring_cqe copy;
    std::memcpy(&copy, queue_ + about_.cq_off.cqes + (number & (about_.cq_entries - 1)) * cqe_bytes(), sizeof copy);
    return copy;
  }

 private:
  static char* map(int descriptor, std::size_t bytes, long which) {
    long made = raw::call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ, MAP_SHARED, descriptor, which);
    return raw::failed(made) ? nullptr : reinterpret_cast<char*>(made);
  }
  unsigned word(unsigned offset) const {
    // acquire: what was written before it, by the program or the kernel
    return __atomic_load_n(reinterpret_cast<const unsigned*>(queue_ + offset), __ATOMIC_ACQUIRE);
  }
  std::size_t sqe_bytes() const {
    return sizeof(io_uring_sqe) << ((about_.flags & IORING_SETUP_SQE128) != 0 ? 1 : 0);
  }
  std::size_t cqe_bytes() const { return sizeof(io_uring_cqe) << ((about_.flags & IORING_SETUP_CQE32) != 0 ? 1 : 0); }

  const io_uring_params& about_;
  std::size_t queue_bytes_, entry_bytes_;
  char *queue_ = nullptr, *entries_ = nullptr;
};

// --- what entries name

void hold_entry(Held& held, const io_uring_sqe& entry) {
  const auto* named = reinterpret_cast<const void*>(entry.addr);
  const auto* second = reinterpret_cast<const void*>(entry.off);  // addr2
  switch (entry.opcode) {
    case IORING_OP_READ:
    case IORING_OP_RECV:
      return held.out(named, entry.len);
    case IORING_OP_WRITE:
    case IORING_OP_SEND:
    case IORING_OP_SEND_ZC:
      held.in(second, kPageSize);  // an address, where a send has one
      return held.in(named, entry.len);
    case IORING_OP_READV:
    case IORING_OP_WRITEV:
      return held.vector(static_cast<const iovec*>(named), entry.len, entry.opcode == IORING_OP_READV);
    case IORING_OP_SENDMSG:
    case IORING_OP_SENDMSG_ZC:
    case IORING_OP_RECVMSG:
      return held.message(static_cast<const msghdr*>(named), entry.opcode == IORING_OP_RECVMSG);
    case IORING_OP_READ_FIXED:
    case IORING_OP_WRITE_FIXED:
      return;  // pinned when they were registered
    default:
      held.out(named, kPageSize);
      held.out(second, kPageSize);
  }
}

bool note(Ring& ring, const Note& what) {
  if (ring.count == ring.room) {
    std::size_t room = ring.room == 0 ? kPageSize / sizeof(Note) : ring.room * 2;
    auto* larger = static_cast<Note*>(map_local(room * sizeof(Note)));
    if (larger == nullptr) return false;
    if (ring.room != 0) std::memcpy(larger, ring.notes, ring.count * sizeof(Note));
    if (ring.room != 0) unmap_local(ring.notes, ring.room * sizeof(Note));
    ring.notes = larger;
    ring.room = room;
  }
  ring.notes[ring.count++] = what;
  return true;
}

void note_entries(Ring& ring, const Queues& queues, unsigned wanted) {
  const unsigned first = queues.head();
  for (unsigned i = 0; i < wanted && first + i != queues.tail(); ++i) {
    const io_uring_sqe* entry = queues.entry(first + i);
    // Of one without a completion nobody would hear that it is done.
    if (entry == nullptr || (entry->flags & IOSQE_CQE_SKIP_SUCCESS) != 0) continue;
    const bool has_pages = entry->opcode == IORING_OP_SEND_ZC || entry->opcode == IORING_OP_SENDMSG_ZC;
    if (!note(ring, {entry->user_data, first + i, has_pages, 0, 0})) return;
    Held held;
    hold_entry(held, *entry);
    held.hand_over([&](std::uintptr_t address, std::size_t bytes) {
      if (!note(ring, {entry->user_data, first + i, has_pages, address, bytes}))
        hl_self_paging.let_go(address, bytes);
    });
  }
}

template <typename Is>
void let_go_where(Ring& ring, Is&& is) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ring.count; ++i) {
    const Note now = ring.notes[i];
    if (!is(now))
      ring.notes[kept++] = now;
    else if (now.bytes != 0)
      hl_self_paging.let_go(now.address, now.bytes);
  }
  ring.count = kept;
}

// Which of several entries with the same name is done cannot be told: they are let go when all are.
void let_go_of(Ring& ring, std::uint64_t name, bool more_come) {
  Note* first = nullptr;
  unsigned entries = 0;
  for (std::size_t i = 0; i < ring.count; ++i) {
    if (ring.notes[i].name != name || ring.notes[i].bytes != 0) continue;
    if (first == nullptr) first = &ring.notes[i];
    ++entries;
  }
  if (first == nullptr || (more_come && !first->until_first) || ++first->done < entries) return;
  let_go_where(ring, [name](const Note& now) { return now.name == name; });
}

void look_at_completions(Ring& ring, const Queues& queues) {
  const unsigned now = queues.completions();
  if (now - ring.seen > ring.about.cq_entries) ring.seen = now - ring.about.cq_entries;
  for (; ring.seen != now && ring.count != 0; ++ring.seen) {
    io_uring_cqe completion = queues.completion(ring.seen);
    if ((completion.flags & IORING_CQE_F_NOTIF) != 0) continue;  // pages that it had are given back
    let_go_of(ring, completion.user_data, (completion.flags & IORING_CQE_F_MORE) != 0);
  }
  ring.seen = now;
}

Ring* ring_of(long descriptor, long flags) {
  if (descriptor < 0 || (flags & kByRegistration) != 0) return nullptr;
  for (Ring& ring : g_rings)
    if (ring.descriptor.load(std::memory_order_acquire) == static_cast<int>(descriptor)) return &ring;
  return nullptr;
}

bool can_be_seen(const io_uring_params& about) {
  return (about.flags & (IORING_SETUP_SQPOLL | kOwnMemory | kYounger)) == 0 &&
         (about.features & IORING_FEAT_SINGLE_MMAP) != 0;
}

// The number may have been that of a ring that is closed: nothing of that one comes any more.
void remember(int descriptor, const io_uring_params& about) {
  Ring* ring = ring_of(descriptor, 0);
  for (Ring& free : g_rings) {
    int none = -1;
    if (ring != nullptr) break;
    if (free.descriptor.compare_exchange_strong(none, descriptor)) ring = &free;
  }
  if (ring == nullptr) return;
  ring_begins(descriptor);
  TriedLock lock(ring->busy);
  if (!lock) return;
  let_go_where(*ring, [](const Note&) { return true; });
  ring->about = about;
  ring->seen = 0;
  if (!can_be_seen(about)) ring->descriptor.store(-1, std::memory_order_release);
}

// Time limit and mask of the wait itself.
void hold_wait(Held& held, const long (&a)[6]) {
  const auto* asked = reinterpret_cast<const io_uring_getevents_arg*>(a[4]);
  held.in(asked, kPageSize);
  if ((a[3] & IORING_ENTER_EXT_ARG) == 0 || asked == nullptr || !is_readable(asked, sizeof *asked)) return;
  held.in(reinterpret_cast<const void*>(asked->ts), 2 * sizeof(long));
  held.in(reinterpret_cast<const void*>(asked->sigmask), sizeof(long));
}

void before_entering(Ring& ring, int descriptor, unsigned wanted) {
  TriedLock lock(ring.busy);
  if (!lock) return;
  Queues queues(descriptor, ring.about);
  if (!queues.are_there()) return;
  look_at_completions(ring, queues);
  note_entries(ring, queues, wanted);
}

// What the kernel did not take this time is looked at again the next time.
void after_entering(Ring& ring, int descriptor) {
  TriedLock lock(ring.busy);
  if (!lock || ring.count == 0) return;
  Queues queues(descriptor, ring.about);
  if (!queues.are_there()) return;
  const unsigned head = queues.head(), tail = queues.tail();
  let_go_where(ring, [&](const Note& now) { return now.entry - head < tail - head; });
  look_at_completions(ring, queues);
}

}  // namespace

long set_up_ring(const long (&a)[6]) {
  auto* about = reinterpret_cast<io_uring_params*>(a[1]);
  Held held;
  held.out(about);
  long made = held.done(raw::call(SYS_io_uring_setup, a[0], a[1]));
  if (!raw::failed(made)) remember(static_cast<int>(made), *about);
  return made;
}

__attribute__((noinline)) long enter_ring(const long (&a)[6]) {
  Ring* ring = ring_of(a[0], a[3]);
  const int descriptor = static_cast<int>(a[0]);
  if (ring != nullptr) before_entering(*ring, descriptor, static_cast<unsigned>(a[1]));
  Held held;
  hold_wait(held, a);
  long result = held.done(raw::call(SYS_io_uring_enter, a[0], a[1], a[2], a[3], a[4], a[5]));
  if (ring != nullptr) after_entering(*ring, descriptor);
  return result;
}

}  // namespace hinterland
