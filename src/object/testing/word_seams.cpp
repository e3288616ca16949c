// Where the room's movers would wait, or make all threads do something, they come to the scheduler instead. Linked
// before the rooms of the same functions. memcpy is wrapped (CMakeLists.txt): which bytes the runtime copies shows
// nowhere else.
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "object/all_threads.hpp"
#include "object/testing/word_interleaving.hpp"
#include "paging/page/reservation.hpp"

namespace hinterland {

void* raw_mmap(void* address, std::size_t length, int protection, int flags, int descriptor) {
  return reinterpret_cast<void*>(raw::checked(SYS_mmap, address, length, protection, flags, descriptor, 0));
}
int raw_munmap(void* address, std::size_t length) {
  return static_cast<int>(raw::checked(SYS_munmap, address, length));
}
int raw_mprotect(void* address, std::size_t length, int protection) {
  return static_cast<int>(raw::checked(SYS_mprotect, address, length, protection));
}
int raw_madvise(void* address, std::size_t length, int advice) {
  return static_cast<int>(raw::checked(SYS_madvise, address, length, advice));
}

namespace object {

using testing::Scheduler;
using testing::WordInterleaving;

int all_threads::allow_barriers() { return 0; }
int all_threads::allow_restarts() { return 0; }
void all_threads::pass_a_barrier() {
  if (Scheduler::running() != nullptr) WordInterleaving::current()->all_pass_a_barrier();
}
bool all_threads::restart_sequences() {
  if (Scheduler::running() != nullptr) WordInterleaving::current()->all_restart_sequences();
  return true;
}

}  // namespace object
}  // namespace hinterland

// Waiting for scopes to end, or for a word that is busy: until somebody has done something. Each place looks again
// and keeps nothing of what it saw.
extern "C" int sched_yield() {
  if (auto* scheduler = hinterland::testing::Scheduler::running()) {
    scheduler->nap_at(__builtin_return_address(0));
    return 0;
  }
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace {

using hinterland::object::Word;
using Slot = hinterland::object::Grace::Slot;

hinterland::object::Heap& heap() { return hinterland::object::testing::WordInterleaving::current()->heap(); }

}  // namespace

extern "C" {
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  if (hinterland::testing::Scheduler::running() != nullptr)
    hinterland::object::testing::WordInterleaving::current()->copied(to, from, bytes);
  return __real_memcpy(to, from, bytes);
}

// As entry.cpp has it, for the heap of the interleaving.
__attribute__((visibility("default"))) hl::far::detail::runtime hl_objects = {
    .abi_version = hl::far::detail::kAbiVersion,
    .reserved = 0,
    .base = 0,
    .size = 0,
    .begin = nullptr,
    .error = nullptr,
    .enter_thread = nullptr,
    .leave_thread = nullptr,
    .relieve = [](Slot* slot) { heap().relieve(slot); },
    .begin_object =
        [](std::size_t bytes, std::size_t alignment, const hl::far::detail::type* what, std::uint32_t flags) {
          return heap().begin_object(bytes, alignment, what, (flags & hl::far::detail::kMakeNontemporal) != 0);
        },
    .finish_object = [](void* object, Word* owner) { heap().finish_object(object, owner); },
    .drop_object = [](void* object) { heap().drop_object(object); },
    .reach = [](Word* word, std::uint32_t flags, int* error) { return heap().reach(word, flags, error); },
    .reach_many = [](Word* const* words, std::size_t count,
                     std::uint32_t flags) { return heap().reach_many({words, count}, flags); },
    .release = [](Word* word) { heap().release(word); },
    .move = [](Word* from, Word* to) { heap().move(from, to); },
    .lost = nullptr,
    .wait_for_fork = nullptr,
    .pin_now = nullptr,
    .pin_blocking = nullptr,
    .pin_later = nullptr,
    .pin_forget = nullptr,
    .unpin = nullptr,
    .begin_loop = nullptr,
    .end_loop = nullptr,
    .gather = nullptr,
    .settle = nullptr,
    .wait = nullptr,
    .descriptor = nullptr,
};
}
