#include "cli/config_file.hpp"

#include <toml++/toml.h>

#include <cstring>
#include <vector>

#include "base/options.hpp"
#include "base/plain_file.hpp"
#include "base/suggest.hpp"

namespace hinterland::cli {
namespace {

const Option* option_of_key(std::string_view key) {
  for (const Option& row : all_options())
    if (key == row.name && row.elsewhere == Elsewhere::variable_and_file) return &row;
  return nullptr;
}

std::unexpected<Error> unknown_key(const std::string& source, std::string_view key) {
  std::vector<std::string_view> names;
  for (const Option& row : all_options())
    if (row.elsewhere == Elsewhere::variable_and_file) names.push_back(row.name);
  std::string name(key);
  Error error = Error::make(0, "%s: there is no option '%s' for a configuration file", source.c_str(), name.c_str());
  return std::unexpected(error.remedy("%s", suggestion(key, names).c_str()));
}

// A list of texts stands for the same with commas: without = ["move", "poison"].
Result<std::string> list_text(const toml::array& list, const std::string& source) {
  std::string text;
  for (const toml::node& entry : list) {
    auto item = entry.value_exact<std::string>();
    if (!item) {
      Error error = Error::make(0, "%s: the list may only hold texts", source.c_str());
      return std::unexpected(error.remedy("write for example without = [\"move\", \"poison\"]"));
    }
    text += (text.empty() ? "" : ",") + *item;
  }
  return text;
}

Result<std::string> value_text(const Option& row, const toml::node& node, const std::string& source) {
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  if (auto truth = node.value_exact<bool>(); truth && (row.type == OptionType::flag || row.type == OptionType::level))
    return *truth ? "1" : "0";
  if (const toml::array* list = node.as_array(); list != nullptr && row.type == OptionType::choices)
    return list_text(*list, source);
  Error error = Error::make(0, "%s: the value is of the wrong kind", source.c_str());
  if (row.type == OptionType::flag) return std::unexpected(error.remedy("write %s = true", row.name));
  return std::unexpected(error.remedy("write %s = \"%s\"", row.name, row.placeholder));
}

constexpr std::uint64_t kBytesMax = 1 << 20;

Result<std::string> file_text(const std::string& path) {
  Result<std::string> text = read_plain_file(path, "--config:", kBytesMax);
  if (text || text.error().next_step()[0] != '\0') return text;
  return std::unexpected(text.error().remedy("check the path and its permissions, or leave --config out"));
}

}  // namespace

Result<std::map<std::string, ConfigValue>> read_config_file(const std::string& path) {
  Result<std::string> text = file_text(path);
  if (!text) return std::unexpected(text.error());
  std::map<std::string, ConfigValue> values;
  try {
    toml::table table = toml::parse(*text, path);
    for (auto&& [key, node] : table) {
      std::string source = path + ", line " + std::to_string(node.source().begin.line);
      const Option* row = option_of_key(key.str());
      if (row == nullptr) return unknown_key(source, key.str());
      source += std::string(": ") + row->name;
      Result<std::string> value = value_text(*row, node, source);
      if (!value) return std::unexpected(value.error());
      values[row->name] = {*value, source};
    }
  } catch (const toml::parse_error& problem) {
    std::string what(problem.description());
    Error error = Error::make(0, "%s, line %u, column %u: %s", path.c_str(), problem.source().begin.line,
                              problem.source().begin.column, what.c_str());
    return std::unexpected(error.remedy("write one option a line, for example: local = \"512M\""));
  }
  return values;
}

}  // namespace hinterland::cli
