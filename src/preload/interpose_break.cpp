// brk and sbrk: memory at the end of the program's data, out of which older allocators are made (gperftools'
// tcmalloc, GCL's heap). It is far as a mapping is that the program makes at an address of its own choice.
//
// The kernel moves its break only upwards: it knows of the memory that was mapped in the place of its own only that
// something is there. What the program gives back is unmapped, and mapped anew when the program takes it again,
// unless another mapping lies there by then: as natively, the break cannot come back then. As in glibc, threads that
// move the break at the same time have to agree among themselves.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/units.hpp"
#include "preload/known_places.hpp"
#include "preload/limits.hpp"
#include "preload/mappings.hpp"
#include "preload/next.hpp"
#include "preload/program_break.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace hinterland::program_break {
namespace {

std::uintptr_t g_first = 0;  // where it was at first
std::uintptr_t g_ours = 0;   // where it is for the program
std::uintptr_t g_kernels = 0;

std::uintptr_t ask_kernel() { return static_cast<std::uintptr_t>(raw::call(SYS_brk, 0)); }

// libc's own malloc may have moved it, past our functions.
void look() {
  const std::uintptr_t now = ask_kernel();
  if (now == g_kernels) return;
  if (g_first == 0) g_first = now;
  g_ours = g_kernels = now;
}

// Far memory from one break to another, where nothing is (MAP_FIXED_NOREPLACE), or what the kernel has just put there
// (MAP_FIXED).
bool map_between(std::uintptr_t from, std::uintptr_t to, int how) {
  const std::uintptr_t first = page_ceil(from);
  const std::size_t bytes = page_ceil(to) - first;
  if (bytes == 0) return true;
  return !raw::failed(mappings::map(first, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0));
}
bool unmap_between(std::uintptr_t from, std::uintptr_t to) {
  const std::uintptr_t first = page_ceil(from);
  const std::size_t bytes = page_ceil(to) - first;
  return bytes == 0 || mappings::unmap(first, bytes) == 0;
}

// libc's, which remembers where it is.
bool move_kernels(std::uintptr_t to) {
  static constinit Next<int(void*)> next("brk");
  if (next.get()(reinterpret_cast<void*>(to)) != 0) return false;
  g_kernels = to;
  return true;
}

bool raise_kernels(std::uintptr_t to) {
  const std::uintptr_t before = page_ceil(g_kernels);
  if (!move_kernels(to)) return false;
  if (page_ceil(to) > before) known_places::add(before, page_ceil(to) - before);
  return true;
}

bool raise(std::uintptr_t to) {
  if (!limits::allow(page_ceil(to) - page_ceil(g_ours), true)) return false;
  if (!pager().covers_all_addresses()) return move_kernels(to);
  const std::uintptr_t kernels = g_kernels, given_back = std::min(to, kernels);
  if (!map_between(g_ours, given_back, MAP_FIXED_NOREPLACE)) return false;
  if (to <= kernels) return true;
  const bool raised = raise_kernels(to);
  if (raised && map_between(kernels, to, MAP_FIXED)) return true;
  if (raised && move_kernels(kernels)) known_places::remove(page_ceil(kernels), page_ceil(to) - page_ceil(kernels));
  static_cast<void>(unmap_between(g_ours, given_back));
  return false;
}

bool lower(std::uintptr_t to) {
  if (!pager().covers_all_addresses()) return move_kernels(to);
  return unmap_between(to, g_ours);
}

}  // namespace

std::uintptr_t now() {
  look();
  return g_ours;
}

bool move(std::uintptr_t to) {
  return uninterrupted([=] {
    look();
    if (to < g_first) return true;  // libc says so, too
    if (to > g_ours ? !raise(to) : !lower(to)) return false;
    g_ours = to;
    return true;
  });
}

}  // namespace hinterland::program_break

using namespace hinterland;

HL_INTERPOSED int brk(void* to) noexcept {
  static constinit Next<int(void*)> next("brk");
  if (!serves_program()) return next.get()(to);
  if (program_break::move(reinterpret_cast<std::uintptr_t>(to))) return 0;
  errno = ENOMEM;
  return -1;
}

// Under this name gperftools' tcmalloc calls it.
HL_INTERPOSED void* __sbrk(std::intptr_t by) noexcept {
  static constinit Next<void*(std::intptr_t)> next("sbrk");
  if (!serves_program()) return next.get()(by);
  const std::uintptr_t before = program_break::now();
  std::intptr_t after = 0;
  const bool too_far = __builtin_add_overflow(static_cast<std::intptr_t>(before), by, &after) || after < 0;
  if (by == 0 || (!too_far && program_break::move(static_cast<std::uintptr_t>(after))))
    return reinterpret_cast<void*>(before);
  errno = ENOMEM;
  return reinterpret_cast<void*>(-1);
}
HL_INTERPOSED void* sbrk(std::intptr_t by) noexcept { return __sbrk(by); }
