#include "object/guards.hpp"

#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/rseq.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/inside.hpp"
#include "base/keeping_registers.hpp"
#include "base/log.hpp"
#include "base/own_stack.hpp"
#include "base/signal_mask.hpp"
#include "object/block_profile.hpp"
#include "object/entry.hpp"
#include "object/guard_entries.hpp"

namespace hinterland::object {
namespace {

constexpr std::uint32_t kVersion = 2;
constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }
// A fault of the program's own must meet its handler.
constexpr std::uint64_t kAllButFaults =
    ~(bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGILL) | bit_of(SIGFPE) | bit_of(SIGTRAP) | bit_of(SIGSYS));

constinit Mutex g_begin_mutex;           // of the start
std::atomic<Window*> g_window{nullptr};  // the process's

// body() with signals blocked, on a stack of the runtime's own: the caller's may be in the window, and a handler that
// uses the window, or leaves by siglongjmp, would find a lock taken. Keeps errno.
template <typename Body>
auto apart(const Body& body) {
  const int before = errno;
  const std::uint64_t mask = signal_mask::block(kAllButFaults);
  const auto outcome = [&] {
    InsideRuntime inside;
    return on_own_stack(body);
  }();
  signal_mask::set(mask);
  errno = before;
  return outcome;
}

void bring(std::uintptr_t address, bool write) {
  Window* window = g_window.load(std::memory_order_relaxed);  // whoever has an address in it saw it begin
  if (const int error = apart([=] { return window->reach(address, write); }); error != 0)
    return object_is_lost(Window::word_of(address), error);
  // No block is there: the program is wrong, and does here what it would do without the guard.
  if (Window::word_of(address)->load(std::memory_order_relaxed) == 0)
    static_cast<void>(*reinterpret_cast<const volatile char*>(address));
}

// --- whether there can be guards here

bool has_bit_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_BMI2) != 0;
}

Status can_guard() {
  if (!has_bit_instructions())
    return std::unexpected(Error::make(0, "this processor has no BMI2").remedy("compile without --objects for it"));
  if (__rseq_size == 0)
    return std::unexpected(Error::make(0, "the C library has no restartable sequences")
                               .remedy("use glibc 2.35 or newer, without GLIBC_TUNABLES=glibc.pthread.rseq=0"));
  return {};
}

// The operators of the C++ library call malloc and free, which we know; those of a program need not.
bool operators_are_the_librarys() {
  for (const char* name : {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"}) {
    Dl_info info{};
    void* found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr || dladdr(found, &info) == 0 || info.dli_fname == nullptr) return false;
    const char* slash = std::strrchr(info.dli_fname, '/');
    const char* file = slash != nullptr ? slash + 1 : info.dli_fname;
    if (std::strncmp(file, "libstdc++.so", 12) != 0 && std::strncmp(file, "libc++", 6) != 0) return false;
  }
  return true;
}

// A program with a malloc of its own frees with that.
bool free_is_ours() {
  Dl_info its{}, ours{};
  void* found = dlsym(RTLD_DEFAULT, "free");
  return found != nullptr && dladdr(found, &its) != 0 &&
         dladdr(reinterpret_cast<void*>(&take_guarded_module), &ours) != 0 && its.dli_fbase == ours.dli_fbase;
}

void* allocate(std::size_t bytes) { return allocate_block(bytes, false); }
void* allocate_zeroed(std::size_t bytes) { return allocate_block(bytes, true); }

// Behind a block's end, where nothing is written, there need be no block.
void fill_bytes(void* block, int byte, std::size_t bytes) {
  if (bytes != 0) hl_guard_fill(block, byte, bytes);
}

// Bytes of a block for a function of libc, which has no guards: a piece at a time, on the caller's stack.
constexpr std::size_t kPiece = 256;

// From the address to the end of its block; 0 where no block is.
std::size_t left_of(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t slot = number & ~((std::uintptr_t{1} << (number >> Window::kPartShift)) - 1);
  const std::size_t bytes = current_window()->size_of(reinterpret_cast<const void*>(slot));
  return bytes > number - slot ? bytes - (number - slot) : 0;
}

// Where they are, unless that is in a block that has as many.
const void* borrowed(const char* from, std::size_t bytes, char* room) {
  if (!Window::contains(from) || bytes > left_of(from)) return from;
  hl_guard_read_bytes(room, from, bytes);
  return room;
}

