// Finds the expressions that touch memory: a reader of operands, which knows as much of C and C++ as that takes.
#include <algorithm>
#include <tuple>

#include "advice/access.hpp"
#include "advice/words.hpp"

namespace hinterland::trace {
namespace {

constexpr std::size_t kTypeTokensMax = 40;  // in <...> and (casts)

constexpr std::string_view kBeforeExpression[] = {"return",   "else", "do",  "case",   "throw",
                                                  "goto",     "and",  "or",  "not",    "co_return",
                                                  "co_yield", "in",   "new", "delete", "co_await"};
constexpr std::string_view kNoOperand[] = {
    "if",       "while",     "for",      "switch",    "return",        "else",
    "do",       "case",      "throw",    "goto",      "sizeof",        "and",
    "or",       "not",       "alignof",  "break",     "continue",      "default",
    "new",      "delete",    "using",    "decltype",  "typeof",        "__typeof__",
    "_Alignof", "alignas",   "offsetof", "struct",    "class",         "enum",
    "union",    "const",     "template", "typename",  "static_assert", "_Static_assert",
    "catch",    "constexpr", "noexcept", "co_return", "co_yield",      "co_await",
    "operator", "requires"};
constexpr std::string_view kCasts[] = {"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"};
constexpr std::string_view kUnevaluated[] = {"sizeof",   "alignof",  "decltype", "typeof", "__typeof__",
                                             "_Alignof", "offsetof", "noexcept", "typeid"};

// memcpy() and its kin: which arguments are touched, and which says how much. -1: none.
struct MemoryFunction {
  std::string_view name;
  int reads, also_reads, writes, size, times;
};
constexpr MemoryFunction kMemoryFunctions[] = {
    {"memcpy", 1, -1, 0, 2, -1},   {"memmove", 1, -1, 0, 2, -1},  {"mempcpy", 1, -1, 0, 2, -1},
    {"memset", -1, -1, 0, 2, -1},  {"memcmp", 0, 1, -1, 2, -1},   {"bcmp", 0, 1, -1, 2, -1},
    {"memchr", 0, -1, -1, 2, -1},  {"strlen", 0, -1, -1, -1, -1}, {"strcmp", 0, 1, -1, -1, -1},
    {"strncmp", 0, 1, -1, -1, -1}, {"strchr", 0, -1, -1, -1, -1}, {"strcpy", 1, -1, 0, -1, -1},
    {"strncpy", 1, -1, 0, -1, -1}, {"read", -1, -1, 1, 2, -1},    {"pread", -1, -1, 1, 2, -1},
    {"recv", -1, -1, 1, 2, -1},    {"write", 1, -1, -1, 2, -1},   {"pwrite", 1, -1, -1, 2, -1},
    {"send", 1, -1, -1, 2, -1},    {"fread", -1, -1, 0, 1, 2},    {"fwrite", 0, -1, -1, 1, 2},
};

// System calls that are given a struct iovec[]: which argument, and which says how many; -1: it is a struct msghdr*.
struct VectorFunction {
  std::string_view name;
  int vector, count;
  bool writes;
};
constexpr VectorFunction kVectorFunctions[] = {
    {"sendmsg", 1, -1, false}, {"recvmsg", 1, -1, true}, {"writev", 1, 2, false},
    {"readv", 1, 2, true},     {"pwritev", 1, 2, false}, {"preadv", 1, 2, true},
};

// Of the standard library, on [begin, end): which of their arguments is what; `to` is written, and as long. -1: none.
struct RangeFunction {
  std::string_view name;
  int end, count, to;
  bool writes;
};
constexpr RangeFunction kRangeFunctions[] = {
    {"sort", 1, -1, -1, true},         {"stable_sort", 1, -1, -1, true},  {"nth_element", 2, -1, -1, true},
    {"partition", 1, -1, -1, true},    {"make_heap", 1, -1, -1, true},    {"fill", 1, -1, -1, true},
    {"iota", 1, -1, -1, true},         {"fill_n", -1, 1, -1, true},       {"reverse", 1, -1, -1, true},
    {"accumulate", 1, -1, -1, false},  {"reduce", 1, -1, -1, false},      {"minmax_element", 1, -1, -1, false},
    {"min_element", 1, -1, -1, false}, {"max_element", 1, -1, -1, false}, {"count_if", 1, -1, -1, false},
    {"copy", 1, -1, 2, false},         {"copy_n", -1, 1, 2, false},       {"transform", 1, -1, 2, false},
};
const RangeFunction* range_function(std::string_view name) {
  for (const RangeFunction& each : kRangeFunctions)
    if (each.name == name) return &each;
  return nullptr;
}

const MemoryFunction* memory_function(std::string_view name) {
  if (name.starts_with("__builtin_")) name.remove_prefix(10);
  for (const MemoryFunction& each : kMemoryFunctions)
    if (each.name == name) return &each;
  return nullptr;
}

class Finder {
 public:
  Finder(const SourceText& source, std::size_t begin, std::size_t end, const KindOfName& names)
      : source_(source), begin_(begin), end_(end), names_(names) {}

