#include "preload/atfork.hpp"

#include <cerrno>
#include <cstdint>

#include "base/mutex.hpp"
#include "preload/local_heap.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::atfork {
namespace {

// Appended, never reused: a handler keeps its number, so a fork can walk the list without holding the lock while a
// handler runs (it may fork, register, or load objects).
struct Handler {
  void (*prepare)();
  void (*parent)();
  void (*child)();
  const void* dso;  // nullptr together with removed
  bool removed;
};

Mutex g_mutex;
Handler* g_handlers = nullptr;
std::size_t g_count = 0, g_room = 0;

bool grow_locked() {
  std::size_t room = g_room == 0 ? 32 : g_room * 2;
  void* larger = g_handlers == nullptr ? local_heap::allocate(room * sizeof(Handler))
                                       : local_heap::resize(g_handlers, room * sizeof(Handler));
  if (larger == nullptr) return false;
  g_handlers = static_cast<Handler*>(larger);
  g_room = room;
  return true;
}

enum class When { prepare, parent, child };

void run(std::size_t index, When when) {
  void (*function)() = nullptr;
  {
    LockGuard guard(g_mutex);
    if (index >= g_count || g_handlers[index].removed) return;
    const Handler& handler = g_handlers[index];
    function = when == When::prepare ? handler.prepare : when == When::parent ? handler.parent : handler.child;
  }
  if (function != nullptr) function();
}

std::size_t count() {
  LockGuard guard(g_mutex);
  return g_count;
}

}  // namespace

int add(void (*prepare)(), void (*parent)(), void (*child)(), const void* dso) {
  return uninterrupted([=] {
    LockGuard guard(g_mutex);
    if (g_count == g_room && !grow_locked()) return ENOMEM;
    g_handlers[g_count++] = {prepare, parent, child, dso, false};
    return 0;
  });
}

void remove_all_of(const void* dso) {
  if (dso == nullptr) return;
  LockGuard guard(g_mutex);
  for (std::size_t i = 0; i < g_count; ++i)
    if (g_handlers[i].dso == dso) g_handlers[i].removed = true;
  while (g_count > 0 && g_handlers[g_count - 1].removed) --g_count;
}

std::size_t run_prepare() {
  std::size_t mark = count();
  for (std::size_t i = mark; i > 0; --i) run(i - 1, When::prepare);
  return mark;
}

void lock() { g_mutex.lock(); }
void unlock() { g_mutex.unlock(); }

void run_parent(std::size_t mark) {
  for (std::size_t i = 0; i < mark; ++i) run(i, When::parent);
}
void run_child(std::size_t mark) {
  for (std::size_t i = 0; i < mark; ++i) run(i, When::child);
}

}  // namespace hinterland::atfork
