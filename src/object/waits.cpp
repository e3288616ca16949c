// A fiber that parks may go on in another thread. So each step that uses what belongs to a thread (errno, the depth
// of InsideRuntime, a Call) is a function of its own, which is not inlined: compilers keep such addresses.
#include "object/waits.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "fiber/object_parking.hpp"
#include "object/arrival_loops.hpp"
#include "object/entry.hpp"

namespace hinterland::object {
namespace {

std::atomic<const hl_object_fibers*> g_fibers{nullptr};

Heap& heap() { return *current_heap(); }  // callers hold a word of it, or saw its size
const hl_object_fibers& fibers() { return *g_fibers.load(std::memory_order_acquire); }

// Of a caller within a Call: whether it is a fiber that may leave its thread here. One in an undivided step of a
// container has a lock that belongs to the thread.
bool may_park() {
  const hl_object_fibers* known = g_fibers.load(std::memory_order_acquire);
  return known != nullptr && Grace::is_outermost_call() && known->may_park() != 0;
}

// A call of the runtime, in which allocations are local memory. Keeps errno.
class Step {
 public:
  Step() : call_(heap().grace()) {}
  ~Step() { errno = before_; }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  const int before_ = errno;
  InsideRuntime inside_;
  Grace::Call call_;
};

// True: it is over. False: it is on its way, and the caller is a fiber that parks.
__attribute__((noinline)) bool reach_step(Arrival* who, void** object, int* error) {
  const Step step;
  std::uint64_t value;
  *object = heap().reach_there(who->where, who->flags, &value);
  if (*object != nullptr) return true;
  Arrivals* arrivals = heap().arrivals();
  while (arrivals != nullptr && may_park()) {
    switch (arrivals->begin(*who)) {
      case Arrivals::Begun::waits:
        return false;
      case Arrivals::Begun::over:
        *error = who->error;
        return true;
      case Arrivals::Begun::there:
        *object = heap().reach_there(who->where, who->flags, &value);
        if (*object != nullptr) return true;
        break;
    }
  }
  *object = heap().reach(who->where, who->flags, error);
  return true;
}

// Begins to bring the objects that are far, without going beyond the limit.
__attribute__((noinline)) bool prefetch_step(Word* const* words, std::uint32_t count, std::uint32_t flags,
                                             Arrival* who) {
  const Step step;
  Arrivals* arrivals = heap().arrivals();
  if (arrivals == nullptr || !may_park()) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    who[i].where = words[i];
    who[i].flags = flags;
    // What somebody else brings is somebody else's.
    if (is_kind(words[i]->load(std::memory_order_acquire), kFar)) static_cast<void>(arrivals->begin(who[i], false));
  }
  return true;
}

__attribute__((noinline)) std::size_t blocking_reach_many(Word* const* words, std::size_t count,
                                                          std::uint32_t flags) {
  const Step step;
  return heap().reach_many({words, count}, flags);
}

// Room within the limit. False: the caller is a fiber, which sleeps, and then asks again.
__attribute__((noinline)) bool begin_object_step(std::size_t bytes, std::size_t alignment, const Type* type,
                                                 bool nontemporal, bool may_go_beyond, void** object) {
  const Inside inside;
  Grace::Call call(heap().grace());
  *object = heap().begin_object(bytes, alignment, type, nontemporal, true, may_go_beyond);
  if (*object != nullptr) return true;
  if (!may_go_beyond && may_park()) return false;
  *object = heap().begin_object(bytes, alignment, type, nontemporal);
  return true;
}

__attribute__((noinline)) bool relieve_step(const Grace::Slot* slot) {
  const Step step;
  // What is dereferenced in an outer scope would be waited for by those whom we would wait for.
  return slot->active[0].load(std::memory_order_relaxed) == 0 &&
         slot->active[1].load(std::memory_order_relaxed) == 0 && may_park() && heap().still_pressed();
}

__attribute__((noinline)) void blocking_relieve(Grace::Slot* slot) {
  InsideRuntime inside;
  heap().relieve(slot);
}

constexpr std::uint64_t kSleepInScopeNs = kPatienceInScopeNs / 3;

}  // namespace