  std::vector<Access> run() {
    for (std::size_t i = begin_; i < end_; ++i) {
      if (is_evaluated(i)) look_at(i);
    }
    for (Access& each : found_) settle(each);
    return std::move(found_);
  }

 private:
  const Token& at(std::size_t i) const { return source_.tokens()[i]; }
  bool is(std::size_t i, std::string_view text) const { return source_.is(i, text); }
  bool is_word(std::size_t i) const { return i < source_.tokens().size() && at(i).kind == TokenKind::word; }

  // Not in sizeof(...).
  bool is_evaluated(std::size_t i) const {
    for (std::size_t open = source_.around(i); open != SourceText::kNone && open >= begin_;
         open = source_.around(open))
      if (is(open, "(") && open > 0 && one_of(source_.word(open - 1), kUnevaluated)) return false;
    return true;
  }

  void look_at(std::size_t i) {
    if (is(i, "*") && is_unary(i)) return star(i);
    bool method = i > 0 && (is(i - 1, ".") || is(i - 1, "->"));
    if (is_word(i) && is(i + 1, "(") && memory_function(source_.word(i)) != nullptr) arguments(i);
    if (is_word(i) && is(i + 1, "(")) vector_argument(i);
    if (is_word(i) && is(i + 1, "(") && !method && range_function(source_.word(i)) != nullptr) range_arguments(i);
    if (begins_operand(i)) chain(i, true);
  }

  // `*` and `&`: with an operand before them they multiply, or declare.
  bool is_unary(std::size_t i) const {
    if (i == 0) return false;
    if (at(i - 1).kind == TokenKind::number || at(i - 1).kind == TokenKind::text) return false;
    if (is_word(i - 1)) return one_of(source_.word(i - 1), kBeforeExpression);
    if (is(i - 1, ")")) {
      std::size_t open = source_.partner(i - 1);
      return open != SourceText::kNone && (is_control(open) || is_cast(open));
    }
    return !is(i - 1, "]") && !is(i - 1, "++") && !is(i - 1, "--");
  }
  bool is_control(std::size_t open) const {
    static constexpr std::string_view kControls[] = {"if", "while", "for", "switch", "constexpr"};
    return open > 0 && one_of(source_.word(open - 1), kControls);
  }

  // (T*)p, (unsigned long)x: brackets with nothing but a type, and an operand behind them.
  bool is_cast(std::size_t open) const {
    std::size_t close = source_.partner(open);
    if (close == SourceText::kNone || close == open + 1 || close - open > kTypeTokensMax) return false;
    if (open > 0 && is_word(open - 1) && !one_of(source_.word(open - 1), kBeforeExpression)) return false;
    for (std::size_t i = open + 1; i < close; ++i)
      if (!is_word(i) && !is(i, "*") && !is(i, "&") && !is(i, "::") && !is(i, "<") && !is(i, ">") && !is(i, ","))
        return false;
    if (is(close - 1, "*") || is(close - 1, "&")) return true;
    bool operand = is_word(close + 1) || is(close + 1, "(") ||
                   (close + 1 < source_.tokens().size() && at(close + 1).kind != TokenKind::sign);
    return operand && !one_of(source_.word(close + 1), kNoOperand);
  }

  bool begins_operand(std::size_t i) const {
    if (i > 0 && (is(i - 1, ".") || is(i - 1, "->") || is(i - 1, "::"))) return false;
    if (is(i, "(")) {
      if (is_cast(i) || source_.partner(i) == SourceText::kNone) return false;
      if (i == 0) return true;
      bool call = (is_word(i - 1) && !one_of(source_.word(i - 1), kBeforeExpression)) || is(i - 1, ")") ||
                  is(i - 1, "]") || is(i - 1, ">");
      return !call;
    }
    if (!is_word(i) || one_of(source_.word(i), kNoOperand)) return false;
    // A name behind a name is declared: no access.
    return i == 0 || !is_word(i - 1) || one_of(source_.word(i - 1), kBeforeExpression);
  }

