#include "trace/unwinder.hpp"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "trace/debug_files.hpp"

namespace hinterland::trace {

struct Unwinder::Session {
  Dwfl* dwfl = nullptr;
  std::span<const std::uint64_t, kSampledRegisters> registers{static_cast<const std::uint64_t*>(nullptr),
                                                              kSampledRegisters};
  std::span<const std::uint8_t> stack;
  Stack* out = nullptr;

  Session(const std::vector<Module>& modules);
  ~Session() { dwfl_end(dwfl); }
  bool attached = false;

  static pid_t next_thread(Dwfl*, void*, void**) { return 0; }  // the sample's thread is always asked for by number
  static bool get_thread(Dwfl*, pid_t, void* self, void** thread) {
    *thread = self;
    return true;
  }
  static bool read_memory(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* result, void* self);
  static bool set_registers(Dwfl_Thread* thread, void* self);
  static int note_frame(Dwfl_Frame* frame, void* self);
};

Unwinder::Session::Session(const std::vector<Module>& modules) {
  static char* debug_path = nullptr;  // libdw's default; unwind tables are in the files themselves
  static const Dwfl_Callbacks callbacks = {no_build_id_lookup, no_debug_file, nullptr, &debug_path};
  dwfl = dwfl_begin(&callbacks);
  dwfl_report_begin(dwfl);
  for (const Module& module : modules) report_module(dwfl, module);
  dwfl_report_end(dwfl, nullptr, nullptr);
}

bool Unwinder::Session::read_memory(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* result, void* self) {
  auto* session = static_cast<Session*>(self);
  std::uint64_t at = address - session->registers[7];  // from the stack pointer
  if (at + sizeof *result <= session->stack.size() && at + sizeof *result > at) {
    std::memcpy(result, session->stack.data() + at, sizeof *result);
    return true;
  }
  // Tables may point into the file itself (exception tables in read-only data).
  Dwfl_Module* module = dwfl_addrmodule(dwfl, address);
  GElf_Addr base;
  Elf_Scn* section = module != nullptr ? dwfl_module_address_section(module, &address, &base) : nullptr;
  Elf_Data* data = section != nullptr ? elf_rawdata(section, nullptr) : nullptr;
  if (data == nullptr || data->d_buf == nullptr || address + sizeof *result > data->d_size) return false;
  std::memcpy(result, static_cast<const char*>(data->d_buf) + address, sizeof *result);
  return true;
}

bool Unwinder::Session::set_registers(Dwfl_Thread* thread, void* self) {
  auto* session = static_cast<Session*>(self);
  // DWARF: ax dx cx bx si di bp sp r8..r15 ip; the kernel: ax bx cx dx si di bp sp ip r8..r15.
  static constexpr std::uint8_t kFrom[17] = {0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 8};
  Dwarf_Word words[17];
  for (std::size_t i = 0; i < std::size(kFrom); ++i) words[i] = session->registers[kFrom[i]];
  return dwfl_thread_state_registers(thread, 0, 17, words);
}

int Unwinder::Session::note_frame(Dwfl_Frame* frame, void* self) {
  auto* session = static_cast<Session*>(self);
  Dwarf_Addr address;
  bool interrupted;  // the thread stood at the address itself; else it is where a call returns to
  if (!dwfl_frame_pc(frame, &address, &interrupted) || address == 0) return DWARF_CB_ABORT;
  session->out->addresses.push_back(interrupted ? address : address - 1);
  return session->out->addresses.size() < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

Unwinder::Unwinder() = default;
Unwinder::~Unwinder() = default;

void Unwinder::add(const Module& module) {
  std::erase_if(modules_, [&](const Module& old) { return old.start < module.end && module.start < old.end; });
  modules_.push_back(module);
  session_.reset();
}

Stack Unwinder::unwind(std::span<const std::uint64_t, kSampledRegisters> registers,
                       std::span<const std::uint8_t> stack) {
  static const Dwfl_Thread_Callbacks callbacks = {
      Session::next_thread, Session::get_thread, Session::read_memory, Session::set_registers, nullptr, nullptr};
  Stack result;
  if (!session_) session_ = std::make_unique<Session>(modules_);
  Session& session = *session_;
  session.registers = registers;
  session.stack = stack;
  session.out = &result;
  constexpr pid_t kAnyThread = 1;
  if (!session.attached)
    session.attached = dwfl_attach_state(session.dwfl, nullptr, kAnyThread, &callbacks, &session);
  result.whole =
      session.attached && dwfl_getthread_frames(session.dwfl, kAnyThread, Session::note_frame, &session) == 0;
  if (result.addresses.empty()) result.addresses.push_back(registers[8]);
  return result;
}

}  // namespace hinterland::trace