void* reach(Word* word, std::uint32_t flags, int* error) {
  for (;;) {
    Arrival who;
    who.where = word;
    who.flags = flags;
    void* object = nullptr;
    if (reach_step(&who, &object, error)) return object;
    fibers().park(&who);
    if (who.error != 0) return *error = who.error, nullptr;
  }
}

std::size_t reach_many(Word* const* words, std::size_t count, std::uint32_t flags) {
  constexpr std::size_t kTogether = 32;
  std::size_t brought = 0;
  for (std::size_t first = 0; first < count; first += kTogether) {
    std::array<Arrival, kTogether> who;
    const auto some = static_cast<std::uint32_t>(std::min(kTogether, count - first));
    if (!prefetch_step(words + first, some, flags, who.data()))
      return brought + blocking_reach_many(words + first, count - first, flags);
    for (std::uint32_t i = 0; i < some; ++i) {
      const std::uint32_t state = who[i].state.load(std::memory_order_acquire);
      if (Arrivals::is_on_its_way(who[i])) fibers().park(&who[i]);
      brought += state != kIdle && who[i].error == 0;
    }
  }
  return brought;
}

void* begin_object(std::size_t bytes, std::size_t alignment, const Type* type, std::uint32_t flags) {
  const bool nontemporal = (flags & hl::far::detail::kMakeNontemporal) != 0;
  void* object = nullptr;
  for (std::uint64_t slept_ns = 0;
       !begin_object_step(bytes, alignment, type, nontemporal, slept_ns >= kPatienceInScopeNs, &object);
       slept_ns += kSleepInScopeNs)
    fibers().sleep(kSleepInScopeNs);
  return object;
}

void relieve(Grace::Slot* slot) {
  if (current_heap() == nullptr) return;
  if (!relieve_step(slot)) return blocking_relieve(slot);
  const std::uint64_t end = now_ns() + kPatienceNs;
  // The slot is another thread's after the first sleep; a fiber without scopes has none there, either.
  static constexpr Grace::Slot kNoScopes;
  do fibers().sleep(kSleepInScopeNs);
  while (now_ns() < end && relieve_step(&kNoScopes));
}

// --- coroutines
// ------------------------------------------------------------------------------------------------------

bool pin_now(Arrival* what) {
  const Step step;
  std::uint64_t value = 0;
  what->object = heap().reach_there(what->where, what->flags, &value);
  if (what->object == nullptr) {
    if (heap().arrivals() != nullptr) return false;
    what->object = heap().reach(what->where, what->flags, &what->error);
    if (what->object == nullptr) return true;
  }
  heap().local().pin(what->object);
  return true;
}

void pin_blocking(Arrival* what) {
  const Step step;
  what->error = 0;
  what->object = heap().reach(what->where, what->flags, &what->error);
  if (what->object != nullptr) heap().local().pin(what->object);
}

bool pin_later(Arrival* what) {
  const Step step;
  for (;;) {
    // Within a scope: what is there stays until it is pinned.
    const Grace::Scope held;
    std::uint64_t value;
    what->object = heap().reach_there(what->where, what->flags, &value);
    if (what->object != nullptr) {
      heap().local().pin(what->object);
      return false;
    }
    // When it waits, the coroutine may have gone on and ended by now.
    const Arrivals::Begun begun = heap().arrivals()->begin(*what);
    if (begun != Arrivals::Begun::there) return begun == Arrivals::Begun::waits;
  }
}

void pin_forget(Arrival* what) {
  const Step step;
  if (Arrivals* arrivals = heap().arrivals()) arrivals->forget(*what);
}

void unpin(const void* object) { heap().local().unpin(object); }

