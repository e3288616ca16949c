#include "base/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace hinterland {
namespace {

char lower(char letter) { return static_cast<char>(std::tolower(static_cast<unsigned char>(letter))); }

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Three rows of the usual table: the last two are needed for swaps.
  std::vector<std::size_t> before(right.size() + 1), above(right.size() + 1), row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      bool same = lower(left[i - 1]) == lower(right[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(left[i - 1]) == lower(right[j - 2]) && lower(left[i - 2]) == lower(right[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[right.size()];
}

std::string_view nearest_name(std::string_view given, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t best_distance = SIZE_MAX;
  for (std::string_view name : names) {
    std::size_t distance = edit_distance(given, name);
    std::size_t longer = std::max(given.size(), name.size());
    std::size_t limit = longer < 2 ? 0 : std::max<std::size_t>(1, longer / 3);
    if (distance > limit || distance >= best_distance) continue;
    best = name;
    best_distance = distance;
  }
  return best;
}

std::string suggestion(std::string_view given, std::span<const std::string_view> names) {
  std::string_view near = nearest_name(given, names);
  if (!near.empty()) return "did you mean '" + std::string(near) + "'?";
  std::string text = names.size() == 1 ? "the only valid one is " : "valid are ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += ", ";
    text += names[i];
  }
  return text;
}

}  // namespace hinterland
