// Modules of a trace as libdw wants them; shared by unwinding and symbols.
#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/trace_file.hpp"

namespace hinterland::trace {

// The build identifier of an ELF file; "" when it has none or cannot be read.
std::string build_id_of(const std::string& path);

// The code that a process has mapped from files now, out of /proc/PID/maps.
std::vector<Module> mapped_code(pid_t process);

// Of the threads that it has now, by thread, out of /proc/PID/task.
std::map<std::uint32_t, std::string> thread_names(pid_t process);

// The file of a module is there and is the one that ran (no identifier known: taken on trust).
bool is_same_file(const Module& module);

// Reports a module to libdw at the place where it ran. nullptr when its file is not there, is another by now, or
// does not fit there.
Dwfl_Module* report_module(Dwfl* dwfl, const Module& module);

// A file with the module's build identifier, the program itself or its debug file, in `folder`: as .build-id/...,
// under its path or its name there, with or without .debug behind. "" when there is none, or the module has no
// identifier.
std::string find_debug_file(const Module& module, const std::string& folder);

// As report_module(), by a file of another place.
Dwfl_Module* report_module_by(Dwfl* dwfl, const Module& module, const std::string& file);

// Callbacks for who needs neither: the files were reported with their names, and debug information costs time.
int no_build_id_lookup(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**);
int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**);

}  // namespace hinterland::trace
