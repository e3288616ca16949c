#include "trace/site_table.hpp"

#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/plain_file.hpp"
#include "base/site_profile_text.hpp"
#include "trace/debug_files.hpp"

namespace hinterland::trace {
namespace {

constexpr const char* kSection = "hinterland_sites";
constexpr std::uint64_t kEntryBytes = 12;  // as runtime/sites.hpp has it: distances of nop and call, kind
constexpr std::uint32_t kWrites = 1, kHasLength = 2, kStatic = 4;

class ElfFile {
 public:
  explicit ElfFile(int descriptor) : descriptor_(descriptor) {
    elf_version(EV_CURRENT);
    elf_ = elf_begin(descriptor, ELF_C_READ_MMAP, nullptr);
  }
  ~ElfFile() {
    elf_end(elf_);
    close(descriptor_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  bool is_good() const { return elf_ != nullptr && elf_kind(elf_) == ELF_K_ELF; }
  Elf* get() const { return elf_; }

  std::vector<GElf_Phdr> segments() const {
    std::vector<GElf_Phdr> all;
    std::size_t count = 0;
    if (!is_good() || elf_getphdrnum(elf_, &count) != 0) return all;
    for (std::size_t i = 0; i < count; ++i)
      if (GElf_Phdr head; gelf_getphdr(elf_, static_cast<int>(i), &head) != nullptr) all.push_back(head);
    return all;
  }
  // False when there is none of that name.
  bool section(const char* name, GElf_Shdr* head, Elf_Data** data) const {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf_, &names) != 0) return false;
    for (Elf_Scn* each = nullptr; (each = elf_nextscn(elf_, each)) != nullptr;) {
      if (gelf_getshdr(each, head) == nullptr) continue;
      const char* found = elf_strptr(elf_, names, head->sh_name);
      if (found == nullptr || std::strcmp(found, name) != 0) continue;
      *data = elf_rawdata(each, nullptr);
      return true;
    }
    return false;
  }

 private:
  int descriptor_;
  Elf* elf_ = nullptr;
};

template <typename Number>
Number number_at(const unsigned char* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

SiteForm form_of(std::uint32_t kind) {
  constexpr unsigned kShift = 8;
  const std::uint32_t form = kind >> kShift;
  return form <= static_cast<std::uint32_t>(SiteForm::loop_begins) ? static_cast<SiteForm>(form) : SiteForm::single;
}

void add_entry(SiteTableOfFile& table, site_profile::Identity& identity, std::uint64_t begin, std::uint64_t offset,
               const unsigned char* bytes) {
  // Each distance is from its own field.
  const auto distance = [&](std::uint64_t field) {
    return offset + field + static_cast<std::uint64_t>(std::int64_t{number_at<std::int32_t>(bytes + field)});
  };
  const std::uint64_t nop = distance(0), call = distance(4);
  const auto kind = number_at<std::uint32_t>(bytes + 8);
  identity.add(nop, call, kind);
  table.entries.push_back(
      {begin + nop, (kind & kWrites) != 0, (kind & kHasLength) != 0, (kind & kStatic) != 0, form_of(kind)});
}

}  // namespace

Result<SiteTableOfFile> read_site_table(const std::string& path) {
  Result<int> opened = open_plain_file(path, "the program");
  if (!opened) return std::unexpected(opened.error());
  const ElfFile file(*opened);
  if (!file.is_good()) return std::unexpected(Error::make(0, "%s is no ELF file", path.c_str()));
  SiteTableOfFile table;
  for (const GElf_Phdr& segment : file.segments()) table.is_program = table.is_program || segment.p_type == PT_INTERP;
  GElf_Shdr head{};
  Elf_Data* data = nullptr;
  if (!file.section(kSection, &head, &data)) return table;
  if (data == nullptr || data->d_buf == nullptr || data->d_size % kEntryBytes != 0)
    return std::unexpected(
        Error::make(0, "%s: its table of hints is damaged", path.c_str()).remedy("build it again"));
  site_profile::Identity identity;
  const auto* bytes = static_cast<const unsigned char*>(data->d_buf);
  for (std::uint64_t offset = 0; offset < data->d_size; offset += kEntryBytes)
    add_entry(table, identity, head.sh_addr, offset, bytes + offset);
  table.identity = identity.value();
  return table;
}

std::vector<Module> modules_at_own_addresses(const std::string& path) {
  constexpr std::uint64_t kPage = 4096;
  std::vector<Module> modules;
  Result<int> opened = open_plain_file(path, "the program");
  if (!opened) return modules;
  const ElfFile file(*opened);
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uint64_t before = segment.p_vaddr % kPage;
    modules.push_back({segment.p_vaddr - before, segment.p_vaddr + segment.p_memsz, segment.p_offset - before,
                       build_id_of(path), path});
  }
  return modules;
}

}  // namespace hinterland::trace
