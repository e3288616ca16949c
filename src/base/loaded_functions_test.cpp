#include "base/loaded_functions.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <string_view>

namespace hinterland {
namespace {

const char g_here = 0;  // in this program's file, behind which its libraries are

TEST(LoadedFunctions, AreBehindTheProgramWhereALibraryDefinesThem) {
  for (const char* name : {"getpid", "malloc", "pthread_create", "strlen", "time"})  // the last ones by a resolver
    EXPECT_NE(function_behind(&g_here, name, true), 0u) << name;
  for (const char* name : {"", "getpi", "getpid2", "environ", "io_setup", "hl_no_such_function"})
    EXPECT_EQ(function_behind(&g_here, name, true), 0u) << name;
}

TEST(LoadedFunctions, AreNotBehindTheFileThatDefinesThemAlone) {
  void* own = dlsym(RTLD_DEFAULT, "getpid");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(function_behind(own, "getpid", true), 0u) << "libc's own, and what comes after it";
  static int on_heap_of_nobody = 0;
  EXPECT_EQ(function_behind(&on_heap_of_nobody + (1 << 28), "getpid", true), 0u) << "an address in no file";
}

int compare(dl_phdr_info* file, std::size_t, void* compared) {
  if (!std::string_view(file->dlpi_name).contains("libc.so")) return 0;
  void* libc = dlopen(file->dlpi_name, RTLD_NOW | RTLD_NOLOAD);  // a sanitizer has some of them, too
  // The last three have an older version, too.
  for (const char* name : {"getpid", "qsort", "fork", "strtol", "abort", "regexec", "posix_spawn", "fmemopen"}) {
    EXPECT_EQ(function_in(*file, name, false), reinterpret_cast<std::uintptr_t>(dlsym(libc, name))) << name;
    ++*static_cast<int*>(compared);
  }
  EXPECT_EQ(function_in(*file, "strlen", false), 0u) << "it has a resolver, whose address is not the function's";
  EXPECT_NE(function_in(*file, "strlen", true), 0u);
  EXPECT_EQ(function_in(*file, "stdout", true), 0u) << "no function";
  return 0;
}

TEST(LoadedFunctions, AreWhereTheLoaderFindsThem) {
  int compared = 0;
  dl_iterate_phdr(compare, &compared);
  EXPECT_EQ(compared, 8);
}

}  // namespace
}  // namespace hinterland