  // Behind <...> from `open` on, when it is one of a type or a function: SourceText::kNone otherwise.
  std::size_t behind_template(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < open + kTypeTokensMax && i < source_.tokens().size(); ++i) {
      if (is(i, "<")) ++depth;
      if (is(i, ">")) --depth;
      if (is(i, ">>")) depth -= 2;
      if (depth <= 0) return i + 1;
      bool fits = is_word(i) || is(i, "<") || is(i, ">") || is(i, "::") || is(i, ",") || is(i, "*") || is(i, "&") ||
                  at(i).kind == TokenKind::number || is(i, "(") || is(i, ")");
      if (!fits) return SourceText::kNone;
    }
    return SourceText::kNone;
  }

  // The last token of the operand's first part: a name, a bracket, a cast.
  std::size_t primary(std::size_t i) const {
    if (is(i, "(")) return source_.partner(i);
    std::size_t last = i;
    for (;;) {
      if (is(last + 1, "<")) {
        std::size_t behind = behind_template(last + 1);
        if (behind == SourceText::kNone || (!is(behind, "(") && !is(behind, "::"))) return last;
        last = behind - 1;
      }
      if (!is(last + 1, "::") || !is_word(last + 2)) return last;
      last += 2;
    }
  }

  // a.b->c[d](e): records what touches memory, and returns the last token.
  std::size_t chain(std::size_t first, bool record) {
    std::size_t last = primary(first);
    std::size_t open_access = SourceText::kNone;  // of found_: grows by members
    NameKind kind = record && names_ && last == first && is_word(first) && !is(first + 1, "(") &&
                            !is(first + 1, "[") && !is(first + 1, "->")
                        ? names_(source_.word(first))
                        : NameKind::other;
    bool alone =
        first > 0 && (is(first - 1, "(") || is(first - 1, ",")) && (is(first + 1, ")") || is(first + 1, ","));
    std::size_t open = source_.around(first);
    bool cast = open != SourceText::kNone && open > 0 && is(open, "(") && is(open - 1, ">") && !is_call(open);
    bool argument = alone && (is_call(open) || cast);
    bool named = kind == NameKind::touches && !argument;  // a reference to one is handed on
    if (named) open_access = add(first, first, first);
    if (kind == NameKind::points && argument) {
      std::size_t pointed = add(first, first, first);
      found_[pointed].needs_ampersand = false;
      found_[pointed].whole_object = true;
    }
    bool first_part = true;
    while (last != SourceText::kNone) {
      std::size_t next = last + 1;
      if (is(next, "(")) {
        last = source_.partner(next);
        open_access = SourceText::kNone;
      } else if (is(next, "[")) {
        last = source_.partner(next);
        if (record && last != SourceText::kNone) open_access = add(first, last, next);
      } else if (is(next, "->") && is_word(next + 1)) {
        if (record) open_access = arrow(first, last, next);
        last = next + 1;
      } else if (is(next, ".") && is_word(next + 1)) {
        last = next + 1;
        bool method = is(last + 1, "(");
        if (method) {
          if (named && open_access != SourceText::kNone) found_.pop_back();  // what it touches is not known
          open_access = SourceText::kNone;
        } else if (open_access != SourceText::kNone) {
          found_[open_access].last = found_[open_access].address_last = last;
        } else if (record && first_part && is(first, "(") && is(first + 1, "*")) {
          open_access = add(first, last, first + 1);  // (*p).x
        }
      } else {
        break;
      }
      first_part = false;
    }
    return last;
  }

  std::size_t add(std::size_t first, std::size_t last, std::size_t sign) {
    Access access;
    access.first = access.address_first = first;
    access.last = access.address_last = last;
    access.sign = sign;
    found_.push_back(access);
    return found_.size() - 1;
  }
  // p->x; of p->method() only the object can be told.
  std::size_t arrow(std::size_t first, std::size_t last, std::size_t sign) {
    bool method = is(sign + 2, "(");
    std::size_t access = add(first, method ? last : sign + 1, sign);
    if (!method) return access;
    found_[access].needs_ampersand = false;
    found_[access].whole_object = true;
    return SourceText::kNone;
  }

