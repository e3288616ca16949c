// Trace files of anybody's making: read to the end, or refused.
#include <cstring>

#include "base/check.hpp"
#include "base/testing/fuzz_input.hpp"
#include "trace/hint_profile.hpp"
#include "trace/profile.hpp"
#include "trace/trace_file.hpp"
#include "trace/trace_format.hpp"

using namespace hinterland;

// The fuzzer cannot guess checksums: `data` is a list of (kind, length, bytes), and the blocks around them are made
// here.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  testing::FuzzInput input(data, size);
  trace::FileHead head{{}, trace::kTraceVersion, sizeof(trace::FileHead)};
  std::memcpy(head.magic, trace::kFileMagic, sizeof head.magic);
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  while (!input.empty()) {
    auto kind = input.take<std::uint8_t>();
    std::span<const std::uint8_t> payload = input.take_bytes(input.take<std::uint8_t>());
    trace::BlockHead block{kind, static_cast<std::uint32_t>(payload.size()),
                           trace::checksum_of(kind, payload.data(), payload.size())};
    bytes.append(reinterpret_cast<const char*>(&block), sizeof block);
    bytes.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
  static testing::MemoryFile file;
  file.hold(bytes);
  Result<trace::TraceFile> trace = trace::TraceFile::open(file.path());
  if (!trace) {
    HL_CHECK(trace.error().what()[0] != '\0');
    return 0;
  }
  for (const trace::StackSample& sample : trace->samples) HL_CHECK_OP(sample.stack, <, trace->stacks.size());
  trace->for_each_fault([](const trace::FaultRecord& fault) { HL_CHECK(fault.kind <= FaultKind::lost); });
  trace->modules.clear();  // no files of this machine
  trace::Symbols symbols(*trace);
  trace::make_profile(*trace, symbols, trace::GroupBy::line);
  trace::make_profile(*trace, symbols, trace::GroupBy::allocation);
  trace::make_hint_profile(*trace, symbols);
  return 0;
}
