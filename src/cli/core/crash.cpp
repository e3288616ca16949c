#include "cli/core/crash.hpp"

#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/crash_note.hpp"

namespace hinterland::cli {
namespace {

user_regs_struct registers_of(const ucontext_t& context) {
  const greg_t* from = context.uc_mcontext.gregs;
  auto at = [from](int index) { return static_cast<unsigned long long>(from[index]); };
  user_regs_struct to{};
  to.r8 = at(REG_R8), to.r9 = at(REG_R9), to.r10 = at(REG_R10), to.r11 = at(REG_R11);
  to.r12 = at(REG_R12), to.r13 = at(REG_R13), to.r14 = at(REG_R14), to.r15 = at(REG_R15);
  to.rdi = at(REG_RDI), to.rsi = at(REG_RSI), to.rbp = at(REG_RBP), to.rbx = at(REG_RBX);
  to.rdx = at(REG_RDX), to.rax = at(REG_RAX), to.rcx = at(REG_RCX), to.rsp = at(REG_RSP);
  to.rip = at(REG_RIP), to.eflags = at(REG_EFL), to.orig_rax = ~0ull;
  std::uint64_t segments = at(REG_CSGSFS);  // cs, gs, fs, ss
  to.cs = segments & 0xffff, to.gs = segments >> 16 & 0xffff, to.fs = segments >> 32 & 0xffff;
  to.ss = segments >> 48;
  return to;
}

// What the kernel saved on the signal frame is an XSAVE area, with a description of it in bytes that the processor
// does not use. As a note, those bytes hold the features in use, in their place.
void take_extended(const ProcessMemory& memory, std::uint64_t frame, ThreadState& state) {
  constexpr std::size_t kLegacy = 512, kDescription = 464;
  constexpr std::uint32_t kMagic = 0x46505853;
  struct Description {
    std::uint32_t magic, extended_size;
    std::uint64_t features;
    std::uint32_t size;
  } description;
  std::vector<std::byte> legacy(kLegacy);
  if (memory.read_resident(frame, legacy.data(), kLegacy) != kLegacy) return;
  std::memcpy(&description, &legacy[kDescription], sizeof description);
  state.floating_point = legacy;
  if (description.magic != kMagic || description.size < kLegacy || description.size > 64 * 1024) return;
  std::vector<std::byte> all(description.size);
  if (memory.read_resident(frame, all.data(), all.size()) != all.size()) return;
  std::memset(&all[kDescription], 0, kLegacy - kDescription);
  std::memcpy(&all[kDescription], &description.features, sizeof description.features);
  state.extended = all;
}

}  // namespace

bool crash_asked_for(std::uint64_t* address) {
  const char* text = std::getenv(kCrashNoteVariable);
  if (text == nullptr) return false;
  *address = std::strtoull(text, nullptr, 16);
  return true;
}

// Far memory in these steps: the handler's frame may lie on a far stack, so reads wait for the runtime.
Result<Crash> read_crash(std::uint64_t address) {
  pid_t process = getppid();
  ProcessMemory memory(process);
  CrashNote note;
  ucontext_t context;
  auto page = std::make_unique<StatPage>();
  Crash crash;
  bool known = memory.read(address, &note, sizeof note) == sizeof note && note.process == process &&
               memory.read(note.info, &crash.info, sizeof crash.info) == sizeof crash.info &&
               memory.read(note.context, &context, sizeof context) == sizeof context &&
               memory.read(note.stat_page, page.get(), sizeof *page) == sizeof *page &&
               page->magic == StatPage::kMagic && page->version == kStatPageVersion;
  if (!known) return std::unexpected(Error::make(0, "process %d cannot be read", static_cast<int>(process)));
  crash.process = process;
  crash.thread = note.thread;
  crash.view = RuntimeView::of(*page);
  crash.state.id = note.thread;
  crash.state.registers = registers_of(context);
  take_extended(memory, reinterpret_cast<std::uintptr_t>(context.uc_mcontext.fpregs), crash.state);
  return crash;
}

}  // namespace hinterland::cli
