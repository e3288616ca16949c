#include "advice/patch.hpp"

#include <algorithm>

namespace hinterland::trace {
namespace {

constexpr std::size_t kContext = 3;

std::vector<Insertion> in_order(std::vector<Insertion> insertions) {
  // What ends later began around what ends sooner; what began later is inside of what began sooner.
  std::stable_sort(insertions.begin(), insertions.end(), [](const Insertion& a, const Insertion& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.other_end > b.other_end;
  });
  return insertions;
}

// One line of the old text, and what becomes of it: lines before it, and itself.
struct Line {
  std::string old_text, new_text;  // with their ends
  bool changed() const { return old_text != new_text; }
};

std::vector<Line> lines_of(const SourceText& before, const std::vector<Insertion>& insertions) {
  std::vector<Line> lines;
  auto next = insertions.begin();
  for (int number = 1; number <= before.lines(); ++number) {
    std::size_t start = before.line_start(number);
    std::size_t end = number < before.lines() ? before.line_start(number + 1) : before.text().size();
    Line line;
    line.old_text = before.text().substr(start, end - start);
    std::size_t taken = start;
    bool last = number == before.lines();
    for (; next != insertions.end() && (next->offset < end || (last && next->offset == end)); ++next) {
      if (next->offset > taken) line.new_text += before.text().substr(taken, next->offset - taken);
      line.new_text += next->text;
      taken = std::max(taken, next->offset + next->removes);
    }
    if (taken < end) line.new_text += before.text().substr(taken, end - taken);
    lines.push_back(std::move(line));
  }
  return lines;
}

// "+" before each line of the text; the last may have no end.
std::string marked(char mark, const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    out += mark + text.substr(at, end - at);
    if (out.back() != '\n') out += "\n\\ No newline at end of file\n";
    at = end;
  }
  return out;
}

int line_count(const std::string& text) {
  auto ends = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  return ends + (!text.empty() && text.back() != '\n' ? 1 : 0);
}

// Of a line that grew: whole lines put before or behind it stay apart from it.
std::string change_text(const Line& line) {
  const std::string &old_text = line.old_text, &new_text = line.new_text;
  bool before = new_text.ends_with(old_text) &&
                (new_text.size() == old_text.size() || new_text[new_text.size() - old_text.size() - 1] == '\n');
  if (before) return marked('+', new_text.substr(0, new_text.size() - old_text.size())) + marked(' ', old_text);
  return marked('-', old_text) + marked('+', new_text);
}

std::string hunk(const std::vector<Line>& lines, std::size_t first, std::size_t end, int* shift) {
  std::string body;
  int old_count = 0, new_count = 0;
  for (std::size_t i = first; i < end; ++i) {
    body += lines[i].changed() ? change_text(lines[i]) : marked(' ', lines[i].old_text);
    old_count += line_count(lines[i].old_text);
    new_count += line_count(lines[i].new_text);
  }
  int old_start = old_count > 0 ? static_cast<int>(first) + 1 : static_cast<int>(first);
  std::string head = "@@ -" + std::to_string(old_start) + "," + std::to_string(old_count) + " +" +
                     std::to_string(static_cast<int>(first) + 1 + *shift) + "," + std::to_string(new_count) + " @@\n";
  *shift += new_count - old_count;
  return head + body;
}

}  // namespace

std::string with_insertions(const SourceText& source, std::vector<Insertion> insertions) {
  std::string out;
  std::size_t taken = 0;
  for (const Insertion& each : in_order(std::move(insertions))) {
    if (each.offset > taken) out += source.text().substr(taken, each.offset - taken);
    out += each.text;
    taken = std::max(taken, each.offset + each.removes);
  }
  return out += source.text().substr(std::min(taken, source.text().size()));
}

std::string unified_diff(const std::string& name, const SourceText& before,
                         const std::vector<Insertion>& insertions) {
  std::vector<Line> lines = lines_of(before, in_order(insertions));
  std::string text;
  int shift = 0;
  for (std::size_t i = 0; i < lines.size();) {
    if (!lines[i].changed()) {
      ++i;
      continue;
    }
    std::size_t first = i > kContext ? i - kContext : 0, last = i;
    // As long as the next change is near, it belongs to the same hunk.
    for (std::size_t j = i + 1; j < lines.size() && j <= last + 2 * kContext; ++j)
      if (lines[j].changed()) last = j;
    std::size_t end = std::min(last + kContext + 1, lines.size());
    text += hunk(lines, first, end, &shift);
    i = end;
  }
  return text.empty() ? "" : "--- a/" + name + "\n+++ b/" + name + "\n" + text;
}

}  // namespace hinterland::trace
