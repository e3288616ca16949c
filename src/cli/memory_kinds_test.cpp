#include "cli/memory_kinds.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/units.hpp"

namespace hinterland::cli {
namespace {

constexpr std::uint64_t kWindow = 0x7000'0000'0000, kWindowBytes = 64 * kGiB;

bool in_window(std::uint64_t address) { return address - kWindow < kWindowBytes; }

struct Maps {
  std::vector<Mapping> all;
  std::uint64_t next = 0x10000;
  Mapping& add(std::uint64_t bytes, const char* name = "") {
    Mapping mapping;
    mapping.start = next;
    mapping.end = next += bytes;
    mapping.permissions = 6;
    mapping.resident_bytes = bytes;
    mapping.name = name;
    mapping.inode = name[0] == '/' ? 1 : 0;
    return all.emplace_back(mapping);
  }
};

std::uint64_t bytes_of(const MemoryByKind& memory, MemoryKind kind) {
  return memory[static_cast<std::size_t>(kind)].resident_bytes;
}

TEST(MemoryKinds, EachMappingIsOfOneKind) {
  Maps maps;
  maps.add(1 * kMiB, "/usr/bin/program");
  maps.add(2 * kMiB, "/usr/lib/libc.so.6");
  maps.add(3 * kMiB, "/dev/shm/table");
  maps.add(4 * kMiB, "/memfd:cache (deleted)");
  maps.add(5 * kMiB, "[heap]");
  maps.next += kMiB;  // the kernel leaves gaps
  Mapping& guard = maps.add(4 * kKiB);
  guard.permissions = 0;
  guard.resident_bytes = 0;
  maps.add(6 * kMiB);  // above a guard: a thread's stack
  maps.next += kMiB;
  maps.add(7 * kMiB);  // nobody knows
  maps.next += kMiB;
  maps.add(8 * kMiB).not_dumped = true;
  maps.add(10 * kMiB).is_huge = true;
  maps.next = kWindow;
  maps.add(11 * kMiB).not_dumped = true;  // as all of the window is
  maps.next = 0x7fff'0000'0000;
  maps.add(12 * kKiB, "[stack]");

  const MemoryByKind memory = by_kind(maps.all, in_window);
  EXPECT_EQ(bytes_of(memory, MemoryKind::file), 3 * kMiB);
  EXPECT_EQ(bytes_of(memory, MemoryKind::shared), 7 * kMiB);
  EXPECT_EQ(bytes_of(memory, MemoryKind::brk), 5 * kMiB);
  EXPECT_EQ(bytes_of(memory, MemoryKind::stack), 6 * kMiB + 12 * kKiB);
  EXPECT_EQ(bytes_of(memory, MemoryKind::other), 7 * kMiB);
  EXPECT_EQ(bytes_of(memory, MemoryKind::own), 8 * kMiB);
  EXPECT_EQ(bytes_of(memory, MemoryKind::huge_page), 10 * kMiB);
  EXPECT_EQ(bytes_of(memory, MemoryKind::paged), 11 * kMiB);
  std::uint64_t sum = 0, present = 0;
  for (const MemoryOfKind& kind : memory) sum += kind.resident_bytes;
  for (const Mapping& mapping : maps.all) present += mapping.resident_bytes;
  EXPECT_EQ(sum, present) << "nothing is left out, nothing twice";
}

TEST(MemoryKinds, TheLargestFilesAreNamed) {
  Maps maps;
  for (const char* name : {"/lib/small", "/lib/large", "/lib/middle", "/lib/large", "/lib/least"})
    maps.add((name[5] == 'l' ? 4 : 2) * kMiB, name);
  maps.all[4].resident_bytes = kMiB;
  maps.all[2].resident_bytes = 3 * kMiB;
  const MemoryByKind memory = by_kind(maps.all, in_window);
  const auto largest = memory[static_cast<std::size_t>(MemoryKind::file)].largest(3);
  ASSERT_EQ(largest.size(), 3u);
  EXPECT_EQ(largest[0], std::pair(std::string("/lib/large"), 8 * kMiB));
  EXPECT_EQ(largest[1].first, "/lib/middle");
  EXPECT_EQ(largest[2].first, "/lib/small");
  EXPECT_EQ(memory[static_cast<std::size_t>(MemoryKind::file)].largest(0).size(), 0u);
}

TEST(MemoryKinds, OfThisProcess) {
  Result<std::vector<Mapping>> mappings = read_mappings(getpid());
  ASSERT_TRUE(mappings.has_value()) << mappings.error().what();
  const MemoryByKind memory = by_kind(*mappings, [](std::uint64_t) { return false; });
  EXPECT_GT(bytes_of(memory, MemoryKind::file), 0u);
  EXPECT_GT(bytes_of(memory, MemoryKind::stack), 0u);
  EXPECT_EQ(bytes_of(memory, MemoryKind::paged), 0u);
}

TEST(MemoryKinds, AProcessThatIsNotThereIsSaid) {
  EXPECT_NE(std::string(read_mappings(1 << 30).error().what()).find("/proc/1073741824/smaps"), std::string::npos);
}

}  // namespace
}  // namespace hinterland::cli
