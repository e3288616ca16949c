// Programs one a line, with rates since the last look: `stat` and `top`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cli/figures.hpp"
#include "cli/running.hpp"

namespace hinterland::cli {

// What a program had counted at the last look, for rates and for the latencies since then.
struct LastLook {
  std::uint64_t at_ns = 0;
  Figures figures;
};
using LastLooks = std::map<pid_t, std::unique_ptr<LastLook>>;

void note(LastLooks& looks, const StatPage& page, std::uint64_t at_ns);
const LastLook* last_of(const LastLooks& looks, pid_t pid);  // nullptr when there was none

// Of the latencies in `now`, those since the last look stay.
void keep_new(Figures& now, const LastLook* last);
// A second, since then.
double rate(const LastLook& last, const Figures& now, Counter counter, std::uint64_t at_ns);

// On stdout. Without `rates` all that was counted since the program's start. What is seen now becomes the last look.
void print_table(const std::vector<StatView>& views, LastLooks& looks, bool rates);

// Between looks.
void pause_for(std::uint64_t ns);

}  // namespace hinterland::cli
