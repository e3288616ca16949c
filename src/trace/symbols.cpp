#include "trace/symbols.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "trace/debug_files.hpp"
#include "trace/function_index.hpp"
#include "trace/unit_index.hpp"

namespace hinterland::trace {
namespace {

std::string demangled(const char* name) {
  if (name == nullptr) return {};
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

bool starts_with_any(const std::string& path, std::initializer_list<const char*> folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const char* folder) { return path.starts_with(folder); });
}

bool is_library_module(const std::string& path) {
  return starts_with_any(path, {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "[vdso]"}) ||
         path.find("/libhinterland") != std::string::npos;
}

bool is_library_source(const std::string& path) {
  // A hint belongs to the line that has it, wherever the header lies.
  if (path.ends_with("/hinterland/hint.h") || path.ends_with("/hinterland/hint.hpp")) return true;
  return starts_with_any(path, {"/usr/include/", "/usr/lib/", "./nptl", "./malloc", "./string", "../sysdeps"});
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string function_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (unsigned kind : {unsigned{DW_AT_linkage_name}, unsigned{DW_AT_MIPS_linkage_name}})
    if (dwarf_attr_integrate(die, kind, &attribute) != nullptr) return demangled(dwarf_formstring(&attribute));
  const char* name = dwarf_attr_integrate(die, DW_AT_name, &attribute) != nullptr ? dwarf_formstring(&attribute) : "";
  return name != nullptr ? name : "";
}

// Where an inlined function was called from.
void call_site(Dwarf_Die* inlined, Dwarf_Die* unit, Frame* frame) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0, column = 0;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  bool has_column = dwarf_formudata(dwarf_attr(inlined, DW_AT_call_column, &attribute), &column) == 0;
  frame->column = has_column ? static_cast<int>(column) : 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0)
    frame->line = static_cast<int>(line);
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0) return;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count) return;
  if (const char* name = dwarf_filesrc(files, file, nullptr, nullptr)) frame->file = name;
}

}  // namespace

struct Symbols::Loaded {
  Module module;
  Dwfl* dwfl = nullptr;
  Dwfl_Module* libdw = nullptr;
  bool tried = false;
  bool used = false, has_lines = false, has_symbols = false;

  ~Loaded() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
  void load(const std::string& folder);
  UnitIndex units;
  std::unordered_map<void*, FunctionIndex> functions;  // by unit
  bool set_line(std::uint64_t address, Frame& frame);
  void add_inlined(std::uint64_t address, std::vector<Frame>& frames);
};

// With a file that was named before the one that ran, which may be stripped; without either by what is installed.
void Symbols::Loaded::load(const std::string& folder) {
  tried = true;
  static char* debug_path = nullptr;  // libdw's default: beside the file, and /usr/lib/debug
  static const Dwfl_Callbacks callbacks = {no_build_id_lookup, dwfl_standard_find_debuginfo, nullptr, &debug_path};
  dwfl = dwfl_begin(&callbacks);
  dwfl_report_begin(dwfl);
  if (std::string file = find_debug_file(module, folder); !file.empty()) libdw = report_module_by(dwfl, module, file);
  if (libdw == nullptr) libdw = report_module(dwfl, module);
  if (libdw == nullptr)
    if (std::string file = find_debug_file(module, "/usr/lib/debug"); !file.empty())
      libdw = report_module_by(dwfl, module, file);
  dwfl_report_end(dwfl, nullptr, nullptr);
}

Symbols::Symbols(const TraceFile& trace, std::string folder) : Symbols(trace.modules, std::move(folder)) {}

Symbols::Symbols(const std::vector<Module>& modules, std::string folder)
    : folder_(std::move(folder)), unknown_(std::make_unique<Loaded>()) {
  unsetenv("DEBUGINFOD_URLS");  // a report reads files, and nothing from the network
  unknown_->tried = true;
  for (const Module& module : modules) {
    auto loaded = std::make_unique<Loaded>();
    loaded->module = module;
    modules_.push_back(std::move(loaded));
  }
}

Symbols::~Symbols() = default;

Symbols::Loaded& Symbols::module_at(std::uint64_t address) {
  // The last that was mapped there.
  for (auto at = modules_.rbegin(); at != modules_.rend(); ++at)
    if ((*at)->module.start <= address && address < (*at)->module.end) return **at;
  return *unknown_;
}

const std::vector<Frame>& Symbols::frames_at(std::uint64_t address) {
  auto [at, fresh] = known_.try_emplace(address);
  if (fresh) at->second = look_up(address);
  return at->second;
}

Dwfl_Module* Symbols::module_of(std::uint64_t address) {
  Loaded& loaded = module_at(address);
  if (!loaded.tried) loaded.load(folder_);
  return loaded.libdw;
}

