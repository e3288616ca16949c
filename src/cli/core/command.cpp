// hinterland core: a core file of a running program, or of one that dies, with its far pages.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "base/log.hpp"
#include "base/size.hpp"
#include "cli/command_line.hpp"
#include "cli/core/core_file.hpp"
#include "cli/core/crash.hpp"
#include "cli/core/notes.hpp"
#include "cli/pid.hpp"
#include "cli/running.hpp"

namespace hinterland::cli {
namespace {

std::string name_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  std::replace(name.begin(), name.end(), '/', '!');
  return name;
}

// "core.%p" -> "core.4711".
std::string file_name(const std::string& pattern, pid_t process) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') name += std::to_string(process);
    if (next == 'e') name += name_of(process);
    if (next == '%') name += '%';
    if (next == 'p' || next == 'e' || next == '%')
      ++i;
    else
      name += pattern[i];
  }
  return name;
}

// A file of our own, for its owner only: a core file has everything in it that the program knew.
Result<int> create_file(const std::string& name, bool force) {
  if (force) unlink(name.c_str());
  int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  Error error = Error::make(errno, "%s cannot be made", name.c_str());
  return std::unexpected(errno == EEXIST ? error.remedy("name another file, or use --force") : error);
}

struct Subject {
  pid_t process = 0;
  RuntimeView view;
  const Crash* crash = nullptr;  // when it dies
};

// The thread that dies comes first, and as it was before its signal handler.
void put_first(const Crash& crash, std::vector<ThreadState>& threads) {
  ThreadState first = crash.state;
  for (const ThreadState& thread : threads)
    if (thread.id == crash.thread) {  // what the signal frame does not say
      first.registers.fs_base = thread.registers.fs_base;
      first.registers.gs_base = thread.registers.gs_base;
    }
  std::erase_if(threads, [&](const ThreadState& thread) { return thread.id == crash.thread; });
  threads.insert(threads.begin(), first);
}

Status copy_memory(const Subject& subject, const std::vector<Mapping>& mappings, ProcessMemory& memory,
                   CoreFile& core) {
  int pagemap = open(("/proc/" + std::to_string(subject.process) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC);
  Status status;
  for (const Mapping& mapping : mappings)
    if (status) status = core.add(mapping, pieces_of(mapping, subject.view, memory, pagemap));
  if (pagemap >= 0) close(pagemap);
  return status;
}

// Reads and writes while the threads are stopped.
Result<CoreContents> write_core(const Subject& subject, int file) {
  ProcessMemory memory(subject.process);
  pid_t dying = subject.crash != nullptr ? subject.crash->thread : 0;
  Result<StoppedThreads> stopped = StoppedThreads::stop(subject.process, subject.view, memory, dying);
  if (!stopped) return std::unexpected(stopped.error());
  Result<std::vector<Mapping>> mappings = read_mappings(subject.process);
  if (!mappings) return std::unexpected(mappings.error());
  CoreFile core(file, memory);
  if (Status copied = copy_memory(subject, *mappings, memory, core); !copied) return std::unexpected(copied.error());
  stopped->stop_rest(subject.process, memory);
  std::vector<ThreadState> threads = stopped->states();
  std::optional<siginfo_t> info;
  if (subject.crash != nullptr) {
    put_first(*subject.crash, threads);
    info = subject.crash->info;
  }
  Status finished = core.finish(core_notes(subject.process, threads, *mappings, info));
  if (!finished) return std::unexpected(finished.error());
  if (memory.gave_up())
    log::error("process %d did not bring its far pages within 10 seconds: those are absent from the core file",
               static_cast<int>(subject.process));
  return core.contents();
}

int write_file(const Subject& subject, const std::string& pattern, bool force) {
  std::string name = file_name(pattern, subject.process);
  Result<int> file = create_file(name, force);
  if (!file) return fail(kEnvironment, file.error());
  Result<CoreContents> contents = write_core(subject, *file);
  if (close(*file) != 0 && contents) contents = std::unexpected(Error::make(errno, "%s", name.c_str()));
  if (!contents) {
    unlink(name.c_str());
    return fail(kEnvironment, contents.error());
  }
  std::string absent;
  if (contents->absent_bytes != 0)
    absent = "; " + rounded_size_text(contents->absent_bytes) + " could not be had and are absent";
  if (subject.crash != nullptr)
    log::error("process %d ends by signal %d: %s has its memory, %s of it paged%s", static_cast<int>(subject.process),
               subject.crash->info.si_signo, name.c_str(), rounded_size_text(contents->far_bytes).c_str(),
               absent.c_str());
  else
    std::printf("%s: memory of process %d, %s of it paged%s\n", name.c_str(), static_cast<int>(subject.process),
                rounded_size_text(contents->far_bytes).c_str(), absent.c_str());
  return kSuccess;
}

// Stopped by a signal or a debugger: then the runtime's threads, which bring far pages, stand still, too.
bool stands_still(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  std::size_t close = text.rfind(')');
  return close != std::string::npos && close + 2 < text.size() && (text[close + 2] == 'T' || text[close + 2] == 't');
}

std::string pattern_of(const CommandLine& line) {
  return line.is_given(OptionId::output) ? line.text(OptionId::output) : "core.%p";
}

int core_of_running(const CommandLine& line, pid_t process) {
  Result<StatView> view = find_running(searched_directories(line.text(OptionId::stat_dir)), process, false);
  if (!view) return fail(kEnvironment, view.error());
  if (stands_still(process)) {
    Error error =
        Error::make(0, "process %d is stopped, and so is what brings its far pages", static_cast<int>(process));
    return fail(kEnvironment,
                error.remedy("continue it (kill -CONT %d), or detach its debugger", static_cast<int>(process)));
  }
  return write_file({process, RuntimeView::of(**view)}, pattern_of(line), line.number(OptionId::force) != 0);
}

int core_of_dying(const CommandLine& line, std::uint64_t note) {
  Result<Crash> crash = read_crash(note);
  if (!crash) return fail(kEnvironment, crash.error());
  return write_file({crash->process, crash->view, &*crash}, pattern_of(line), true);
}

}  // namespace

int core_main(const Arguments& arguments) {
  Result<CommandLine> line = CommandLine::parse(*find_command("core"), arguments);
  if (!line) return fail(kUsage, line.error());
  if (line->wants_help()) return help_main({"core"});
  signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error to say
  if (std::uint64_t note = 0; crash_asked_for(&note)) return core_of_dying(*line, note);
  if (line->rest().empty()) {
    Error error = Error::make(0, "core: no process id given");
    return fail(kUsage, error.remedy("hinterland core PID; 'hinterland stat' lists the programs"));
  }
  if (line->rest().size() > 1) return fail(kUsage, unexpected_argument("core", line->rest()[1]));
  Result<pid_t> process = parse_pid(line->rest()[0]);
  if (!process) return fail(kUsage, process.error());
  return core_of_running(*line, *process);
}

}  // namespace hinterland::cli