int compare(const char* a, const char* b, std::size_t bytes) {
  int result = 0;
  for (std::size_t at = 0; at < bytes && result == 0; at += kPiece) {
    char first[kPiece], second[kPiece];
    const std::size_t count = std::min(kPiece, bytes - at);
    result = std::memcmp(borrowed(a + at, count, first), borrowed(b + at, count, second), count);
  }
  return result;
}

std::size_t length(const char* text) {
  const std::size_t left = Window::contains(text) ? left_of(text) : 0;
  for (std::size_t at = 0; at < left; at += kPiece) {
    char piece[kPiece];
    const std::size_t count = std::min(kPiece, left - at);
    hl_guard_read_bytes(piece, text + at, count);
    if (const std::size_t found = strnlen(piece, count); found < count) return at + found;
  }
  return std::strlen(text);  // not in the window, or without an end
}

int compare_text(const char* a, const char* b, std::size_t most) {
  const std::size_t first = length(a), second = length(b);
  // With the 0 of the shorter one.
  const std::size_t bytes = std::min(most, std::min(first, second) + 1);
  return compare(a, b, bytes);
}

// Which of a block's bytes are asked for, as distances from its beginning: none where begin >= end.
struct Stretch {
  std::uintptr_t slot;
  std::intptr_t begin, end;
};
Stretch stretch_of(const void* pointer, std::intptr_t from, std::intptr_t to) {
  const auto number = reinterpret_cast<std::uintptr_t>(pointer);
  const std::uintptr_t slot = number & ~((std::uintptr_t{1} << (number >> Window::kPartShift)) - 1);
  const auto within = static_cast<std::intptr_t>(number - slot);
  const auto bytes = static_cast<std::intptr_t>(current_window()->size_of(reinterpret_cast<const void*>(slot)));
  // `from` and `to` may be the ends of their type.
  return {slot, from < -within ? 0 : std::min(from, bytes) + within, to > bytes - within ? bytes : to + within};
}

template <typename Function>
void put(GuardedModule& module, Guard place, Function function) {
  module.entries[static_cast<std::size_t>(place)] = reinterpret_cast<void (*)()>(function);
}

void fill_in(GuardedModule& module) {
  void (*const accesses[])() = {hl_guard_read_1,  hl_guard_read_2,  hl_guard_read_4,  hl_guard_read_8,
                                hl_guard_write_1, hl_guard_write_2, hl_guard_write_4, hl_guard_write_8};
  std::copy(std::begin(accesses), std::end(accesses), module.entries);
  put(module, Guard::read_bytes, hl_guard_read_bytes);
  put(module, Guard::write_bytes, hl_guard_write_bytes);
  put(module, Guard::move, move_bytes);
  put(module, Guard::fill, fill_bytes);
  put(module, Guard::compare, compare);
  put(module, Guard::length, length);
  put(module, Guard::compare_text, compare_text);
  put(module, Guard::borrow, borrow_bytes);
  put(module, Guard::give_back, give_back_bytes);
  put(module, Guard::allocate, allocate);
  put(module, Guard::allocate_zeroed, allocate_zeroed);
  if (operators_are_the_librarys()) put(module, Guard::allocate_new, allocate);
  module.base = Window::kBase;
  // release: who finds an address in the window finds the entries.
  std::atomic_ref(module.size).store(Window::kBytes, std::memory_order_release);
}

Status begin_all(void (*before_first)()) {
  if (current_window() != nullptr) return {};
  if (!free_is_ours())
    return std::unexpected(
        Error::make(0, "the program has a malloc of its own").remedy("compile it without --objects"));
  if (Status begun = begin_heap_as_told(); !begun) return begun;
  Status begun = begin_window();
  if (begun) begin_block_counts(current_heap()->memory_limit());
  if (begun) before_first();
  return begun;
}

}  // namespace

Window* current_window() { return g_window.load(std::memory_order_acquire); }  // pairs with begin_window()

Status begin_window() {
  if (Status able = can_guard(); !able) return able;
  prepare_to_keep_registers();
  hl_guard_sequence_at = __rseq_offset + static_cast<std::intptr_t>(offsetof(struct rseq, rseq_cs));
  auto window = Window::create(*current_heap());
  if (!window) return std::unexpected(window.error());
  g_window.store(window->release(), std::memory_order_release);
  return {};
}