Unit Symbols::unit_at(std::uint64_t address) {
  Unit unit;
  Dwfl_Module* module = module_of(address);
  Dwarf_Addr bias = 0;
  Dwarf_Die* die = module != nullptr ? module_at(address).units.unit_at(module, address, &bias) : nullptr;
  if (die == nullptr) return unit;
  Dwarf_Attribute attribute;
  auto text = [&](unsigned name) {
    const char* value = dwarf_attr(die, name, &attribute) != nullptr ? dwarf_formstring(&attribute) : nullptr;
    return std::string(value != nullptr ? value : "");
  };
  unit.source = text(DW_AT_name);
  unit.directory = text(DW_AT_comp_dir);
  unit.producer = text(DW_AT_producer);
  unit.language = std::max(dwarf_srclang(die), 0);
  return unit;
}

std::vector<Frame> Symbols::look_up(std::uint64_t address) {
  Loaded& loaded = module_at(address);
  if (!loaded.tried) loaded.load(folder_);
  loaded.used = true;
  Frame frame;
  frame.module = loaded.module.path;
  frame.library = is_library_module(frame.module);
  if (loaded.libdw != nullptr) {
    GElf_Off offset;
    GElf_Sym symbol;
    if (const char* name = dwfl_module_addrinfo(loaded.libdw, address, &offset, &symbol, nullptr, nullptr, nullptr)) {
      frame.function = demangled(name);
      loaded.has_symbols = true;
    }
    if (loaded.set_line(address, frame)) loaded.has_lines = true;
  }
  if (frame.function.empty()) {
    char text[32];
    std::uint64_t inside = address - loaded.module.start + loaded.module.file_offset;
    std::snprintf(text, sizeof text, "0x%llx",
                  static_cast<unsigned long long>(frame.module.empty() ? address : inside));
    frame.function = frame.module.empty() ? text : base_name(frame.module) + "+" + text;
  }
  std::vector<Frame> frames{frame};
  if (!frame.file.empty()) loaded.add_inlined(address, frames);
  for (Frame& each : frames) each.library = each.library || is_library_source(each.file);
  return frames;
}

// False where no line is known.
bool Symbols::Loaded::set_line(std::uint64_t address, Frame& frame) {
  const char* file = nullptr;
  if (Dwfl_Line* found = dwfl_module_getsrc(libdw, address); found != nullptr) {
    file = dwfl_lineinfo(found, nullptr, &frame.line, &frame.column, nullptr, nullptr);
  } else {  // as unit_index.hpp says
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = units.unit_at(libdw, address, &bias);
    Dwarf_Line* line = unit != nullptr ? dwarf_getsrc_die(unit, address - bias) : nullptr;
    if (line != nullptr) file = dwarf_linesrc(line, nullptr, nullptr);
    if (file != nullptr) dwarf_lineno(line, &frame.line), dwarf_linecol(line, &frame.column);
  }
  if (file == nullptr) return false;
  frame.file = file;
  return true;
}

// `frames` holds the function that the symbol table names, at the line of the innermost inlined one.
void Symbols::Loaded::add_inlined(std::uint64_t address, std::vector<Frame>& frames) {
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = units.unit_at(libdw, address, &bias);
  if (unit == nullptr) return;
  const FunctionIndex& index = functions.try_emplace(unit->addr, *unit).first->second;
  std::vector<Frame> found;
  Frame next = frames[0];
  for (Dwarf_Die& scope : index.scopes_at(address - bias)) {
    int tag = dwarf_tag(&scope);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    if (std::string name = function_name(&scope); !name.empty()) next.function = name;
    next.inlined = tag == DW_TAG_inlined_subroutine;
    found.push_back(next);
    if (!next.inlined) break;
    next.function = frames[0].function;
    call_site(&scope, unit, &next);
  }
  if (!found.empty()) frames = std::move(found);
}

std::vector<std::string> Symbols::remarks() const {
  std::vector<std::string> remarks;
  std::vector<std::string> done;
  for (const auto& loaded : modules_) {
    const Module& module = loaded->module;
    if (!loaded->used || is_library_module(module.path) || loaded->has_lines) continue;
    if (std::find(done.begin(), done.end(), module.path) != done.end()) continue;
    done.push_back(module.path);
    if (loaded->libdw == nullptr)
      remarks.push_back(module.path +
                        " is not there or is not the file that ran: bring that file back to see names, or " +
                        "name a folder that has it or its debug file: --debug-files FOLDER");
    else if (loaded->has_symbols)
      remarks.push_back(module.path + " has no line information: build it with -g, or install its -dbgsym package; " +
                        "functions are reported");
    else
      remarks.push_back(module.path +
                        " is stripped: build it with -g and without -s, or install its -dbgsym package; "
                        "places in the file are reported");
  }
  return remarks;
}

std::string without_arguments(const std::string& function) {
  std::size_t depth = 0, end = function.size();
  for (std::size_t i = 0; i < function.size(); ++i) {
    char letter = function[i];
    if (letter == '<') ++depth;
    if (letter == '>' && depth > 0) --depth;
    if (letter != '(' || depth != 0 || i == 0) continue;
    if (function.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 20;
      continue;
    }
    end = i;
    break;
  }
  return function.substr(0, end);
}

}  // namespace hinterland::trace
