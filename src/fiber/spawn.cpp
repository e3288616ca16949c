// A fiber's beginning and end; and run(), in which all of them live.
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/log.hpp"
#include "fiber/scheduler.hpp"

namespace hinterland::fiber {
namespace {

namespace detail = hl::fibers::detail;
using boost::context::detail::transfer_t;

// The first frame of a fiber. Exceptions end here: below is no frame that could handle them.
void entry(transfer_t from) {
  auto* worker = static_cast<Worker*>(from.data);
  Fiber& self = *worker->current;
  arrived(self.context, worker->context, from.fctx);
  try {
    self.call(self.callable);
  } catch (...) {
    self.error = std::current_exception();
  }
  leave(Leaving::ends);
}

[[noreturn]] void die_of(const Fiber& fiber) {
  const char* what = "of a type that is not derived from std::exception";
  try {
    std::rethrow_exception(fiber.error);
  } catch (const std::exception& error) {
    log::error("an exception left the detached fiber %llu '%s': %s; catch it there, or join the fiber",
               static_cast<unsigned long long>(fiber.id), fiber.name, error.what());
  } catch (...) {
    log::error("an exception left the detached fiber %llu '%s', %s; catch it there, or join the fiber",
               static_cast<unsigned long long>(fiber.id), fiber.name, what);
  }
  std::terminate();
}

std::byte* aligned_down(std::byte* address, std::size_t alignment) {
  return address - reinterpret_cast<std::uintptr_t>(address) % alignment;
}

}  // namespace

//     low ...  stack, grows down  | callable | control block | its address | top
Fiber* Scheduler::spawn(const hl::fibers::fiber_options& options, const detail::body& what, void* from) {
  Stack stack = stacks_.take(options.stack_bytes != 0 ? options.stack_bytes : stack_bytes_);
  if (stack.low == nullptr)
    throw std::system_error(
        ENOMEM, std::generic_category(),
        "no memory for a fiber's stack (smaller stacks, fewer fibers, or a higher vm.max_map_count)");
  if (what.size + what.alignment > stack.bytes() / 4) {
    stacks_.give_back(stack);
    throw std::length_error(
        "a fiber's callable would fill a quarter of its stack; capture references, or give it more");
  }
  auto* fiber = new (aligned_down(stack.top - sizeof(void*) - sizeof(Fiber), alignof(Fiber))) Fiber;
  std::byte* place = aligned_down(reinterpret_cast<std::byte*>(fiber) - what.size, what.alignment);
  fiber->stack = stack;
  try {
    what.move_to(place, from);
  } catch (...) {
    fiber->~Fiber();
    stacks_.give_back(stack);
    throw;
  }
  fiber->scheduler = this;
  fiber->call = what.call_and_destroy;
  fiber->callable = place;
  fiber->id = next_id_.fetch_add(1, std::memory_order_relaxed);
  if (options.name != nullptr) std::strncpy(fiber->name, options.name, sizeof fiber->name - 1);
  prepare(fiber->context, stack.low, aligned_down(place, 64), entry);
  Stacks::occupant(stack) = fiber;
  alive_.fetch_add(1, std::memory_order_relaxed);
  return fiber;
}

void Scheduler::ended(Fiber& fiber) {
  detail::waiter* joiner = nullptr;
  {
    std::lock_guard lock(fiber.guard);
    fiber.ended = true;
    if (fiber.error != nullptr && fiber.detached) die_of(fiber);
    joiner = claim_first(fiber.joiners);
  }
  if (joiner != nullptr) joiner->wake();
  release(fiber);
  if (alive_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  stopping_.store(true);
  wake_all();
}

void Scheduler::release(Fiber& fiber) {
  if (fiber.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  dispose(fiber.context);
  Stack stack = fiber.stack;
  Stacks::occupant(stack) = nullptr;
  fiber.~Fiber();
  stacks_.give_back(stack);
}

}  // namespace hinterland::fiber

namespace hl::fibers::detail {

using hinterland::fiber::current_fiber;
using hinterland::fiber::current_worker;
using hinterland::fiber::Scheduler;

control* spawn(const fiber_options& options, const body& what, void* from) {
  auto* worker = current_worker();
  if (worker == nullptr)
    throw std::system_error(EPERM, std::generic_category(),
                            "a fiber can only be started by a fiber, inside fibers::run()");
  Scheduler& scheduler = *worker->scheduler;
  control* fiber = scheduler.spawn(options, what, from);
  scheduler.make_ready(*fiber);
  return fiber;
}

void join(control* fiber) {
  if (fiber == nullptr) throw std::system_error(EINVAL, std::generic_category(), "a fiber that is not joinable");
  if (fiber == current_fiber()) {
    detach(fiber);  // its handle is gone
    throw std::system_error(EDEADLK, std::generic_category(), "a fiber that joins itself");
  }
  waiter self;
  bool waits = false;
  {
    std::lock_guard lock(fiber->guard);
    waits = !fiber->ended;
    if (waits) enlist(fiber->joiners, self);
  }
  if (waits) self.wait();
  std::exception_ptr error = std::move(fiber->error);
  fiber->scheduler->release(*fiber);
  if (error != nullptr) std::rethrow_exception(error);
}

void detach(control* fiber) noexcept {
  if (fiber == nullptr) return;
  {
    std::lock_guard lock(fiber->guard);
    fiber->detached = true;
    if (fiber->ended && fiber->error != nullptr) hinterland::fiber::die_of(*fiber);
  }
  fiber->scheduler->release(*fiber);
}

// The first fiber is joined by nobody: run() has what it threw, and all others end before.
void run(const run_options& options, void (*main)(void*), void* argument) {
  if (current_worker() != nullptr)
    throw std::system_error(EDEADLK, std::generic_category(), "fibers::run() called by a fiber");
  struct Main {
    void (*call)(void*);
    void* argument;
    std::exception_ptr* error;
    void operator()() const {
      try {
        call(argument);
      } catch (...) {
        *error = std::current_exception();
      }
    }
  };
  std::exception_ptr error;
  struct Destroy {
    Scheduler* scheduler;
    ~Destroy() { scheduler->destroy(); }
  };
  {
    Destroy owned{Scheduler::create(options)};
    Main first{main, argument, &error};
    static constexpr body what{sizeof(Main), alignof(Main),
                               [](void* place, void* from) { new (place) Main(*static_cast<Main*>(from)); },
                               [](void* callable) { (*static_cast<Main*>(callable))(); }};
    control* fiber = owned.scheduler->spawn({.name = "main"}, what, &first);
    owned.scheduler->release(*fiber);  // nobody's handle
    owned.scheduler->make_ready(*fiber);
    owned.scheduler->run();
  }
  if (error != nullptr) std::rethrow_exception(error);
}

unsigned workers() noexcept {
  auto* worker = current_worker();
  return worker != nullptr ? worker->scheduler->workers() : 1;
}

}  // namespace hl::fibers::detail

namespace hl::fibers::this_fiber {

void yield() noexcept {
  if (hinterland::fiber::current_fiber() != nullptr)
    hinterland::fiber::leave(hinterland::fiber::Leaving::yields);
  else
    std::this_thread::yield();
}

const char* name() noexcept {
  detail::control* self = hinterland::fiber::current_fiber();
  return self != nullptr ? self->name : "";
}

std::uint64_t id() noexcept {
  detail::control* self = hinterland::fiber::current_fiber();
  return self != nullptr ? self->id : 0;
}

}  // namespace hl::fibers::this_fiber
