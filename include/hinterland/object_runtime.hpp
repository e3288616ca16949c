// Between far objects in a program (object.hpp) and the runtime: a pointer's word, a thread's slot, and the table of
// calls that the runtime exports. Programs include object.hpp; this is for it and for the runtime. C++20.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// The runtime's own tests put another template here, which lets several threads' steps come in every order.
#ifndef HL_FAR_ATOMIC
#define HL_FAR_ATOMIC std::atomic
#endif

namespace hl::far::detail {

// A pointer's word. While the object is local and nothing is to be done for it, the word is its address; three low
// bits, which the address has at 0, say the rest. So a dereference is a load, a test and a mask.
//
//     local      address | kCold | kClean
//     away       kAway | kind | ...            everything else goes through the runtime
//
// kCold: not used since an evacuator looked. kClean: equal to its far copy. Both are taken away by who uses or writes
// it, so that the usual word has neither.
using word = HL_FAR_ATOMIC<std::uint64_t>;
inline constexpr std::uint64_t kAway = 1, kCold = 2, kClean = 4, kFlags = 7;

// What a type holds: calls visit(context, w) for the word of each far pointer inside an object. Program's code; lives
// as long as the process.
struct type {
  void (*each)(void* object, void (*visit)(void* context, word* w), void* context);
};

// A thread, as the evacuators see it. Written by its thread but for `phase`; never given back, only used again.
struct alignas(64) thread_slot {
  // Bit 0: the parity in which scopes that begin are counted. kPressed: memory is short, and who is in no scope
  // waits. kForking: another thread forks, and nobody begins a call.
  HL_FAR_ATOMIC<std::uint32_t> phase{0};
  static constexpr std::uint32_t kPressed = 2, kForking = 4;
  HL_FAR_ATOMIC<std::uint32_t> active[2] = {0, 0};  // scopes that are open, by parity
  std::uint32_t lane = 0;                           // the runtime's
  HL_FAR_ATOMIC<std::uint32_t> inside{0};           // calls and undivided steps that it is in: a fork waits for 0
};

// As hl::far::heap_options, which says what they mean.
struct heap_settings {
  std::uint32_t size;  // of this structure, for later versions
  std::uint32_t evacuators;
  std::uint64_t local_bytes;
  const char* device_url;
};

enum reach_flags : std::uint32_t { kReachWrite = 1, kReachNontemporal = 2 };

// Who gathers arrivals for a thread's coroutines (hl::far::arrivals, object_pin.hpp). The runtime's.
struct loop;

// Somebody who waits for an object without blocking his thread. Lies where he says until he has his answer.
struct arrival {
  word* where = nullptr;
  std::uint32_t flags = 0;  // reach_flags
  // The answer, once it is over: the object, held where it is until unpin(), or an errno.
  int error = 0;
  void* object = nullptr;
  loop* gathers = nullptr;    // who gives it back; nullptr: a fiber, which is asked about and whose scope holds it
  void* coroutine = nullptr;  // of the one who gathers
  arrival* next = nullptr;    // the runtime's, as is what follows
  std::atomic<std::uint32_t> state{0};
};
enum make_flags : std::uint32_t { kMakeNontemporal = 1 };

// Exported by libhinterland-preload.so and libhinterland.so; absent in a program that runs without either, whose
// objects are then all local. Fields are only ever added, at the end, and abi_version says which are there: with a
// library that has fewer than this header names, objects are all local, too (is_served()).
struct runtime {
  std::uint32_t abi_version;  // kAbiVersion
  std::uint32_t reserved;
  std::uintptr_t base;  // of the addresses at which objects are local that may become far
  std::uintptr_t size;  // of these, bytes; 0: there is no heap, every object is ordinary memory
  // Starts the heap, once: as `settings` say, or, with nullptr, as the environment says. 0; ENOTSUP: none is wanted;
  // or an errno, and error() says more. Thread-safe; blocks while a device is opened.
  int (*begin)(const heap_settings* settings);
  const char* (*error)();
  // A slot for the calling thread, nullptr when there is no memory; and back.
  thread_slot* (*enter_thread)();
  void (*leave_thread)(thread_slot* slot);
  // Memory is short and the thread is about to open a scope. Blocks for a bounded time.
  void (*relieve)(thread_slot* slot);
  // Room for an object, in a scope: begin, construct, then finish (with the pointer's word) or drop. nullptr: the
  // machine has no memory.
  void* (*begin_object)(std::size_t bytes, std::size_t alignment, const type* what, std::uint32_t flags);
  void (*finish_object)(void* object, word* owner);
  void (*drop_object)(void* object);
  // The object's address, brought here if need be; in a scope. nullptr: it cannot be had, *error is an errno.
  void* (*reach)(word* w, std::uint32_t flags, int* error);
  // Brings what is far of `count` pointers, with as few waits as the device allows; in a scope, or for a look ahead
  // outside of one. How many were brought. Errors are left to who reaches the object.
  std::size_t (*reach_many)(word* const* words, std::size_t count, std::uint32_t flags);
  void (*release)(word* w);            // the object's end: its destructor has run
  void (*move)(word* from, word* to);  // `to` holds nothing
  // Says which object is lost and raises SIGBUS, as an access to a lost page does. Returns if a handler does.
  void (*lost)(word* w, int error);
  // The slot's thread has counted itself as inside while another forks. Returns when that is over, and it is inside.
  void (*wait_for_fork)(thread_slot* slot);
  // --- from version 2 on: coroutines, object_pin.hpp. Any thread; none of these waits for a device that takes its
  // time, but pin_blocking. Holds the object of `what` where it is, in a scope of the caller's. True: it is over, and
  // `what` has the answer. False: it has to be brought; nothing was begun.
  bool (*pin_now)(arrival* what);
  // The same, and waits for it.
  void (*pin_blocking)(arrival* what);
  // Begins to bring it. True: gather() of what->gathers will give it back, maybe in another thread before this
  // returns. False: it is over.
  bool (*pin_later)(arrival* what);
  // Nobody wants it any more. From any state.
  void (*pin_forget)(arrival* what);
  void (*unpin)(const void* object);
  loop* (*begin_loop)();  // nullptr: no memory
  // Those that it should still give back are forgotten.
  void (*end_loop)(loop* of);
  // The next that is over, or nullptr, which has also sent off what was begun. In a scope of the caller's.
  arrival* (*gather)(loop* of);
  // Sends off what was begun, and sees to it that the descriptor is readable when gather() may find something.
  void (*settle)(loop* of);
  // Sleeps until gather() may find something, at most so many ns.
  void (*wait)(loop* of, std::uint64_t timeout_ns);
  // Readable when gather() may find something. Belongs to the loop. -errno.
  int (*descriptor)(loop* of);
};

inline constexpr std::uint32_t kAbiVersion = 2;
static_assert(sizeof(runtime) == 224, "runtime has got a field: kAbiVersion is one more with it");

// Whether the library that was found has all that this header may ask of it. That may be none, and abi_version 0.
inline bool is_served(const runtime* found) noexcept { return found->abi_version >= kAbiVersion; }

}  // namespace hl::far::detail

extern "C" {
extern hl::far::detail::runtime hl_objects __attribute__((weak));
}

namespace hl::far::detail {

// In assembly for the reasons that hint.h gives at hl__runtime().
inline __attribute__((always_inline)) const runtime* the_runtime() noexcept {
  static constexpr runtime none{};
  const runtime* found;
  __asm__(
      ".weak hl_objects\n\t"
      "movq hl_objects@GOTPCREL(%%rip), %0\n\t"
      "testq %0, %0\n\t"
      "cmovzq %1, %0"
      : "=&r"(found)
      : "r"(&none)
      : "cc");
  return found;
}

}  // namespace hl::far::detail
