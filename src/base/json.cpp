#include "base/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hinterland {
namespace {

using Parsed = nlohmann::ordered_json;

Json tree_of(const Parsed& parsed) {
  switch (parsed.type()) {
    case Parsed::value_t::object: {
      Json object = Json::object();
      for (const auto& [name, value] : parsed.items()) object[name] = tree_of(value);
      return object;
    }
    case Parsed::value_t::array: {
      Json array = Json::array();
      for (const Parsed& value : parsed) array.push_back(tree_of(value));
      return array;
    }
    case Parsed::value_t::string:
      return parsed.get_ref<const std::string&>();
    case Parsed::value_t::boolean:
      return parsed.get<bool>();
    case Parsed::value_t::number_integer:
      return parsed.get<std::int64_t>();
    case Parsed::value_t::number_unsigned:
      return parsed.get<std::uint64_t>();
    case Parsed::value_t::number_float:
      return parsed.get<double>();
    default:
      return nullptr;
  }
}

}  // namespace

// Writes brackets, commas and line ends; each text and number is written by the library. So a large document is not
// in memory a second time as the library's tree.
class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  void write(const Json& json) {
    if (const auto* array = std::get_if<Json::Array>(&json.value_)) {
      between('[', ']', *array, [this](const Json& value) { write(value); });
    } else if (const auto* object = std::get_if<Json::Object>(&json.value_)) {
      between('{', '}', *object, [this](const Json::Member& member) {
        write_scalar(member.first);
        out += indent_ >= 0 ? ": " : ":";
        write(member.second);
      });
    } else {
      std::visit([this](const auto& value) { write_leaf(value); }, json.value_);
    }
  }

  std::string out;

 private:
  template <typename Items, typename Each>
  void between(char open, char close, const Items& items, Each&& each) {
    out += open;
    if (!items.empty()) {
      ++depth_;
      for (const auto& item : items) {
        if (&item != &items.front()) out += ',';
        break_line();
        each(item);
      }
      --depth_;
      break_line();
    }
    out += close;
  }

  void break_line() {
    if (indent_ < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent_ * depth_), ' ');
  }

  template <typename T>
  void write_scalar(const T& value) {
    out += Parsed(value).dump(-1, ' ', false, Parsed::error_handler_t::replace);
  }
  template <typename T>
  void write_leaf(const T& value) {
    write_scalar(value);
  }
  void write_leaf(std::monostate) { out += "null"; }
  void write_leaf(const Json::Array&) {}   // written above
  void write_leaf(const Json::Object&) {}  // written above

  int indent_;
  int depth_ = 0;
};

Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(const std::string& text) : value_(text) {}
Json::Json(std::string&& text) : value_(std::move(text)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array() { return array({}); }

Json Json::array(std::initializer_list<Json> values) {
  Json json;
  json.value_ = Array(values);
  return json;
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

// Whole numbers are equal if their values are: a literal is signed, and what is counted is not.
bool operator==(const Json& a, const Json& b) {
  const auto *a_signed = std::get_if<std::int64_t>(&a.value_), *b_signed = std::get_if<std::int64_t>(&b.value_);
  const auto *a_count = std::get_if<std::uint64_t>(&a.value_), *b_count = std::get_if<std::uint64_t>(&b.value_);
  if (a_signed != nullptr && b_count != nullptr) return std::cmp_equal(*a_signed, *b_count);
  if (a_count != nullptr && b_signed != nullptr) return std::cmp_equal(*a_count, *b_signed);
  return a.value_ == b.value_;
}

Json::Json(std::initializer_list<Json> values) {
  bool members = std::all_of(values.begin(), values.end(), [](const Json& value) {
    return value.is_array() && value.size() == 2 && value.elements().front().is_string();
  });
  if (!members) {
    value_ = Array(values);
    return;
  }
  value_ = Object();
  for (const Json& value : values) (*this)[value.elements()[0].text()] = value.elements()[1];
}

Json Json::parse(std::string_view text, bool* well_formed) {
  Parsed parsed = Parsed::parse(text, nullptr, /*allow_exceptions=*/false);
  *well_formed = !parsed.is_discarded();
  return *well_formed ? tree_of(parsed) : Json();
}

std::size_t Json::size() const {
  if (const auto* object = std::get_if<Object>(&value_)) return object->size();
  return elements().size();
}

const Json::Array& Json::elements() const {
  static const Array kNone;
  const auto* array = std::get_if<Array>(&value_);
  return array != nullptr ? *array : kNone;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array();
  std::get<Array>(value_).push_back(std::move(value));
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_ = Object();
  auto& members = std::get<Object>(value_);
  for (auto& [known, value] : members)
    if (known == name) return value;
  return members.emplace_back(std::string(name), Json()).second;
}

const Json* Json::find(std::string_view name) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  auto found = std::find_if(members->begin(), members->end(), [&](const Member& each) { return each.first == name; });
  return found != members->end() ? &found->second : nullptr;
}

void Json::update(const Json& members) {
  if (const auto* others = std::get_if<Object>(&members.value_))
    for (const auto& [name, value] : *others) (*this)[name] = value;
}

const std::string& Json::text() const {
  static const std::string kNone;
  const auto* text = std::get_if<std::string>(&value_);
  return text != nullptr ? *text : kNone;
}

std::int64_t Json::whole() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<std::int64_t>(*value);
  if (const auto* value = std::get_if<double>(&value_)) return static_cast<std::int64_t>(*value);
  return 0;
}

double Json::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return static_cast<double>(whole());
}

std::string Json::dump(int indent) const {
  JsonWriter writer(indent);
  writer.write(*this);
  return std::move(writer.out);
}

}  // namespace hinterland
