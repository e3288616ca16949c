// Sources of anybody's making, most of them no C: read to the end, and what is found can be written down.
#include <string>

#include "advice/hint_text.hpp"
#include "advice/patch.hpp"
#include "base/check.hpp"

using namespace hinterland;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trace::SourceText source(std::string(reinterpret_cast<const char*>(data), size));
  for (int line = 1; line <= source.lines(); ++line) {
    for (const trace::Access& access : trace::accesses_on(source, line)) {
      trace::PlacedHint placed = trace::place_hint(source, trace::Dialect::c, {}, access, false);
      std::size_t more = 0;
      for (const trace::Insertion& each : placed.insertions) {
        HL_CHECK(each.offset <= size);
        more += each.text.size();
      }
      HL_CHECK(trace::with_insertions(source, placed.insertions).size() == size + more);
      trace::unified_diff("file", source, placed.insertions);
      auto loop = trace::counting_loop_around(source, access.first);
      if (!loop || !trace::hoisted(source, *loop, access)) continue;
      trace::has_fixed_length(*loop);
      trace::PlacedHint pieces = trace::place_in_pieces(source, trace::Dialect::cxx20, {}, *loop, access);
      trace::with_insertions(source, pieces.insertions);
    }
    auto names = [](std::string_view name) { return static_cast<trace::NameKind>(name.size() % 3); };
    for (const trace::Access& access : trace::accesses_on(source, line, names)) {
      trace::place_hint(source, trace::Dialect::cxx20, {}, access, true);
      trace::loads_of(source, line, access);
    }
    for (int column : {0, 1, 9}) trace::choose_access(source, line, column, line % 2 == 0);
  }
  trace::include_header(source, trace::Dialect::cxx20, source.lines());
  return 0;
}
