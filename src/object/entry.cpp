#include "object/entry.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/inside.hpp"
#include "base/log.hpp"
#include "base/raw_call.hpp"
#include "base/settings.hpp"
#include "hinterland/object_runtime.hpp"
#include "object/evacuator.hpp"
#include "object/guards.hpp"
#include "object/shared_budget.hpp"
#include "object/waits.hpp"
#include "paging/pager.hpp"

namespace hinterland::object {
namespace {

constinit Mutex g_begin_mutex;       // of the start
std::atomic<Heap*> g_heap{nullptr};  // the process's, once it has begun
std::atomic<bool> g_refused{false};  // the environment wants none, or it could not be had
std::array<char, 1100> g_error;      // of the last failure; guarded by g_begin_mutex

// Slots are kept by threads, so it is there before the heap and after it.
Grace& grace() {
  static Grace* const grace = new Grace;
  return *grace;
}

Heap& heap() { return *g_heap.load(std::memory_order_relaxed); }  // callers hold a word of it, or saw its size

int fail(const Error& error) {
  std::snprintf(g_error.data(), g_error.size(), "%s%s%s", error.what(), error.next_step()[0] != '\0' ? "; " : "",
                error.next_step());
  return error.code() != 0 ? error.code() : EINVAL;
}

// As the environment says, which `hinterland run` has set: objects begin with half of the local memory, and share it
// with the pages from then on.
Status begin_as_told() {
  Result<Settings> settings = settings_from_environment();
  if (!settings) return std::unexpected(settings.error());
  HeapOptions options;
  options.local_bytes = settings->local_bytes / 2;
  auto device = far::open_device(settings->far_url, {settings->key_file, settings->timeout_ns});
  if (!device) return std::unexpected(device.error());
  if (Status begun = begin_heap(options, std::move(*device)); !begun) return begun;
  static SharedBudget shared(*current_heap());
  if (Pager* pager = Pager::current()) pager->join_budget(shared);
  return {};
}

Status begin_as_given(const hl::far::detail::heap_settings& given) {
  HeapOptions options;
  options.local_bytes = given.local_bytes;
  options.evacuators = given.evacuators;
  auto device = far::open_device(given.device_url, {});
  if (!device) return std::unexpected(device.error());
  return begin_heap(options, std::move(*device));
}

int begin(const hl::far::detail::heap_settings* given) {
  if (given == nullptr && g_refused.load(std::memory_order_acquire)) return ENOTSUP;
  InsideRuntime inside;
  LockGuard guard(g_begin_mutex);
  if (current_heap() != nullptr)
    return given == nullptr
               ? 0
               : fail(Error::make(EBUSY, "there is one already").remedy("start it before the first object, once"));
  if (given != nullptr) {
    Status begun = begin_as_given(*given);
    return begun ? 0 : fail(begun.error());
  }
  if (std::getenv("HINTERLAND_LOCAL") != nullptr) {
    Status begun = begin_as_told();
    if (begun) return 0;
    fail(begun.error());
    log::warning("far objects stay local: %s", g_error.data());
  }
  g_refused.store(true, std::memory_order_release);
  return ENOTSUP;
}

const char* error_text() { return g_error.data(); }

Grace::Slot* enter_thread() {
  Inside inside;
  return grace().enter();
}

void leave_thread(Grace::Slot* slot) {
  Inside inside;
  grace().leave(slot);
}

void finish_object(void* object, Word* owner) { heap().finish_object(object, owner); }

void drop_object(void* object) {
  Inside inside;
  Grace::Call call(grace());
  heap().drop_object(object);
}

void release(Word* word) {
  Inside inside;
  Grace::Call call(grace());
  heap().release(word);
}

void move(Word* from, Word* to) {
  Inside inside;
  Grace::Call call(grace());
  heap().move(from, to);
}

// As the kernel does it where a page is lost: a thread that blocks or ignores the signal is ended by it.
void lost(Word* word, int error) {
  if (error == ENOTSUP)
    log::error(
        "the far object of the pointer at %p is its parent's: this process is a copy that fork() has not made; "
        "call fork() of libc instead",
        static_cast<void*>(word));
  else
    log::error("the far object of the pointer at %p is lost: %s answers: %s", static_cast<void*>(word),
               heap().far().device().info().url.c_str(), strerrordesc_np(error));
  sigset_t bus;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  struct sigaction action{};
  const bool blocked = pthread_sigmask(SIG_UNBLOCK, nullptr, &bus) == 0 && sigismember(&bus, SIGBUS) == 1;
  sigaction(SIGBUS, nullptr, &action);
  if (blocked || action.sa_handler == SIG_IGN) {
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &action, nullptr);
  }
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &bus, nullptr);
  raw::call(SYS_tgkill, getpid(), gettid(), SIGBUS);
}

