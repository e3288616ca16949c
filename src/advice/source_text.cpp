#include "advice/source_text.hpp"

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/plain_file.hpp"

namespace hinterland::trace {
namespace {

constexpr std::size_t kFileMax = 64u << 20;

// Longest first.
constexpr std::string_view kSigns[] = {"<<=", ">>=", "...", "->*", "<=>", "->", "++", "--", "<<",
                                       "<=",  ">=",  "==",  "!=",  "&&",  "||", "+=", "-=", "*=",
                                       "/=",  "%=",  "&=",  "^=",  "|=",  "::", ".*", "##"};

bool starts_word(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' ||
         static_cast<unsigned char>(letter) >= 0x80;
}
bool in_word(char letter) { return starts_word(letter) || std::isdigit(static_cast<unsigned char>(letter)) != 0; }

bool opens(std::string_view sign) { return sign == "(" || sign == "[" || sign == "{"; }
bool closes(std::string_view sign) { return sign == ")" || sign == "]" || sign == "}"; }
char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

// A literal from its quote on; not beyond its line, which a stray quote would take with it.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  char quote = text[at];
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

// R"x( ... )x", from the quote on.
std::size_t end_of_raw(std::string_view text, std::size_t at) {
  std::size_t open = text.find('(', at);
  if (open == std::string_view::npos || open - at > 17) return end_of_quoted(text, at);
  std::string end = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  std::size_t found = text.find(end, open);
  return found == std::string_view::npos ? text.size() : found + end.size();
}

}  // namespace

Result<SourceText> SourceText::read(const std::string& path) {
  Result<std::string> text = read_plain_file(path, "the source", kFileMax);
  if (!text) return std::unexpected(text.error());
  return SourceText(std::move(*text));
}

SourceText::SourceText(std::string text) : text_(std::make_unique<std::string>(std::move(text))) {
  line_starts_.push_back(0);
  for (std::size_t i = 0; i + 1 < text_->size(); ++i)
    if ((*text_)[i] == '\n') line_starts_.push_back(i + 1);
  split();
  pair_brackets();
}

void SourceText::split() {
  for (std::size_t at = 0; (at = skip_space(at)) < text_->size();) {
    Token token;
    token.offset = at;
    token.line = line_at(at);
    token.column = static_cast<int>(at - line_start(token.line)) + 1;
    std::size_t end = end_of_token(at, &token.kind);
    token.text = std::string_view(*text_).substr(at, end - at);
    tokens_.push_back(token);
    at = end;
  }
}

// Behind white space, comments and directives.
std::size_t SourceText::skip_space(std::size_t at) {
  std::string_view text = *text_;
  bool line_begins = at == 0 || text[at - 1] == '\n';
  for (; at < text.size(); ++at) {
    if (text[at] == '\n') {
      line_begins = true;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (text.substr(at, 2) == "/*") {
      at = std::min(text.find("*/", at + 2), text.size() - 2) + 1;
    } else if (text[at] == '#' && line_begins) {
      at = skip_directive(at) - 1;
    } else if (text[at] != '\\' && std::isspace(static_cast<unsigned char>(text[at])) == 0) {
      return at;
    }
  }
  return at;
}

// Up to the end of its last line.
std::size_t SourceText::skip_directive(std::size_t at) const {
  std::string_view text = *text_;
  for (; at < text.size(); ++at) {
    if (text.substr(at, 2) == "/*") {
      at = std::min(text.find("*/", at + 2), text.size() - 2) + 1;
      continue;
    }
    if (text[at] != '\n') continue;
    std::size_t last = at;
    while (last > 0 && text[last - 1] == '\r') --last;
    if (last == 0 || text[last - 1] != '\\') return at;
  }
  return text.size();
}

std::size_t SourceText::end_of_token(std::size_t at, TokenKind* kind) const {
  std::string_view text = *text_;
  std::size_t end = at;
  if (starts_word(text[at])) {
    while (end < text.size() && in_word(text[end])) ++end;
    std::string_view word = text.substr(at, end - at);
    bool prefix = word == "L" || word == "u" || word == "U" || word == "u8" || word.ends_with('R');
    *kind = TokenKind::word;
    if (end >= text.size() || !prefix || (text[end] != '"' && text[end] != '\'')) return end;
    *kind = TokenKind::text;
    return word.ends_with('R') && text[end] == '"' ? end_of_raw(text, end) : end_of_quoted(text, end);
  }
  if (std::isdigit(static_cast<unsigned char>(text[at])) != 0 ||
      (text[at] == '.' && at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0)) {
    *kind = TokenKind::number;
    bool hex = text.substr(at, 2) == "0x" || text.substr(at, 2) == "0X";
    for (++end; end < text.size(); ++end) {
      std::string_view before_sign = hex ? "pP" : "eE";
      bool exponent = (text[end] == '+' || text[end] == '-') && before_sign.find(text[end - 1]) != before_sign.npos;
      if (!in_word(text[end]) && text[end] != '.' && text[end] != '\'' && !exponent) break;
    }
    return end;
  }
  if (text[at] == '"' || text[at] == '\'') {
    *kind = TokenKind::text;
    return end_of_quoted(text, at);
  }
  *kind = TokenKind::sign;
  for (std::string_view sign : kSigns)
    if (text.substr(at, sign.size()) == sign) return at + sign.size();
  return at + 1;
}

// Brackets that do not fit (an #if with one in each branch) stay without a partner, and so do those around them.
void SourceText::pair_brackets() {
  partner_.assign(tokens_.size(), kNone);
  around_.assign(tokens_.size(), kNone);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    bool sign = tokens_[i].kind == TokenKind::sign;
    if (sign && closes(tokens_[i].text)) {
      auto fits = std::find_if(open.rbegin(), open.rend(), [&](std::size_t other) {
        return closing(tokens_[other].text[0]) == tokens_[i].text[0];
      });
      if (fits != open.rend()) {
        std::size_t other = *fits;
        partner_[i] = other;
        partner_[other] = i;
        open.erase(std::find(open.begin(), open.end(), other), open.end());
      }
    }
    if (!open.empty()) around_[i] = open.back();
    if (sign && opens(tokens_[i].text)) open.push_back(i);
  }
}

std::string SourceText::between(std::size_t first, std::size_t last) const {
  std::string out;
  for (std::size_t i = first; i <= last && i < tokens_.size(); ++i) {
    if (i > first && tokens_[i].offset > tokens_[i - 1].end()) out += ' ';
    out += tokens_[i].text;
  }
  return out;
}

std::size_t SourceText::first_token_of(int line) const {
  auto found = std::partition_point(tokens_.begin(), tokens_.end(), [&](const Token& t) { return t.line < line; });
  return static_cast<std::size_t>(found - tokens_.begin());
}

std::string_view SourceText::line_text(int line) const {
  if (line < 1 || line > lines()) return {};
  std::size_t start = line_start(line), end = std::min(text_->find('\n', start), text_->size());
  if (end > start && (*text_)[end - 1] == '\r') --end;
  return std::string_view(*text_).substr(start, end - start);
}

int SourceText::line_at(std::size_t offset) const {
  return static_cast<int>(std::upper_bound(line_starts_.begin(), line_starts_.end(), offset) - line_starts_.begin());
}

const char* SourceText::newline() const { return text_->find("\r\n") != std::string::npos ? "\r\n" : "\n"; }

}  // namespace hinterland::trace
