// Complete stacks out of sampled registers and stack bytes, from the unwind tables of the program's own files: no
// frame pointers needed. One a process; used by the recorder's thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trace/perf_sampler.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

class Unwinder {
 public:
  static constexpr std::size_t kFramesMax = 256;

  Unwinder();
  ~Unwinder();
  // Code was mapped: what overlaps goes. Files that cannot be read leave stacks that end in them.
  void add(const Module& module);
  // `registers` as in PerfRecord. The innermost address at least.
  Stack unwind(std::span<const std::uint64_t, kSampledRegisters> registers, std::span<const std::uint8_t> stack);

 private:
  struct Session;  // libdw's
  std::vector<Module> modules_;
  std::unique_ptr<Session> session_;  // made anew when modules have changed
};

}  // namespace hinterland::trace
