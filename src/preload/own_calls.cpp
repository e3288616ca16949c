#include "preload/own_calls.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "preload/catching.hpp"
#include "preload/object_names.hpp"
#include "preload/state.hpp"
#include "preload/system_calls.hpp"
#include "signal/self_paging.hpp"

namespace hinterland::own_calls {
namespace {

using system_calls::Kind;

struct Name {
  std::uint16_t number;
  const char* name;
};
constexpr Name kNames[] = {
#define HL_CALL(kind, number, name) {number, #name},
#include "preload/system_calls.inc"
};

// What the runtime has to hear of. Of the table of descriptors only what closes or replaces some; clone is nearly
// always a thread's.
constexpr bool matters(std::uint32_t number) {
  if (number == SYS_fstat || number == SYS_fcntl || number == SYS_dup) return false;
  if (number == SYS_clone || number == SYS_clone3) return false;
  for (Kind kind : {Kind::memory, Kind::sealing, Kind::table, Kind::ending, Kind::child})
    if (system_calls::is_of(kind, static_cast<long>(number))) return true;
  return false;
}

constexpr std::size_t kBehind = 48;  // bytes before an instruction that may load what it uses
constexpr std::uint32_t kNone = ~0u;

std::uint32_t word_at(const unsigned char* at) {
  std::uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The number that is loaded last before `end`: mov $N, %eax; mov $N, %rax; push $N, pop %rax; xor %eax, %eax.
std::uint32_t number_before(const unsigned char* begin, const unsigned char* end) {
  for (const unsigned char* at = end - 2; at >= begin; --at) {
    const std::size_t left = static_cast<std::size_t>(end - at);
    bool extended = at > begin && (at[-1] & 0xf1) == 0x41;  // another register
    if (left >= 5 && at[0] == 0xb8 && !extended && word_at(at + 1) < system_calls::kNumbers) return word_at(at + 1);
    if (left >= 7 && at[0] == 0x48 && at[1] == 0xc7 && at[2] == 0xc0 && word_at(at + 3) < system_calls::kNumbers)
      return word_at(at + 3);
    if (left >= 3 && at[0] == 0x6a && at[1] < 0x80 && at[2] == 0x58) return at[1];
    if ((at[0] == 0x31 || at[0] == 0x33) && at[1] == 0xc0 && !extended) return 0;
  }
  return kNone;
}

// mov REGISTER or memory, %rax, and one that loads %r10, as only the fourth argument of a system call does: together
// they are a function for any number.
bool takes_any_number(const unsigned char* begin, const unsigned char* end) {
  bool number = false, fourth = false;
  for (const unsigned char* at = begin; at + 3 <= end; ++at) {
    const bool wide = (at[0] & 0xf8) == 0x48;
    if (wide && at[1] == 0x89 && (at[0] & 1) == 0 && (at[2] & 0xc7) == 0xc0) number = true;
    if (wide && at[1] == 0x8b && (at[0] & 4) == 0 && (at[2] & 0x38) == 0) number = true;
    if (wide && at[1] == 0x89 && (at[0] & 1) != 0 && (at[2] & 0xc7) == 0xc2) fourth = true;
    if (wide && at[1] == 0x8b && (at[0] & 4) != 0 && (at[2] & 0x38) == 0x10) fourth = true;
  }
  return number && fourth;
}

// The two bytes are part of a distance: of a call or jump, or of an address that counts from the instruction. Those
// are most of what only looks like the instruction.
bool is_distance(const unsigned char* begin, const unsigned char* at) {
  if (at[2] == 0) return true;
  for (const unsigned char* last = at - 1; last >= begin + 1 && last >= at - 3; --last) {
    if (*last == 0xe8 || *last == 0xe9 || (last[-1] == 0x0f && (*last & 0xf0) == 0x80)) return true;
    const bool from_here = (*last & 0xc7) == 0x05;
    if (from_here && (last[-1] == 0x8b || last[-1] == 0x8d || last[-1] == 0x89 || last[-1] == 0x83)) return true;
  }
  return false;
}

int note_into(dl_phdr_info* object, Found& found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & (PF_X | PF_R)) != (PF_X | PF_R)) continue;
    const auto* code = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    Found here = scan({code, segment.p_filesz});
    found.numbers |= here.numbers;
    found.any_number |= here.any_number;
  }
  return 0;
}

