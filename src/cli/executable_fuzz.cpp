// Looking at a program before it is started: any file at all.
#include "base/testing/fuzz_input.hpp"
#include "cli/executable.hpp"

using namespace hinterland;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static testing::MemoryFile file;
  file.hold({reinterpret_cast<const char*>(data), size});
  auto program = cli::examine_executable(file.path());
  if (!program) return 0;
  HL_CHECK_OP(program->interpreter.size(), <=, std::size_t{4096});
  if (size < 2) HL_CHECK(program->kind == cli::Kind::not_a_program);
  return 0;
}
