// What is wanted: who waits for it, the room for it, and its end. The device's side: arrivals_device.cpp; coroutines'
// loops: arrival_loops.cpp.
#include "object/arrivals.hpp"

#include <cerrno>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "object/arrival_loops.hpp"

namespace hinterland::object {
namespace {

using hl::far::detail::kReachNontemporal;
using hl::far::detail::kReachWrite;

// One in so many is timed, as of those that block.
constexpr std::uint64_t kMissesATimed = 16;

}  // namespace

Mutex& Arrivals::mutex() {
  static constinit Mutex mutex;
  return mutex;
}

Arrivals::~Arrivals() {
  LockGuard guard(mutex());
  abandon(ECANCELED);
  for (Slot& slot : slots_) give_up_page(slot);
}

Arrivals::Begun Arrivals::begin(Arrival& who, bool may_go_beyond) {
  LockGuard guard(mutex());
  const Begun begun = begin_locked(who, may_go_beyond);
  // So that it is sent off, also where the loop is about to sleep.
  if (begun == Begun::waits && who.gathers != nullptr) signal(*who.gathers);
  return begun;
}

Arrivals::Bringing* Arrivals::bringing_of(const Word* word) {
  Bringing* each = bringing_;
  while (each != nullptr && each->word != word) each = each->next;
  return each;
}

void Arrivals::join(Bringing& bringing, Arrival& who) {
  bringing.flags |= who.flags & kReachWrite;
  bringing.flags &= who.flags | ~std::uint32_t{kReachNontemporal};
  who.next = std::exchange(bringing.waiters, &who);
  who.state.store(kBrought, std::memory_order_relaxed);
}

Arrivals::Begun Arrivals::begin_locked(Arrival& who, bool may_go_beyond) {
  std::uint64_t value = who.where->load(std::memory_order_acquire);
  for (;;) {
    if (is_local(value) || is_kind(value, kLeaving)) return Begun::there;
    if (heap_.far_->is_copy()) return who.error = ENOTSUP, Begun::over;
    if (is_kind(value, kArriving)) {
      if (Bringing* already = bringing_of(who.where)) return join(*already, who), Begun::waits;
      who.state.store(kWatches, std::memory_order_relaxed);
      if (who.gathers != nullptr) who.next = std::exchange(who.gathers->watching, &who);
      return Begun::waits;
    }
    std::unique_ptr<Bringing> made = make(who.where, value, who.flags);
    if (made == nullptr) return who.error = ENOMEM, Begun::over;
    if (who.where->compare_exchange_strong(value, kArriving, std::memory_order_acquire))
      return bring(*made.release(), who, may_go_beyond);
  }
}

std::unique_ptr<Arrivals::Bringing> Arrivals::make(Word* word, std::uint64_t value, std::uint32_t flags) {
  std::unique_ptr<Bringing> made(new (std::nothrow) Bringing{.word = word, .value = value, .flags = flags});
  if (made == nullptr || is_kind(value, kFar)) return made;
  const auto& object = *reinterpret_cast<const LargeObject*>(value & kAddress);
  made->pieces.reset(new (std::nothrow) Piece[object.pages.size()]);
  if (made->pieces == nullptr) made.reset();
  return made;
}

// Whose word is arriving by now.
Arrivals::Begun Arrivals::bring(Bringing& bringing, Arrival& who, bool may_go_beyond) {
  bringing.began_ns = now_ns();
  if (!take_room(bringing, false) && !may_go_beyond) {
    heap_.settle_word(bringing.word, bringing.value);
    delete &bringing;
    return Begun::over;
  }
  bringing.next = bringing_;
  if (bringing_ != nullptr) bringing_->before = &bringing;
  bringing_ = &bringing;
  begun_.fetch_add(1, std::memory_order_relaxed);
  join(bringing, who);
  if (bringing.header == nullptr)
    ++without_room_;
  else
    ask_for(bringing);  // it may have come by that, from a page that is held
  // A coroutine is told of that by its loop.
  return who.state.load(std::memory_order_relaxed) == kOver ? Begun::there : Begun::waits;
}

// --- room
// ------------------------------------------------------------------------------------------------------------

// Pinned from the beginning: to an evacuator that finds the region it would be something that is never made.
bool Arrivals::take_room(Bringing& bringing, bool beyond) {
  const Grace::Scope held;
  if (!held) return false;
  Header* header = heap_.room_for_far(bringing.value, bringing.flags, beyond, true);
  if (header == nullptr) return false;
  heap_.local_->pin(header);
  bringing.header = header;
  return true;
}

// Of those who wait for evacuators. Who has waited long enough goes beyond the limit.
void Arrivals::retry_for_room() {
  if (!Grace::has_slot()) return;  // others come
  for (Bringing *each = bringing_, *next; each != nullptr && without_room_ != 0; each = next) {
    next = each->next;
    if (each->header != nullptr) continue;
    const bool patient =
        !heap_.stuck_.load(std::memory_order_relaxed) && now_ns() < each->began_ns + kPatienceInScopeNs;
    const bool found = take_room(*each, !patient);
    if (!found && patient) continue;
    --without_room_;
    if (found) {
      ask_for(*each);
    } else {
      each->error = ENOMEM;
      finish(*each);
    }
  }
}

void Arrivals::fail_without_room(int error) {
  for (Bringing *each = bringing_, *next; each != nullptr; each = next) {
    next = each->next;
    if (each->header != nullptr) continue;
    --without_room_;
    each->error = error;
    finish(*each);
  }
}

// --- the end
// ---------------------------------------------------------------------------------------------------------

void Arrivals::piece_done(Piece& piece, int error) {
  Bringing& of = *piece.of;
  if (error != 0 && of.error == 0) of.error = error;
  if (--of.left == 0) finish(of);
}

void Arrivals::finish(Bringing& bringing) {
  (bringing.before != nullptr ? bringing.before->next : bringing_) = bringing.next;
  if (bringing.next != nullptr) bringing.next->before = bringing.before;
  if (bringing.pin.record != nullptr) heap_.far_->unpin(bringing.pin.record);
  void* object = nullptr;
  Header* const header = bringing.header;
  if (bringing.error == 0) {
    // Before anybody sees that it is there, and might have it leave.
    for (const Arrival* each = bringing.waiters; each != nullptr; each = each->next)
      if (each->gathers != nullptr) heap_.local_->pin(header);
    object = heap_.arrived(bringing.word, bringing.value, header, bringing.flags);
  } else {
    heap_.not_arrived(bringing.word, bringing.value, header);
  }
  if (header != nullptr) heap_.local_->unpin(header);
  // Those that are on their way together wait for one another's time, so each has its share of it.
  const std::uint32_t together = begun_.fetch_sub(1, std::memory_order_relaxed);
  if (finished_++ % kMissesATimed == 0)
    heap_.figures_.waited_ns.fetch_add((now_ns() - bringing.began_ns) * kMissesATimed / together,
                                       std::memory_order_relaxed);
  for (Arrival *each = bringing.waiters, *next; each != nullptr; each = next) {
    next = each->next;
    tell(*each, bringing.error, object);
  }
  finished_any_ = true;
  delete &bringing;
}

// A fiber may go on with this, and `who` is gone.
void Arrivals::tell(Arrival& who, int error, void* object) {
  who.error = error;
  who.object = object;
  if (who.gathers == nullptr) return who.state.store(kOver, std::memory_order_release);
  who.state.store(kReady, std::memory_order_relaxed);
  add_ready(*who.gathers, who);
}

bool Arrivals::is_on_its_way(const Arrival& who) {
  // acquire: pairs with tell(): the answer
  const std::uint32_t state = who.state.load(std::memory_order_acquire);
  if (state != kWatches) return state == kBrought;
  return is_kind(who.where->load(std::memory_order_acquire), kArriving);
}

// Everything ends with this error, without the device.
void Arrivals::abandon(int error) {
  queue_first_ = queue_last_ = nullptr;
  queued_ = 0;
  for (Slot& slot : slots_) {
    if (slot.state == State::held) continue;
    slot.pieces = nullptr;
    slot.state = State::free;
  }
  without_room_ = 0;
  while (bringing_ != nullptr) {
    bringing_->error = error;
    finish(*bringing_);
  }
}

void Arrivals::forget(Arrival& who) {
  LockGuard guard(mutex());
  switch (who.state.load(std::memory_order_relaxed)) {
    case kBrought:
      if (Bringing* of = bringing_of(who.where)) strike(of->waiters, who);
      break;
    case kWatches:
      strike(who.gathers->watching, who);
      break;
    case kReady:
      strike_ready(*who.gathers, who);
      if (who.error == 0) heap_.local_->unpin(who.object);
      break;
    default:
      break;
  }
  who.state.store(kOver, std::memory_order_relaxed);
}

// --- fork
// ------------------------------------------------------------------------------------------------------------

void Arrivals::before_fork() {
  LockGuard guard(mutex());
  while (bringing_ != nullptr) {
    if (!Grace::has_slot()) fail_without_room(ENOMEM);
    drive_locked(true);
    if (bringing_ != nullptr && port_ != nullptr) port_->channel().wait(kPatienceInScopeNs);
  }
  for (Slot& slot : slots_) give_up_page(slot);
}

void Arrivals::after_fork_in_child() {
  mutex().reset_after_fork();
  if (port_ != nullptr) port_->abandon();
  port_.reset();
  forget_descriptors();
}

}  // namespace hinterland::object