// libc's calls are its functions'; the loader's, the vDSO's and ours are known.
bool is_exempt(const dl_phdr_info* object) {
  if (object_names::is_libc(object->dlpi_name) || object_names::is_ours(object->dlpi_name)) return true;
  if (object->dlpi_addr == getauxval(AT_BASE) || object->dlpi_addr == getauxval(AT_SYSINFO_EHDR)) return true;
  auto here = reinterpret_cast<std::uintptr_t>(&scan);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && here - (object->dlpi_addr + segment.p_vaddr) < segment.p_memsz) return true;
  }
  return false;
}

constexpr std::size_t kTextMax = 400;

void say(const char* name, const Found& found, bool caught) {
  std::array<char, kTextMax> text{};
  std::size_t used = 0;
  auto add = [&](const char* word) {
    int written = std::snprintf(text.data() + used, text.size() - used, "%s%s", used == 0 ? "" : ", ", word);
    used = std::min(text.size() - 1, used + static_cast<std::size_t>(std::max(written, 0)));
  };
  for (const Name& call : kNames)
    if (found.numbers.test(call.number)) add(call.name);
  if (found.any_number) add("any by its number");
  log::info("%s makes system calls by instructions of its own (%s): %s", name, text.data(),
            caught ? "they are caught" : "if they are about far memory it reads wrong bytes; use --catch");
}

struct Program {
  std::array<char, 512> name{};
};

// The main program has no name here.
const char* name_of(const dl_phdr_info* object, Program& program) {
  if (object->dlpi_name[0] != '\0') return object->dlpi_name;
  ssize_t length = readlink("/proc/self/exe", program.name.data(), program.name.size() - 1);
  return length > 0 ? program.name.data() : "the program";
}

// Objects are listed in the order in which they were loaded. Where one went in between, another is looked at twice or
// not at all: then a line is missing, or there twice.
struct Round {
  unsigned index = 0;
  bool caught;
};
std::atomic<unsigned> g_looked_at{0};

int look(dl_phdr_info* object, std::size_t, void* pointer) {
  auto* round = static_cast<Round*>(pointer);
  if (round->index++ < g_looked_at.load() || is_exempt(object)) return 0;
  Found found;
  note_into(object, found);
  Program program;
  if (!found.none()) say(name_of(object, program), found, round->caught);
  return 0;
}

}  // namespace

Found scan(std::span<const unsigned char> code) {
  Found found;
  const unsigned char *begin = code.data(), *end = begin + code.size();
  for (const unsigned char* at = begin; at + 2 < end; ++at) {  // one does not stand at the very end
    at = static_cast<const unsigned char*>(std::memchr(at, 0x0f, static_cast<std::size_t>(end - at - 2)));
    if (at == nullptr) break;
    if (at[1] != 0x05 || is_distance(begin, at)) continue;
    const unsigned char* from = at - std::min<std::size_t>(kBehind, static_cast<std::size_t>(at - begin));
    std::uint32_t number = at - from >= 2 ? number_before(from, at) : kNone;
    if (number != kNone && matters(number)) found.numbers.set(number);
    if (number == kNone && takes_any_number(from, at)) found.any_number = true;
  }
  return found;
}

void report(bool caught) {
  if (log::level() < log::Level::info) return;
  Round round{0, caught};
  dl_iterate_phdr(look, &round);
  g_looked_at.store(round.index);
}

}  // namespace hinterland::own_calls
