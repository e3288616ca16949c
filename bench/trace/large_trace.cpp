// Writes a trace as large as a long recording of a large program: so many samples over so many different stacks, all
// of them of this program's own code, so that a report finds names and lines. For bench/trace/report.
//
//   large_trace FILE [SAMPLES] [STACKS]
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "trace/debug_files.hpp"
#include "trace/trace_file.hpp"

namespace {

using namespace hinterland::trace;

constexpr std::size_t kDepth = 14, kCallees = 6, kPlaces = 4000;  // different addresses in all stacks
constexpr std::uint64_t kPages = 200'000, kFirstPage = 0x7f00'0000'0, kFaultEveryNs = 5000;

// The program's own code, as /proc/self/maps has it.
Module own_code() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Module module;
    char access[5] = {}, path[1024] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %1023s", &module.start, &module.end, access,
                    &module.file_offset, path) != 5 ||
        std::strcmp(access, "r-xp") != 0 || path[0] != '/')
      continue;
    module.path = path;
    module.build_id = build_id_of(path);
    return module;
  }
  return {};
}

// Stacks that share their callers, as those of a program do: each frame has a few callees, and the number of the
// stack says which it takes.
Stack stack_of(std::uint64_t number, const Module& code) {
  Stack stack;
  std::uint64_t where = 1;
  for (std::size_t depth = 0; depth < kDepth; ++depth, number /= kCallees) {
    where = where * 0x9e3779b97f4a7c15 + number % kCallees + 1;
    stack.addresses.push_back(code.start + (where >> 20) % kPlaces * ((code.end - code.start) / kPlaces));
  }
  return {{stack.addresses.rbegin(), stack.addresses.rend()}, true};
}

std::uint64_t number_of(const char* text) {
  std::uint64_t number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "large_trace FILE [SAMPLES] [STACKS]\n");
    return 2;
  }
  std::uint64_t samples = count > 2 ? number_of(words[2]) : 1'000'000,
                stacks = count > 3 ? number_of(words[3]) : 100'000;
  auto writer = TraceWriter::create(words[1], true);
  if (!writer) {
    std::fprintf(stderr, "large_trace: %s\n", writer.error().what());
    return 1;
  }
  ProcessFacts facts;
  facts.program = "large_trace";
  facts.far_url = "mem:";
  facts.policy = "second-chance";
  facts.process_id = facts.started_ns = 1;
  facts.local_bytes = kPages / 10 * 4096;
  facts.source = StackSource::kernel_unwound;
  writer->process(facts);
  Module code = own_code();
  writer->module(code);
  std::mt19937_64 random(1);
  Summary summary;
  for (std::uint64_t i = 0; i < samples; ++i) {
    FaultRecord fault{.time_ns = i * kFaultEveryNs, .page = kFirstPage + random() % kPages, .thread_id = 1 + i % 4};
    fault.write = i % 8 == 0;
    fault.kind = fault.write ? hinterland::FaultKind::write : hinterland::FaultKind::read;
    writer->fault(fault);
    // Each once, and then some more often than others.
    std::uint64_t stack = i < stacks ? i : random() % (1 + random() % stacks);
    writer->sample({fault, fault.page << 12, writer->stack(stack_of(stack, code)), 1, 8000});
    if (i % 4096 == 4095) writer->flush();
    summary.ended_ns = fault.time_ns;
  }
  summary.faults = summary.samples = samples;
  summary.complete = 1;
  writer->summary(summary);
  return writer->flush() == 0 ? 0 : 1;
}
