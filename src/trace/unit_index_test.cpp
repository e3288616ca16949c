// Units as the index finds them by itself, over the code of this very program.
#include "trace/unit_index.hpp"

#include <elfutils/libdw.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hinterland::trace {
namespace {

void in_this_program() {}

TEST(UnitIndexTest, FindsAllCode) {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr,
                                           &debug_path};
  Dwfl* dwfl = dwfl_begin(&callbacks);
  ASSERT_EQ(dwfl_linux_proc_report(dwfl, getpid()), 0);
  ASSERT_EQ(dwfl_report_end(dwfl, nullptr, nullptr), 0);
  Dwfl_Module* module = dwfl_addrmodule(dwfl, reinterpret_cast<Dwarf_Addr>(&in_this_program));
  ASSERT_NE(module, nullptr);
  UnitIndex index;
  Dwarf_Addr bias = 0;
  int ranges = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr;) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;) {
      if (begin == end || begin == 0) continue;  // of functions that the linker dropped
      ++ranges;
      for (Dwarf_Addr address : {begin, begin + (end - begin) / 2, end - 1}) {
        Dwarf_Addr found_bias = 0;
        Dwarf_Die* found = index.find_by_ranges(module, address + bias, &found_bias);
        ASSERT_NE(found, nullptr) << std::hex << address;
        EXPECT_EQ(dwarf_haspc(found, address), 1)
            << "of several that have a merged function one is as good as another";
        EXPECT_EQ(found_bias, bias);
      }
    }
  }
  EXPECT_GT(ranges, 1);
  EXPECT_EQ(index.find_by_ranges(module, reinterpret_cast<Dwarf_Addr>(&debug_path), &bias), nullptr)
      << "data is no code";
  dwfl_end(dwfl);
}

}  // namespace
}  // namespace hinterland::trace