void end_window() { delete g_window.exchange(nullptr, std::memory_order_acq_rel); }

void take_guarded_module(GuardedModule& module, void (*before_first)()) {
  InsideRuntime inside;
  LockGuard guard(g_begin_mutex);
  if (module.version != kVersion || module.bytes != sizeof module) {
    log::warning(
        "a program or library has guards by the compiler of version %u, and this runtime knows version %u: its heap "
        "stays on pages; compile it again with this release",
        module.version, kVersion);
    return;
  }
  // By the profile, nothing pays: then no memory is kept for objects.
  static const bool any_pays = choose_block_profile();
  if (!any_pays) return;
  if (Status begun = begin_all(before_first); !begun) {
    log::warning("a program or library with guards keeps its heap on pages: %s%s%s", begun.error().what(),
                 begun.error().next_step()[0] != '\0' ? "; " : "", begun.error().next_step());
    return;
  }
  fill_in(module);
  log::info("the heap of a program or library with guards is in the object window");
}

void release_block(void* block) {
  Window* window = g_window.load(std::memory_order_relaxed);
  if (window != nullptr && apart([=] { return window->release(block); })) return;
  log::error("free() of %p, where no block of the object window begins: it was freed before, or is no block", block);
  std::abort();
}

std::size_t size_of_block(void* block) {
  const Window* window = g_window.load(std::memory_order_relaxed);
  return window != nullptr ? window->size_of(block) : 0;
}

void* allocate_block(std::size_t bytes, bool zeroed) {
  Window* window = g_window.load(std::memory_order_relaxed);
  if (bytes > Window::kBlockMax || window == nullptr || !block_profile().pays(bytes)) return nullptr;
  return apart([=] { return window->allocate(bytes, zeroed); });
}

void move_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const bool to_window = Window::contains(to), from_window = Window::contains(from);
  if (!to_window && !from_window) {
    std::memmove(to, from, bytes);
  } else if (!from_window) {
    hl_guard_write_bytes(to, from, bytes);
  } else if (!to_window) {
    hl_guard_read_bytes(to, from, bytes);
  } else {
    // Within blocks, so never more than one; all of it is read before any is written, as they may overlap.
    char between[Window::kBlockMax];
    const std::size_t count = std::min(bytes, sizeof between);
    hl_guard_read_bytes(between, from, count);
    hl_guard_write_bytes(to, between, count);
  }
}

// As far from a multiple of 64 as the slot, so that what the program knows of alignments is true of the copy.
void* borrow_bytes(void* pointer, std::intptr_t from, std::intptr_t to, void* room) {
  const Stretch wanted = stretch_of(pointer, from, to);
  if (wanted.begin >= wanted.end) return pointer;
  std::byte* slot = static_cast<std::byte*>(room) + wanted.slot % 64;
  hl_guard_read_bytes(slot + wanted.begin, reinterpret_cast<const std::byte*>(wanted.slot) + wanted.begin,
                      static_cast<std::size_t>(wanted.end - wanted.begin));
  return slot + (reinterpret_cast<std::uintptr_t>(pointer) - wanted.slot);
}

void give_back_bytes(void* pointer, void* borrowed, std::intptr_t from, std::intptr_t to) {
  const Stretch written = stretch_of(pointer, from, to);
  if (borrowed == pointer || written.begin >= written.end) return;
  const std::byte* slot =
      static_cast<const std::byte*>(borrowed) - (reinterpret_cast<std::uintptr_t>(pointer) - written.slot);
  hl_guard_write_bytes(reinterpret_cast<std::byte*>(written.slot) + written.begin, slot + written.begin,
                       static_cast<std::size_t>(written.end - written.begin));
}

}  // namespace hinterland::object

// --- from the assembly of guard_entries.cpp
// -----------------------------------------------------------------------------------
extern "C" {
__attribute__((visibility("hidden"), used)) void hl_guard_bring_to_read(std::uintptr_t address,
                                                                        std::uintptr_t /*back*/,
                                                                        std::uint64_t /*unused*/) {
  hinterland::object::bring(address, false);
}
__attribute__((visibility("hidden"), used)) void hl_guard_bring_to_write(std::uintptr_t address,
                                                                         std::uintptr_t /*back*/,
                                                                         std::uint64_t /*unused*/) {
  hinterland::object::bring(address, true);
}
}