  // *p, *(T*)p, *p++
  void star(std::size_t sign) {
    std::size_t operand = sign + 1, i = operand;
    while (is(i, "*") || is(i, "++") || is(i, "--") || (is(i, "(") && is_cast(i)))
      i = is(i, "(") ? source_.partner(i) + 1 : i + 1;
    if (!is_word(i) && !is(i, "(")) return;
    std::size_t last = chain(i, false);
    if (last == SourceText::kNone) return;
    Access access;
    access.first = access.sign = sign;
    access.last = access.address_last = last;
    access.address_first = operand;
    access.needs_ampersand = false;
    if (is(last + 1, "++") || is(last + 1, "--")) ++access.last;  // *p++: what it touches is *p
    found_.push_back(access);
  }

  using Arguments = std::vector<std::pair<std::size_t, std::size_t>>;  // first and last token of each
  Arguments arguments_of(std::size_t name) const {
    Arguments list;
    std::size_t open = name + 1, close = source_.partner(open);
    if (close == SourceText::kNone) return list;
    for (std::size_t i = open + 1, first = i; i <= close; ++i) {
      if (i != close && (!is(i, ",") || source_.around(i) != open)) continue;
      if (i > first) list.emplace_back(first, i - 1);
      first = i + 1;
    }
    return list;
  }

  // std::sort(begin, end): its arguments are pointers or iterators, and say how much there is.
  void range_arguments(std::size_t name) {
    const RangeFunction& function = *range_function(source_.word(name));
    Arguments list = arguments_of(name);
    auto there = [&](int index) { return index >= 0 && static_cast<std::size_t>(index) < list.size(); };
    int last = function.end >= 0 ? function.end : function.count;
    if (!there(last) || !there(0)) return;
    auto [limit_first, limit_last] = list[static_cast<std::size_t>(last)];
    std::string count = "(" + source_.between(limit_first, limit_last) + ")",
                begin = source_.between(list[0].first, list[0].second);
    if (function.end >= 0) count = "(" + count + " - (" + begin + "))";
    bool known = !has_effects(limit_first, limit_last) && !has_effects(list[0].first, list[0].second);
    for (int index : {0, function.to}) {
      if (!there(index)) continue;
      Access access;
      std::tie(access.first, access.last) = list[static_cast<std::size_t>(index)];
      access.address_first = access.first;
      access.address_last = access.last;
      access.sign = name;
      access.needs_ampersand = false;
      access.whole_object = access.is_iterator = true;
      access.writes = index != 0 || function.writes;
      access.reads = index == 0;
      std::string own = source_.between(access.first, access.last);
      if (known) access.size = count + " * sizeof *(" + own + ")";
      found_.push_back(access);
    }
  }

  void arguments(std::size_t name) {
    const MemoryFunction& function = *memory_function(source_.word(name));
    Arguments list = arguments_of(name);
    auto text = [&](int index) {
      bool there = index >= 0 && static_cast<std::size_t>(index) < list.size();
      auto [first, last] = there ? list[static_cast<std::size_t>(index)] : std::pair<std::size_t, std::size_t>{1, 0};
      return there && !has_effects(first, last) ? source_.between(first, last) : std::string();
    };
    std::string size = text(function.size);
    if (function.times >= 0)
      size = size.empty() || text(function.times).empty() ? "" : "(" + size + ") * (" + text(function.times) + ")";
    for (int index : {function.reads, function.also_reads, function.writes}) {
      if (index < 0 || static_cast<std::size_t>(index) >= list.size()) continue;
      Access access;
      std::tie(access.first, access.last) = list[static_cast<std::size_t>(index)];
      access.address_first = access.first;
      access.address_last = access.last;
      access.sign = name;
      access.needs_ampersand = false;
      access.whole_object = true;
      access.writes = index == function.writes;
      access.reads = !access.writes;
      access.size = size;
      found_.push_back(access);
    }
  }

  // The array cannot be an expression with effects, because the hint names it again.
  void vector_argument(std::size_t name) {
    for (const VectorFunction& function : kVectorFunctions) {
      if (function.name != source_.word(name)) continue;
      Arguments list = arguments_of(name);
      auto at = static_cast<std::size_t>(function.vector), count = static_cast<std::size_t>(function.vector + 1);
      if (list.size() <= (function.count >= 0 ? count : at)) return;
      auto [first, last] = list[at];
      std::string text = source_.between(first, last);
      if (has_effects(first, last)) return;
      if (function.count >= 0 && has_effects(list[count].first, list[count].second)) return;
      Access access;
      access.first = access.address_first = first;
      access.last = access.address_last = last;
      access.sign = name;
      access.needs_ampersand = false;
      access.whole_object = true;
      access.writes = function.writes;
      access.reads = !function.writes;
      access.vector = function.count >= 0 ? "(" + text + ")" : "(" + text + ")->msg_iov";
      access.vector_count =
          function.count >= 0 ? source_.between(list[count].first, list[count].second) : "(" + text + ")->msg_iovlen";
      found_.push_back(access);
      return;
    }
  }

