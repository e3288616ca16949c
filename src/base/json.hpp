// A JSON document as a tree of values. It stands between the project and the library that reads and writes JSON,
// whose header takes a compiler six to ten seconds: json.cpp alone includes that.
//
//     Json report{{"schema_version", 1}, {"programs", Json::array()}};
//     report["programs"].push_back(Json{{"pid", pid}, {"name", name}});
//     std::puts(report.dump(2).c_str());
//
// Any thread may use a tree of its own. Memory: 40 bytes a value, and what strings and lists need.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hinterland {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in the order in which the members came

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(const char* text);
  Json(std::string_view text);
  Json(const std::string& text);
  Json(std::string&& text);
  template <std::signed_integral T>
  Json(T value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Json(T value) : value_(static_cast<std::uint64_t>(value)) {}
  template <std::floating_point T>
  Json(T value) : value_(static_cast<double>(value)) {}
  template <typename T>
  Json(const std::vector<T>& values) : value_(Array(values.begin(), values.end())) {}
  template <typename T, std::size_t N>
  Json(const std::array<T, N>& values) : value_(Array(values.begin(), values.end())) {}
  // Not inline: documents are written as nested lists, and a compiler would repeat these for every element of them.
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  // An object if each value is a pair of a text and something else, {{"name", value}, ...}; else an array.
  Json(std::initializer_list<Json> values);

  static Json array();
  static Json array(std::initializer_list<Json> values);
  static Json object();
  // Null is returned, and `well_formed` false, for a text that is not JSON.
  static Json parse(std::string_view text, bool* well_formed);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Of an array, or of an object; 0 of all else.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  // The elements of an array. Of anything else there are none.
  const Array& elements() const;
  Array::const_iterator begin() const { return elements().begin(); }
  Array::const_iterator end() const { return elements().end(); }
  // Adds to an array; null becomes one.
  void push_back(Json value);

  // The member of an object; null becomes an object, and a name that it has not is added with null.
  Json& operator[](std::string_view name);
  // The member of an object, or nullptr.
  const Json* find(std::string_view name) const;
  // Adds the members of another object. Those of the same name are replaced.
  void update(const Json& members);

  // The text of a string; empty for anything else.
  const std::string& text() const;
  // A number as a whole number, and as any; 0 for anything else.
  std::int64_t whole() const;
  double number() const;

  // As text; `indent` spaces a level, or all in one line. Bytes that are not UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;

  friend bool operator==(const Json& a, const Json& b);

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;

  friend class JsonWriter;
};

}  // namespace hinterland
