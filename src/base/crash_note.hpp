// What a dying program tells the writer of its core file (`hinterland run --core`).
#pragma once

#include <cstdint>

namespace hinterland {

// In the memory of the program; its address is given to the writer in the variable kCrashNoteVariable, as
// hexadecimal.
struct CrashNote {
  std::uint64_t info;       // address of the siginfo_t
  std::uint64_t context;    // address of the ucontext_t: the registers at the crash
  std::uint64_t stat_page;  // address of the StatPage
  std::int32_t process;
  std::int32_t thread;  // that waits for the writer, in its signal handler
};

inline constexpr const char* kCrashNoteVariable = "HINTERLAND_CRASH_NOTE";
// Set by `run`: the program that writes core files.
inline constexpr const char* kCoreWriterVariable = "HINTERLAND_CORE_WRITER";

}  // namespace hinterland
