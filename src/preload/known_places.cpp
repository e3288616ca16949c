#include "preload/known_places.hpp"

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "paging/page/address_set.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::known_places {
namespace {

constinit AddressSet g_places;
Mutex g_mutex;  // of those who change it
bool g_started = false;

}  // namespace

void start() { g_started = g_places.create().has_value(); }

void add(std::uintptr_t address, std::size_t length) {
  if (!g_started) return;
  uninterrupted([=] {
    LockGuard guard(g_mutex);
    g_places.add(page_floor(address), page_ceil(length));
  });
}

void remove(std::uintptr_t address, std::size_t length) {
  if (!g_started || !g_places.overlaps(address, length)) return;
  uninterrupted([=] {
    LockGuard guard(g_mutex);
    g_places.remove(address, page_ceil(length));
  });
}

bool contains(std::uintptr_t address) { return g_places.contains(address); }
std::uintptr_t end_of_piece(std::uintptr_t address, std::uintptr_t end) {
  return g_places.end_of_piece(address, end);
}

void before_fork() { g_mutex.lock(); }
void after_fork() { g_mutex.unlock(); }

}  // namespace hinterland::known_places
