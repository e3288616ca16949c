// A profile in the formats of others' viewers. All give the whole text or bytes of the file.
#pragma once

#include <string>

#include "trace/profile.hpp"

namespace hinterland::trace {

// "main;visit;memcpy;[read] 120", one stack a line, outermost first: for flame graph tools.
std::string folded_text(const TraceFile& trace, const Profile& profile, Symbols& symbols);
// https://www.speedscope.app/file-format-schema.json
std::string speedscope_json(const TraceFile& trace, const Profile& profile, Symbols& symbols);
// A pprof profile (profile.proto), not compressed.
std::string pprof_bytes(const TraceFile& trace, const Profile& profile, Symbols& symbols);

// The frames of a stack, outermost first, inlined ones included.
std::vector<const Frame*> frames_of(const Stack& stack, Symbols& symbols);

}  // namespace hinterland::trace