  bool is_call(std::size_t i) const {
    if (i == SourceText::kNone || !is(i, "(") || i == 0) return false;
    if (is_word(i - 1))
      return !one_of(source_.word(i - 1), kBeforeExpression) && !one_of(source_.word(i - 1), kUnevaluated);
    if (is(i - 1, ">")) {  // static_cast<T>(x) is none
      for (std::size_t j = i - 1; j > 0 && i - j < kTypeTokensMax; --j)
        if (is(j, "<")) return !one_of(source_.word(j - 1), kCasts);
    }
    return is(i - 1, ")") ? !is_cast(source_.partner(i - 1)) : is(i - 1, "]");
  }
  bool has_changes(std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i <= last; ++i)
      if (is(i, "++") || is(i, "--") || is(i, "{") || one_of(source_.word(i), kAssignments)) return true;
    return false;
  }
  bool has_calls(std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i <= last; ++i)
      if (is_call(i)) return true;
    return false;
  }
  bool has_effects(std::size_t first, std::size_t last) const {
    return has_changes(first, last) || has_calls(first, last);
  }

  // What is known once all accesses are found.
  void settle(Access& access) {
    access.calls = has_calls(access.address_first, access.address_last);
    access.changes = has_changes(access.address_first, access.address_last);
    for (const Access& other : found_)
      if (&other != &access && !other.whole_object && other.first >= access.address_first &&
          other.last <= access.address_last && !(other.first == access.first && other.last == access.last))
        ++access.loads;
    if (access.whole_object) return;
    access.is_pack = is(access.last + 1, "...") || (is(access.last + 1, ".") && is(access.last + 2, "."));
    std::string_view behind = source_.word(access.last + 1),
                     before = access.first > 0 ? source_.word(access.first - 1) : "";
    bool steps = behind == "++" || behind == "--" || before == "++" || before == "--";
    access.writes = one_of(behind, kAssignments) || steps || is(access.last, "++") || is(access.last, "--");
    if (access.sign == access.first && (is(access.last, "++") || is(access.last, "--")))
      access.writes = one_of(behind, kAssignments);  // *p++ = x changes p; and *p
    access.reads = !one_of(behind, kAssignments) || behind != "=";
  }

  const SourceText& source_;
  std::size_t begin_, end_;
  const KindOfName& names_;
  std::vector<Access> found_;
};

bool ends_search(std::string_view word) { return word == ";" || word == "{" || word == "}"; }

// &a[i] takes an address and touches nothing.
bool is_only_addressed(const SourceText& source, const Access& access) {
  if (access.whole_object || access.first == 0 || !source.is(access.first - 1, "&")) return false;
  if (access.first == 1) return true;
  const Token& before = source.tokens()[access.first - 2];
  bool operand = before.kind != TokenKind::sign || before.text == ")" || before.text == "]";
  return !operand || one_of(before.text, kBeforeExpression);
}

}  // namespace

std::string Access::address(const SourceText& source) const {
  std::string text = source.between(address_first, address_last);
  bool one = address_first == address_last || text.find_first_of(" +-") == std::string::npos;
  if (is_iterator && text.starts_with('&')) return text;
  return is_iterator ? "&*" + (one ? text : "(" + text + ")") : needs_ampersand ? "&" + text : text;
}

std::vector<Access> accesses_on(const SourceText& source, int line, const KindOfName& names) {
  std::size_t first = source.first_token_of(line), end = source.first_token_of(line + 1);
  if (first == end) return {};
  std::size_t begin = first, behind = end;
  while (begin > 0 && !ends_search(source.word(begin - 1))) --begin;
  while (behind < source.tokens().size() && !ends_search(source.word(behind))) ++behind;
  std::vector<Access> result;
  for (const Access& each : Finder(source, begin, behind, names).run())
    if (each.last >= first && each.first < end && !is_only_addressed(source, each)) result.push_back(each);
  return result;
}

}  // namespace hinterland::trace
