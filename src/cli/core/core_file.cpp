// Layout: header, memory from the next page on, notes, and at the end the program headers, because a page that cannot
// be read turns out only when it is read, and splits its segment.
#include "cli/core/core_file.hpp"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"

namespace hinterland::cli {
namespace {

constexpr std::size_t kStepBytes = kMiB;

Elf64_Ehdr file_header(std::size_t segments, std::uint64_t headers_at) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phoff = headers_at;
  header.e_phnum = static_cast<Elf64_Half>(std::min<std::size_t>(segments, PN_XNUM));
  if (segments < PN_XNUM) return header;
  // More than 16 bits can count: the number is in the one section header (sh_info).
  header.e_shoff = headers_at + segments * sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  return header;
}

bool all_zero(const std::byte* bytes) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, kPageSize - 1) == 0;
}

}  // namespace

Status CoreFile::write_all(const void* bytes, std::size_t length, std::uint64_t offset) {
  for (std::size_t done = 0; done < length;) {
    ssize_t now =
        pwrite(file_, static_cast<const char*>(bytes) + done, length - done, static_cast<off_t>(offset + done));
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return std::unexpected(Error::make(now < 0 ? errno : ENOSPC, "the core file cannot be written"));
    done += static_cast<std::size_t>(now);
  }
  return {};
}

// Pages of zeros are holes: a core file is as sparse as its program.
Status CoreFile::write_bytes(const std::byte* bytes, std::size_t length, std::uint64_t offset) {
  for (std::size_t at = 0; at < length;) {
    if (all_zero(bytes + at)) {
      at += kPageSize;
      continue;
    }
    std::size_t end = at + kPageSize;
    while (end < length && !all_zero(bytes + end)) end += kPageSize;
    if (Status written = write_all(bytes + at, end - at, offset + at); !written) return written;
    at = end;
  }
  return {};
}

void CoreFile::add_segment(std::uint64_t start, std::uint64_t end, std::uint32_t permissions, bool present) {
  if (start == end) return;
  bool joins = !segments_.empty() && segments_.back().end == start && segments_.back().present == present &&
               segments_.back().permissions == permissions;
  if (joins)
    segments_.back().end = end;
  else
    segments_.push_back({start, end, end_, permissions, present});
  if (present) end_ += end - start;
  if (present) contents_.bytes += end - start;
}

Status CoreFile::add(const Mapping& mapping, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (piece.take == Take::absent || piece.take == Take::zeros)
      add_segment(piece.start, piece.end, mapping.permissions, piece.take == Take::zeros);
    else if (Status copied = copy_piece(mapping, piece); !copied)
      return copied;
  }
  return {};
}

Status CoreFile::copy_piece(const Mapping& mapping, const Piece& piece) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kStepBytes, piece.end - piece.start));
  for (std::uint64_t at = piece.start; at < piece.end;) {
    std::size_t wanted = std::min<std::uint64_t>(buffer.size(), piece.end - at);
    bool far = piece.take == Take::far;
    std::size_t got =
        page_floor(far ? memory_.read(at, buffer.data(), wanted) : memory_.read_resident(at, buffer.data(), wanted));
    std::uint64_t offset = end_;
    if (Status written = write_bytes(buffer.data(), got, offset); !written) return written;
    add_segment(at, at + got, mapping.permissions, true);
    if (far) contents_.far_bytes += got;
    at += got;
    if (got == wanted) continue;
    add_segment(at, at + kPageSize, mapping.permissions, false);  // this page cannot be had; go on behind it
    contents_.absent_bytes += kPageSize;
    at += kPageSize;
  }
  return {};
}

Status CoreFile::finish(const std::string& notes) {
  if (Status written = write_all(notes.data(), notes.size(), end_); !written) return written;
  std::vector<Elf64_Phdr> headers(1);
  headers[0].p_type = PT_NOTE;
  headers[0].p_offset = end_;
  headers[0].p_filesz = notes.size();
  headers[0].p_align = 4;
  for (const Segment& segment : segments_) {
    // A segment without bytes in the file would say so as well, but gdb (11 and newer) reads zeros there.
    if (!segment.present) continue;
    Elf64_Phdr header{};
    header.p_type = PT_LOAD;
    header.p_flags = segment.permissions;
    header.p_offset = segment.offset;
    header.p_vaddr = segment.start;
    header.p_filesz = segment.end - segment.start;
    header.p_memsz = segment.end - segment.start;
    header.p_align = kPageSize;
    headers.push_back(header);
  }
  std::uint64_t headers_at = page_ceil(end_ + notes.size());
  Elf64_Ehdr header = file_header(headers.size(), headers_at);
  Elf64_Shdr count{};
  count.sh_info = static_cast<Elf64_Word>(headers.size());
  std::size_t length = headers.size() * sizeof headers[0];
  if (Status written = write_all(headers.data(), length, headers_at); !written) return written;
  if (header.e_shnum != 0)
    if (Status written = write_all(&count, sizeof count, headers_at + length); !written) return written;
  return write_all(&header, sizeof header, 0);
}

}  // namespace hinterland::cli
