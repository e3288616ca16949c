#include "trace/exports.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.hpp"
#include "trace/bytes.hpp"

namespace hinterland::trace {

std::vector<const Frame*> frames_of(const Stack& stack, Symbols& symbols) {
  std::vector<const Frame*> frames;
  for (std::uint64_t address : stack.addresses)
    for (const Frame& frame : symbols.frames_at(address)) frames.push_back(&frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::string folded_text(const TraceFile& trace, const Profile& profile, Symbols& symbols) {
  std::map<std::string, double> lines;
  for (const CallStack& stack : profile.stacks) {
    std::string names;
    for (const Frame* frame : frames_of(trace.stacks[stack.stack], symbols)) {
      std::string name = frame->function;
      std::replace(name.begin(), name.end(), ';', ':');
      names += name + ";";
    }
    for (std::size_t kind = 0; kind < kFaultKinds; ++kind)
      if (stack.faults[kind] > 0) lines[names + "[" + kFaultKindNames[kind] + "]"] += stack.faults[kind];
  }
  std::string text;
  for (const auto& [names, faults] : lines) text += names + " " + std::to_string(std::llround(faults)) + "\n";
  return text;
}

std::string speedscope_json(const TraceFile& trace, const Profile& profile, Symbols& symbols) {
  Json frames = Json::array(), samples = Json::array(), weights = Json::array();
  std::map<std::string, std::size_t> known;
  for (const CallStack& stack : profile.stacks) {
    Json indexes = Json::array();
    for (const Frame* frame : frames_of(trace.stacks[stack.stack], symbols)) {
      auto [at, fresh] =
          known.try_emplace(frame->function + "\n" + frame->file + "\n" + std::to_string(frame->line), known.size());
      if (fresh) {
        Json one = {{"name", frame->function}};
        if (!frame->file.empty()) one["file"] = frame->file;
        if (frame->line > 0) one["line"] = frame->line;
        frames.push_back(std::move(one));
      }
      indexes.push_back(at->second);
    }
    samples.push_back(std::move(indexes));
    weights.push_back(std::llround(stack.all));
  }
  long long total = 0;
  for (const Json& weight : weights) total += weight.whole();
  Json sampled = {{"type", "sampled"},
                  {"name", "faults of " + trace.process.program},
                  {"unit", "none"},
                  {"startValue", 0},
                  {"endValue", total}};
  sampled["samples"] = std::move(samples);
  sampled["weights"] = std::move(weights);
  Json file = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
               {"exporter", "hinterland " HINTERLAND_VERSION}};
  file["shared"]["frames"] = std::move(frames);
  file["profiles"].push_back(std::move(sampled));
  return file.dump() + "\n";
}

namespace {

// Fields of a protocol buffer.
class Message {
 public:
  void number(unsigned field, std::uint64_t value) {
    bytes_.number(field << 3);
    bytes_.number(value);
  }
  void bytes(unsigned field, std::string_view value) {
    bytes_.number(field << 3 | 2);
    bytes_.text(value);
  }
  std::string_view view() const { return bytes_.view(); }

 private:
  ByteWriter bytes_;
};

class Strings {
 public:
  std::uint64_t of(const std::string& text) {
    auto [at, fresh] = index_.try_emplace(text, texts.size());
    if (fresh) texts.push_back(text);
    return at->second;
  }
  std::vector<std::string> texts{""};

 private:
  std::map<std::string, std::uint64_t> index_{{"", 0}};
};

}  // namespace

// Numbers are the fields' of github.com/google/pprof/proto/profile.proto.
std::string pprof_bytes(const TraceFile& trace, const Profile& profile, Symbols& symbols) {
  Message file;
  Strings strings;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> functions;  // by name and file
  std::map<std::uint64_t, std::uint64_t> locations;                            // by address
  Message type;
  type.number(1, strings.of("faults"));
  type.number(2, strings.of("count"));
  file.bytes(1, type.view());
  for (const CallStack& stack : profile.stacks) {
    Message sample;
    for (std::uint64_t address : trace.stacks[stack.stack].addresses) {
      auto [location, fresh] = locations.try_emplace(address, locations.size() + 1);
      sample.number(1, location->second);
      if (!fresh) continue;
      Message place;
      place.number(1, location->second);
      place.number(3, address);
      for (const Frame& frame : symbols.frames_at(address)) {
        std::uint64_t name = strings.of(frame.function), source = strings.of(frame.file);
        auto [function, unseen] = functions.try_emplace({name, source}, functions.size() + 1);
        if (unseen) {
          Message entry;
          entry.number(1, function->second);
          entry.number(2, name);
          entry.number(3, name);
          entry.number(4, source);
          file.bytes(5, entry.view());
        }
        Message line;
        line.number(1, function->second);
        line.number(2, static_cast<std::uint64_t>(frame.line));
        place.bytes(4, line.view());
      }
      file.bytes(4, place.view());
    }
    sample.number(2, static_cast<std::uint64_t>(std::llround(stack.all)));
    file.bytes(2, sample.view());
  }
  for (const std::string& text : strings.texts) file.bytes(6, text);
  file.number(9, trace.process.wall_time_s * 1'000'000'000);
  file.number(10, trace.summary.ended_ns);
  return std::string(file.view());
}

}  // namespace hinterland::trace