ArrivalLoop* begin_loop() {
  InsideRuntime inside;
  auto* made = new (std::nothrow) ArrivalLoop;
  if (made == nullptr) return nullptr;
  Grace::Call call(process_grace());  // a fork finds all loops whole
  LockGuard guard(Arrivals::mutex());
  add_loop(*made);
  return made;
}

void end_loop(ArrivalLoop* of) {
  InsideRuntime inside;
  {
    Grace::Call call(process_grace());
    LockGuard guard(Arrivals::mutex());
    if (Heap* there = current_heap(); there != nullptr && there->arrivals() != nullptr)
      there->arrivals()->forget_all(*of);
    remove_loop(*of);
  }
  delete of;
}

Arrival* gather(ArrivalLoop* of) {
  if (current_heap() == nullptr || heap().arrivals() == nullptr) return nullptr;
  const Step step;
  return heap().arrivals()->gather(*of);
}

void settle(ArrivalLoop* of) {
  if (current_heap() == nullptr || heap().arrivals() == nullptr) return;
  const Step step;
  heap().arrivals()->settle(*of);
}

int descriptor(ArrivalLoop* of) {
  InsideRuntime inside;
  int failed;
  {
    Grace::Call call(process_grace());
    LockGuard guard(Arrivals::mutex());
    failed = make_descriptor(*of);
  }
  if (failed != 0) return failed;
  settle(of);
  return of->set;
}

// Not within a call while it sleeps: a fork waits for those.
void wait(ArrivalLoop* of, std::uint64_t timeout_ns) {
  constexpr std::uint64_t kSpinNs = 20'000, kWithoutDescriptorNs = 50'000, kLongestNs = 100'000'000;
  const int set = descriptor(of);
  const std::uint64_t begun = now_ns(), end = begun + std::min(timeout_ns, ~begun);
  for (std::uint64_t now = begun;; now = now_ns()) {
    settle(of);
    {
      LockGuard guard(Arrivals::mutex());
      if (of->first != nullptr) return;
    }
    if (now >= end) return;
    if (now < begun + kSpinNs) continue;
    const std::uint64_t longest = std::min(end - now, set >= 0 ? kLongestNs : kWithoutDescriptorNs);
    const timespec limit{static_cast<time_t>(longest / 1'000'000'000), static_cast<long>(longest % 1'000'000'000)};
    pollfd readable{set, POLLIN, 0};
    ::ppoll(&readable, set >= 0 ? 1 : 0, &limit, nullptr);
  }
}

namespace {

// --- fibers
// ----------------------------------------------------------------------------------------------------------

void set_fibers(const hl_object_fibers* known) { g_fibers.store(known, std::memory_order_release); }

int is_on_its_way(const void* what) { return Arrivals::is_on_its_way(*static_cast<const Arrival*>(what)) ? 1 : 0; }

int poll_for_fibers() {
  Heap* there = current_heap();
  if (there == nullptr || there->arrivals() == nullptr || !there->arrivals()->any_begun()) return 0;
  const Step step;
  return there->arrivals()->drive() ? 1 : 0;
}

int descriptor_for_fibers() {
  Heap* there = current_heap();
  if (there == nullptr || there->arrivals() == nullptr) return -1;
  const Step step;
  return there->arrivals()->descriptor();
}

void take_scopes(Grace::Slot* slot, std::uint32_t* scopes) { process_grace().take_scopes(*slot, scopes); }
void bring_scopes(Grace::Slot* slot, std::uint32_t* scopes) { process_grace().bring_scopes(*slot, scopes); }

}  // namespace
}  // namespace hinterland::object

// C linkage: object_parking.hpp declares it.
__attribute__((visibility("default"))) constinit const struct hl_object_parking hl_object_parking = {
    .set_fibers = hinterland::object::set_fibers,
    .is_on_its_way = hinterland::object::is_on_its_way,
    .poll = hinterland::object::poll_for_fibers,
    .descriptor = hinterland::object::descriptor_for_fibers,
    .take_scopes = hinterland::object::take_scopes,
    .bring_scopes = hinterland::object::bring_scopes,
};
