// Guards: what the loads and stores of a program that was compiled with --objects call where their address is in the
// object window (window.hpp). TrackFM, ASPLOS 2024, 3.3; docs/adr/0064-guards.md.
//
// A guard finds the word of the address, tests it, and loads or stores, in one restartable sequence: whoever is
// interrupted in it (by the scheduler, a signal, or an evacuator's barrier) begins anew. So no thread ever holds
// anything: nothing is left behind by a handler that leaves with siglongjmp, and nothing has to be unwound.
#pragma once

#include <cstddef>
#include <cstdint>

#include "object/window.hpp"

namespace hinterland::object {

// What a module calls, by its place in GuardedModule::entries. Of the first eight, the address is in r11, the value
// in rax (read, the upper bits are 0) or rdx (to be written), and rax, rcx, r10 and flags are lost. The others are
// C's.
enum class Guard : std::uint32_t {
  read_1,
  read_2,
  read_4,
  read_8,
  write_1,
  write_2,
  write_4,
  write_8,
  read_bytes,   // void(void* to, const void* in_window, size_t): at most a block
  write_bytes,  // void(void* in_window, const void* from, size_t)
  move,         // void(void* to, const void* from, size_t): either may be in the window
  fill,         // void(void* in_window, int byte, size_t)
  allocate,     // void*(size_t); nullptr: not in the window
  allocate_zeroed,
  allocate_new,  // as allocate; absent where the program has an operator new of its own
  compare,       // memcmp(), strlen(), strcmp(), strncmp(): either may be in the window
  length,
  compare_text,  // int(const char*, const char*, size_t): of strcmp, SIZE_MAX
  borrow,        // void*(void* in_window, long from, long to, void* room): borrow_bytes()
  give_back,     // void(void* in_window, void* borrowed, long from, long to)
  count
};

// In the program, once for each program or library with guards; src/compiler/guard_emit.cpp writes it. Without a
// runtime it stays as it is: no address is in a window of size 0, and no entry is called that is null.
struct GuardedModule {
  std::uint32_t version;  // 2
  std::uint32_t bytes;    // of this structure
  std::uintptr_t base, size;
  void (*entries[static_cast<std::size_t>(Guard::count)])();
};

// Gives the module its entries, and begins the heap of far objects and the window where there are none yet. Where
// that cannot be, a message, and the module's heap is ordinary memory. `before_first()` is called when there is a
// window and no block in it. Any thread; blocks while a device is opened.
void take_guarded_module(GuardedModule& module, void (*before_first)());

// For malloc's interposers: of blocks in the window (Window::contains()), which anybody may free. Any thread, on any
// stack; block signals meanwhile.
void release_block(void* block);  // ends the process with a message where no block begins there
std::size_t size_of_block(void* block);
void* allocate_block(std::size_t bytes, bool zeroed);
// memmove() where either range may be in the window.
void move_bytes(void* to, const void* from, std::size_t bytes);

// For loops that work on a copy of a block (ADR 0073). Of the block in which `pointer` is, the bytes from pointer +
// from to pointer + to, as far as they are the block's, are copied to `room`, which is at a multiple of 64. Returns
// what stands for the pointer there: what is n bytes behind the pointer is n bytes behind that. Or the pointer
// itself, where none of these bytes are a block's. Any thread; blocks while the object is brought.
inline constexpr std::size_t kBorrowedRoom = Window::kBlockMax + 64;
void* borrow_bytes(void* pointer, std::intptr_t from, std::intptr_t to, void* room);
// The other way round, with what borrow_bytes() has returned for the pointer.
void give_back_bytes(void* pointer, void* borrowed, std::intptr_t from, std::intptr_t to);

// The process's, or nullptr.
Window* current_window();
// Begins it over the heap there is. For tests, which then end it: nobody uses it any more.
Status begin_window();
void end_window();

}  // namespace hinterland::object

// For the constructors of guarded programs and libraries. Any thread.
extern "C" __attribute__((visibility("default"))) void hl_guarded_module(hinterland::object::GuardedModule* module);