void wait_for_fork(Grace::Slot* slot) { grace().wait_for_fork(slot); }

}  // namespace
}  // namespace hinterland::object

// C linkage: object_runtime.hpp declares it.
__attribute__((visibility("default"))) constinit hl::far::detail::runtime hl_objects = {
    .abi_version = hl::far::detail::kAbiVersion,
    .reserved = 0,
    .base = 0,
    .size = 0,
    .begin = hinterland::object::begin,
    .error = hinterland::object::error_text,
    .enter_thread = hinterland::object::enter_thread,
    .leave_thread = hinterland::object::leave_thread,
    .relieve = hinterland::object::relieve,
    .begin_object = hinterland::object::begin_object,
    .finish_object = hinterland::object::finish_object,
    .drop_object = hinterland::object::drop_object,
    .reach = hinterland::object::reach,
    .reach_many = hinterland::object::reach_many,
    .release = hinterland::object::release,
    .move = hinterland::object::move,
    .lost = hinterland::object::lost,
    .wait_for_fork = hinterland::object::wait_for_fork,
    .pin_now = hinterland::object::pin_now,
    .pin_blocking = hinterland::object::pin_blocking,
    .pin_later = hinterland::object::pin_later,
    .pin_forget = hinterland::object::pin_forget,
    .unpin = hinterland::object::unpin,
    .begin_loop = hinterland::object::begin_loop,
    .end_loop = hinterland::object::end_loop,
    .gather = hinterland::object::gather,
    .settle = hinterland::object::settle,
    .wait = hinterland::object::wait,
    .descriptor = hinterland::object::descriptor,
};

namespace hinterland::object {

Status begin_heap_as_told() {
  const int problem = begin(nullptr);
  if (problem == 0) return {};
  return std::unexpected(Error::make(problem, "there is no heap of far objects"));
}

void object_is_lost(Word* word, int error) { lost(word, error); }

Grace& process_grace() { return grace(); }

Heap* current_heap() { return g_heap.load(std::memory_order_acquire); }  // pairs with begin_heap()

Status begin_heap(const HeapOptions& options, std::unique_ptr<far::Device> device) {
  if (Status able = grace().begin(); !able) return able;
  auto heap = Heap::create(options, std::move(device), grace());
  if (!heap) return std::unexpected(heap.error());
  if (Status begun = (*heap)->begin(); !begun) return begun;
  g_heap.store(heap->get(), std::memory_order_release);
  hl_objects.base = (*heap)->local().base();
  // release: who sees the size sees the rest
  std::atomic_ref(hl_objects.size).store((*heap)->local().bytes(), std::memory_order_release);
  heap->release();
  return {};
}

void end_heap() {
  std::atomic_ref(hl_objects.size).store(0, std::memory_order_relaxed);
  delete g_heap.exchange(nullptr, std::memory_order_acq_rel);
}

void before_fork() {
  g_begin_mutex.lock();  // a heap that begins meanwhile would be half a heap in the child
  if (Heap* there = current_heap())
    there->before_fork([] {
      if (Window* window = current_window()) window->before_fork();
    });
}

void after_fork_in_parent(bool forked) {
  if (Heap* there = current_heap()) there->after_fork_in_parent(forked);
  if (Window* window = current_window()) window->after_fork_in_parent();
  g_begin_mutex.unlock();
}

void after_fork_in_child() {
  if (Heap* there = current_heap()) there->after_fork_in_child();
  if (Window* window = current_window()) window->after_fork_in_child();
  g_begin_mutex.reset_after_fork();
}

void register_fork_handlers() {
  // Whether it failed is not said: what was counted for a child that is not there stays counted.
  [[maybe_unused]] static const int once = pthread_atfork(
      [] {
        InsideRuntime inside;
        before_fork();
      },
      [] { after_fork_in_parent(true); },
      [] {
        InsideRuntime inside;
        after_fork_in_child();
      });
}

}  // namespace hinterland::object
