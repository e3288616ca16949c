// Scopes as the index finds them, against libdw's own slow search, over the code of this very program.
#include "trace/function_index.hpp"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <vector>

namespace hinterland::trace {
namespace {

// Of the functions among them, inlined ones included, innermost first: places in the debug information.
std::vector<Dwarf_Off> functions_of(Dwarf_Die* scopes, std::size_t count) {
  std::vector<Dwarf_Off> functions;
  for (std::size_t i = 0; i < count; ++i) {
    int tag = dwarf_tag(&scopes[i]);
    if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
      functions.push_back(dwarf_dieoffset(&scopes[i]));
    if (tag == DW_TAG_subprogram) break;
  }
  return functions;
}

std::vector<Dwarf_Off> slowly(Dwarf_Die* unit, Dwarf_Addr address) {
  Dwarf_Die *lexical = nullptr, *scopes = nullptr;
  if (dwarf_getscopes(unit, address, &lexical) <= 0) return {};
  int count = dwarf_getscopes_die(&lexical[0], &scopes);
  std::free(lexical);
  std::vector<Dwarf_Off> functions = functions_of(scopes, static_cast<std::size_t>(std::max(count, 0)));
  std::free(scopes);
  return functions;
}

TEST(FunctionIndexTest, FindsWhatLibdwFinds) {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr,
                                           &debug_path};
  Dwfl* dwfl = dwfl_begin(&callbacks);
  ASSERT_EQ(dwfl_linux_proc_report(dwfl, getpid()), 0);
  ASSERT_EQ(dwfl_report_end(dwfl, nullptr, nullptr), 0);
  auto own = reinterpret_cast<Dwarf_Addr>(&functions_of);
  Dwfl_Module* module = dwfl_addrmodule(dwfl, own);
  ASSERT_NE(module, nullptr);
  std::map<void*, FunctionIndex> indexes;
  int found = 0, inlined = 0;
  for (Dwarf_Addr address = own - 20'000; address < own + 20'000; address += 331) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = dwfl_module_addrdie(module, address, &bias);
    if (unit == nullptr) continue;
    std::vector<Dwarf_Off> expected = slowly(unit, address - bias);
    if (expected.empty()) continue;  // where functions lie within namespaces, libdw finds none
    std::vector<Dwarf_Die> scopes = indexes.try_emplace(unit->addr, *unit).first->second.scopes_at(address - bias);
    EXPECT_EQ(functions_of(scopes.data(), scopes.size()), expected) << std::hex << address - bias;
    ++found;
    inlined += expected.size() > 1;
  }
  EXPECT_GT(found, 50);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_GT(inlined, 10);  // other builds inline hardly anything
#endif
  dwfl_end(dwfl);
}

}  // namespace
}  // namespace hinterland::trace
