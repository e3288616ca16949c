// What a trace says: the program's places, ranked by their share of faults.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "trace/symbols.hpp"
#include "trace/trace_file.hpp"

namespace hinterland::trace {

inline constexpr std::size_t kFaultKinds = 8;
extern const std::array<const char*, kFaultKinds> kFaultKindNames;  // "first touch", "read", ...

enum class GroupBy : std::uint8_t { line, function, thread, allocation };

// A place in the program (or a thread), with the faults that the samples there stand for.
struct Site {
  std::string function, file;
  int line = 0;  // 0: the function as a whole
  std::string module;
  std::array<double, kFaultKinds> faults{};
  double all = 0;
  std::uint64_t samples = 0;
  double latency_ns = 0;              // mean, of samples that know it
  std::map<std::string, double> via;  // library functions that faulted for it
  std::string name() const;           // "bfs.cpp:120 visit"
};

// One stack as names, with what happened there.
struct CallStack {
  std::uint64_t stack = 0;  // index in the trace
  std::uint64_t thread_id = 0;
  std::array<double, kFaultKinds> faults{};
  double all = 0;
};

struct Profile {
  std::array<std::uint64_t, kFaultKinds> faults{};  // of the whole trace, counted
  std::uint64_t faults_all = 0;
  double sampled_faults = 0;  // that the kernel said the samples stand for; they are weighed anew for the sites
  double whole_stacks = 0;    // share of samples that reach the thread's first function, 0..1
  std::vector<Site> sites;    // most faults first
  std::vector<CallStack> stacks;
  std::vector<std::string> remarks;
  double attributed = 1,
         attributed_exactly = 1;  // shares of the faults that the sites have; see allocation_profile.hpp
  double tracing_cost = 0;        // share of the time traced, estimated, 0..1

  // How many sites, from the first, have that share of the faults.
  std::size_t sites_covering(double share) const;
};

// The frame that faults of a stack belong to: the innermost that is not in a library, and has a line if any has.
struct Place {
  const Frame* frame = nullptr;
  std::string via;            // the library function that the program called there; "" when it faulted itself
  std::uint64_t address = 0;  // of the code
};
Place place_of(const Stack& stack, Symbols& symbols);

Profile make_profile(const TraceFile& trace, Symbols& symbols, GroupBy group);

}  // namespace hinterland::trace
