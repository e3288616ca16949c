#include "cli/executable.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace hinterland::cli {
namespace {

constexpr int kScriptDepthMax = 5;       // as the kernel's
constexpr std::size_t kTableMax = 4096;  // entries of a header table worth reading; real files have below 100

class File {
 public:
  explicit File(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // What there is at `offset`, maybe short.
  std::string bytes(std::uint64_t offset, std::size_t size) const {
    std::string text(size, '\0');
    ssize_t got = offset > INT64_MAX ? 0 : pread(descriptor_, text.data(), size, static_cast<off_t>(offset));
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  template <typename T>
  std::optional<T> read(std::uint64_t offset) const {
    std::string raw = bytes(offset, sizeof(T));
    if (raw.size() != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

 private:
  int descriptor_;
};

bool has_go_note(const File& file, const Elf64_Phdr& segment) {
  std::string note = file.bytes(segment.p_offset, 16);
  return note.size() == 16 && std::memcmp(note.data() + 12, "Go\0\0", 4) == 0;
}

// Go leaves the section .go.buildinfo, also in stripped and in dynamically linked programs.
bool has_go_section(const File& file, const Elf64_Ehdr& header) {
  if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return false;
  auto names = file.read<Elf64_Shdr>(header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof(Elf64_Shdr));
  if (!names) return false;
  for (std::size_t i = 0; i < header.e_shnum && i < kTableMax; ++i) {
    auto section = file.read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return false;
    constexpr std::string_view kName = ".go.buildinfo";
    if (file.bytes(names->sh_offset + section->sh_name, kName.size()) == kName) return true;
  }
  return false;
}

// Why the loader would start it in secure mode, "" when it would not. Root gains nothing by set-user-id root.
std::string privilege(const File& file) {
  struct stat status;
  if (fstat(file.descriptor(), &status) < 0) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) return "set-user-id";
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != getegid())
    return "set-group-id";
  if (geteuid() != 0 && fgetxattr(file.descriptor(), "security.capability", nullptr, 0) > 0)
    return "file capabilities";
  return "";
}

struct Sanitizer {
  const char* flag;
  const char* name;
  std::string_view symbol, library;  // either is in the program: its run time is linked statically, or loaded
};
// Those with a heap or shadow memory of their own. (UBSan has neither.)
constexpr Sanitizer kSanitizers[] = {
    {"address", "AddressSanitizer", "__asan_init", "libasan.so"},
    {"hwaddress", "HWAddressSanitizer", "__hwasan_init", "libhwasan.so"},
    {"thread", "ThreadSanitizer", "__tsan_init", "libtsan.so"},
    {"memory", "MemorySanitizer", "__msan_init", "libmsan.so"},
    {"leak", "LeakSanitizer", "__lsan_init", "liblsan.so"},
};

// The strings that the loader reads: names of libraries and symbols, also in a stripped program.
std::string loader_strings(const File& file, const Elf64_Phdr& dynamic, std::span<const Elf64_Phdr> loaded) {
  constexpr std::size_t kStringsMax = 64u << 20;
  std::uint64_t address = 0, bytes = 0;
  for (std::size_t i = 0; i < std::min(dynamic.p_filesz / sizeof(Elf64_Dyn), kTableMax); ++i) {
    auto entry = file.read<Elf64_Dyn>(dynamic.p_offset + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_STRTAB) address = entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRSZ) bytes = entry->d_un.d_val;
  }
  for (const Elf64_Phdr& segment : loaded)
    if (segment.p_vaddr <= address && address - segment.p_vaddr < segment.p_filesz)
      return file.bytes(segment.p_offset + (address - segment.p_vaddr), std::min<std::uint64_t>(bytes, kStringsMax));
  return {};
}

const Sanitizer* sanitizer_in(std::string_view strings) {
  for (const Sanitizer& known : kSanitizers)
    if (strings.find(known.symbol) != std::string_view::npos || strings.find(known.library) != std::string_view::npos)
      return &known;
  return nullptr;
}

std::unexpected<Error> cut_short(const std::string& path, const char* what) {
  Error error = Error::make(ENOEXEC, "%s: its %s cut short", path.c_str(), what);
  return std::unexpected(error.remedy("the file is damaged: build or install it again"));
}

struct Segments {
  std::string interpreter;
  bool go = false;
  bool dynamic = false;
  const Sanitizer* sanitizer = nullptr;
};

Result<Segments> read_segments(const File& file, const Elf64_Ehdr& header, const std::string& path) {
  Segments segments;
  Elf64_Phdr dynamic{};
  std::vector<Elf64_Phdr> loaded;
  for (std::size_t i = 0; i < header.e_phnum && i < kTableMax; ++i) {
    auto segment = file.read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || header.e_phentsize != sizeof(Elf64_Phdr)) return cut_short(path, "program headers are");
    if (segment->p_type == PT_DYNAMIC) segments.dynamic = true;
    if (segment->p_type == PT_DYNAMIC) dynamic = *segment;
    if (segment->p_type == PT_LOAD) loaded.push_back(*segment);
    if (segment->p_type == PT_NOTE && has_go_note(file, *segment)) segments.go = true;
    if (segment->p_type == PT_INTERP) {
      std::string name = file.bytes(segment->p_offset, std::min<std::size_t>(segment->p_filesz, 4096));
      segments.interpreter = name.substr(0, name.find('\0'));
    }
  }
  segments.sanitizer = sanitizer_in(loader_strings(file, dynamic, loaded));
  return segments;
}

Result<Executable> examine_elf(const File& file, const std::string& path) {
  auto header = file.read<Elf64_Ehdr>(0);
  std::string ident = file.bytes(0, EI_NIDENT);
  if (ident.size() == EI_NIDENT && ident[EI_CLASS] != ELFCLASS64) return Executable{Kind::other_abi, "32 bits", ""};
  if (!header) return cut_short(path, "ELF header is");
  if (header->e_type != ET_EXEC && header->e_type != ET_DYN) return Executable{Kind::not_a_program, "", ""};
  if (header->e_machine != EM_X86_64) return Executable{Kind::other_abi, "another processor", ""};
  Result<Segments> segments = read_segments(file, *header, path);
  if (!segments) return std::unexpected(segments.error());
  if (segments->go || has_go_section(file, *header)) return Executable{Kind::go_program, "", ""};
  if (std::string why = privilege(file); !why.empty()) return Executable{Kind::privileged, why, ""};
  const std::string& loader = segments->interpreter;
  if (loader.empty()) {
    // A loader or a library started as a program: the loader itself honours LD_PRELOAD.
    bool is_loader = path.find("/ld-linux") != std::string::npos;
    return Executable{is_loader ? Kind::dynamic_program : Kind::static_program, "", ""};
  }
  if (loader.find("ld-linux") == std::string::npos) return Executable{Kind::other_abi, "loader " + loader, ""};
  if (segments->sanitizer != nullptr)
    return Executable{Kind::sanitized, segments->sanitizer->name, segments->sanitizer->flag};
  return Executable{Kind::dynamic_program, "", ""};
}

Executable examine_script(const File& file) {
  std::string line = file.bytes(2, 254);
  line.resize(std::min(line.find('\n'), line.size()));
  std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  return Executable{Kind::script, "", line.substr(begin, end - begin)};
}

std::unexpected<Error> refused(const std::string& path, const Executable& program) {
  const char* name = path.c_str();
  Error error;
  switch (program.kind) {
    case Kind::static_program:
      error = Error::make(0, "%s is statically linked: no loader runs that could put far memory under it", name);
      error.remedy("use a dynamically linked build, or --best-effort to start it without far memory");
      break;
    case Kind::go_program:
      error = Error::make(0, "%s is a Go program: its runtime takes memory past the C library", name);
      error.remedy("set GOMEMLIMIT instead, or give --best-effort to start it without far memory");
      break;
    case Kind::privileged:
      error = Error::make(0, "%s changes privileges (%s): the loader ignores LD_PRELOAD for it", name,
                          program.detail.c_str());
      error.remedy("start it as the user that it would become, or give --best-effort to start it without far memory");
      break;
    case Kind::other_abi:
      error = Error::make(0, "%s is for another platform (%s): only x86-64 programs for glibc can be helped", name,
                          program.detail.c_str());
      error.remedy("use such a build, or give --best-effort to start it without far memory");
      break;
    case Kind::sanitized:
      error = Error::make(0, "%s is built with %s, which has a heap of its own and watches memory by its address",
                          name, program.detail.c_str());
      error.remedy("build it without -fsanitize=%s, or give --best-effort to start it without far memory",
                   program.interpreter.c_str());
      break;
    default:
      error = Error::make(ENOEXEC, "%s", name);
      error.remedy("give a program, or a script that starts with #! and its interpreter");
  }
  return std::unexpected(error);
}

bool is_executable_file(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::unexpected<Error> not_executable(const std::string& path) {
  struct stat status;
  bool directory = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  Error error = Error::make(EACCES, "%s cannot be executed", path.c_str());
  if (directory) return std::unexpected(error.remedy("it is a directory; name a program"));
  return std::unexpected(error.remedy("if it is a program: chmod +x '%s'", path.c_str()));
}

}  // namespace

Result<Executable> examine_executable(const std::string& path) {
  File file(path);
  // A program may be executable without being readable: then nothing is known, and the kernel decides.
  if (!file.is_open() && errno == EACCES) return Executable{Kind::dynamic_program, "unreadable", ""};
  if (!file.is_open()) return std::unexpected(Error::make(errno, "%s cannot be read", path.c_str()));
  std::string magic = file.bytes(0, SELFMAG);
  if (magic.starts_with("#!")) return examine_script(file);
  if (magic == ELFMAG) return examine_elf(file, path);
  return Executable{};
}

Result<std::string> find_program(const std::string& name) {
  auto missing = [&](const char* remedy) {
    return std::unexpected(Error::make(ENOENT, "program '%s'", name.c_str()).remedy("%s", remedy));
  };
  if (name.empty()) return missing("give the name of a program after --");
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), F_OK) != 0 && errno == ENOENT) return missing("check the path");
    if (!is_executable_file(name)) return not_executable(name);
    return name;
  }
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/bin:/usr/bin";
  std::string found_not_executable;
  for (std::size_t at = 0; at <= rest.size();) {
    std::size_t end = std::min(rest.find(':', at), rest.size());
    std::string directory = end == at ? "." : rest.substr(at, end - at);
    std::string candidate = directory + "/" + name;
    if (is_executable_file(candidate)) return candidate;
    struct stat status;
    if (stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode)) found_not_executable = candidate;
    at = end + 1;
  }
  if (!found_not_executable.empty()) return not_executable(found_not_executable);
  return missing("it is in no directory of PATH; check the spelling, or give its path");
}

Status check_program(const std::string& path) {
  std::string current = path;
  for (int depth = 0; depth <= kScriptDepthMax; ++depth) {
    Result<Executable> program = examine_executable(current);
    if (!program) return std::unexpected(program.error());
    if (program->kind == Kind::dynamic_program) return {};
    if (program->kind != Kind::script) return refused(current, *program);
    if (!is_executable_file(program->interpreter)) {
      Error error = Error::make(ENOENT, "%s: its interpreter '%s'", current.c_str(), program->interpreter.c_str());
      return std::unexpected(error.remedy("install it, or correct the script's first line"));
    }
    current = program->interpreter;
  }
  Error error = Error::make(ELOOP, "%s: too many scripts that interpret each other", path.c_str());
  return std::unexpected(error.remedy("correct the first lines of the scripts"));
}

}  // namespace hinterland::cli
