// As Linux writes them (fs/binfmt_elf.c): in this order, because readers give the registers to the thread before
// them.
#include "cli/core/notes.hpp"

#include <elf.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

namespace hinterland::cli {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

void pad_to_4(std::string& text) { text.resize((text.size() + 3) & ~std::size_t{3}, '\0'); }

void add_note(std::string& notes, std::uint32_t type, const void* bytes, std::size_t length,
              const char* owner = "CORE") {
  if (length == 0) return;
  Elf64_Nhdr header{static_cast<Elf64_Word>(std::strlen(owner) + 1), static_cast<Elf64_Word>(length), type};
  notes.append(reinterpret_cast<const char*>(&header), sizeof header);
  notes.append(owner, std::strlen(owner) + 1);
  pad_to_4(notes);
  notes.append(static_cast<const char*>(bytes), length);
  pad_to_4(notes);
}

void add_status(std::string& notes, pid_t process, const ThreadState& thread, const std::optional<siginfo_t>& info) {
  elf_prstatus status{};
  status.pr_pid = thread.id;
  status.pr_ppid = process;
  status.pr_pgrp = getpgid(process);
  status.pr_sid = getsid(process);
  if (info) {
    status.pr_info.si_signo = info->si_signo;
    status.pr_info.si_code = info->si_code;
    status.pr_info.si_errno = info->si_errno;
    status.pr_cursig = static_cast<short>(info->si_signo);
  }
  static_assert(sizeof status.pr_reg == sizeof thread.registers);
  std::memcpy(&status.pr_reg, &thread.registers, sizeof thread.registers);
  status.pr_fpvalid = thread.floating_point.empty() ? 0 : 1;
  add_note(notes, NT_PRSTATUS, &status, sizeof status);
}

void add_description(std::string& notes, pid_t process) {
  std::string folder = "/proc/" + std::to_string(process) + "/";
  elf_prpsinfo description{};
  std::string stat = contents_of(folder + "stat"), arguments = contents_of(folder + "cmdline");
  std::size_t open = stat.find('('), close = stat.rfind(')');
  if (open != std::string::npos && close != std::string::npos && close + 2 < stat.size()) {
    stat.substr(open + 1, close - open - 1).copy(description.pr_fname, sizeof description.pr_fname - 1);
    description.pr_sname = stat[close + 2];
  }
  std::replace(arguments.begin(), arguments.end(), '\0', ' ');
  arguments.copy(description.pr_psargs, sizeof description.pr_psargs - 1);
  description.pr_pid = process;
  description.pr_pgrp = getpgid(process);
  description.pr_sid = getsid(process);
  add_note(notes, NT_PRPSINFO, &description, sizeof description);
}

// NT_FILE: count, page size, (start, end, offset in pages) each, then the names.
void add_files(std::string& notes, const std::vector<Mapping>& mappings) {
  std::vector<std::uint64_t> numbers{0, 4096};
  std::string names;
  for (const Mapping& mapping : mappings) {
    if (mapping.inode == 0 || mapping.name.empty()) continue;
    numbers.insert(numbers.end(), {mapping.start, mapping.end, mapping.offset / 4096});
    names += mapping.name + '\0';
    ++numbers[0];
  }
  std::string all(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]);
  all += names;
  add_note(notes, NT_FILE, all.data(), all.size());
}

}  // namespace

std::string core_notes(pid_t process, const std::vector<ThreadState>& threads, const std::vector<Mapping>& mappings,
                       const std::optional<siginfo_t>& info) {
  std::string notes;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const ThreadState& thread = threads[i];
    add_status(notes, process, thread, i == 0 ? info : std::nullopt);
    if (i == 0) {
      add_description(notes, process);
      if (info) add_note(notes, NT_SIGINFO, &*info, sizeof *info);
      std::string vector = contents_of("/proc/" + std::to_string(process) + "/auxv");
      add_note(notes, NT_AUXV, vector.data(), vector.size());
      add_files(notes, mappings);
    }
    add_note(notes, NT_FPREGSET, thread.floating_point.data(), thread.floating_point.size());
    add_note(notes, NT_X86_XSTATE, thread.extended.data(), thread.extended.size(), "LINUX");
  }
  return notes;
}

}  // namespace hinterland::cli
