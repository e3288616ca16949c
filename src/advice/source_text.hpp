// A C or C++ source file as tokens: as much of the languages as it takes to find the expressions of a line, the
// statement and the loop around it. Comments and preprocessor lines are no tokens. No types, no macros: who uses this
// says so where that matters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace hinterland::trace {

enum class TokenKind : std::uint8_t { word, number, text, sign };  // text: a string or character literal

struct Token {
  TokenKind kind = TokenKind::sign;
  std::string_view text;
  std::size_t offset = 0;    // into the file
  int line = 0, column = 0;  // from 1; columns are bytes, as debug information counts them
  std::size_t end() const { return offset + text.size(); }
};

class SourceText {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  static Result<SourceText> read(const std::string& path);  // at most 64 MiB
  explicit SourceText(std::string text);
  SourceText(SourceText&&) = default;  // the views stay valid: the text is on the heap
  SourceText& operator=(SourceText&&) = default;

  std::string_view text() const { return *text_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  std::string_view word(std::size_t token) const { return token < tokens_.size() ? tokens_[token].text : ""; }
  bool is(std::size_t token, std::string_view text) const { return word(token) == text; }
  // The source from one token up to the end of another, on one line, without comments.
  std::string between(std::size_t first, std::size_t last) const;

  // The bracket that belongs to this one; kNone when there is none (code that the preprocessor cuts in two).
  std::size_t partner(std::size_t token) const { return token < partner_.size() ? partner_[token] : kNone; }
  // The innermost bracket that is open at this token; kNone outside all.
  std::size_t around(std::size_t token) const { return token < around_.size() ? around_[token] : kNone; }

  int lines() const { return static_cast<int>(line_starts_.size()); }
  // Tokens [first, end) that begin on this line.
  std::size_t first_token_of(int line) const;
  std::string_view line_text(int line) const;  // without its end; "" when there is no such line
  std::size_t line_start(int line) const { return line_starts_[static_cast<std::size_t>(line - 1)]; }
  int line_at(std::size_t offset) const;
  const char* newline() const;  // the file's own

 private:
  void split();
  std::size_t skip_space(std::size_t at);
  std::size_t skip_directive(std::size_t at) const;
  std::size_t end_of_token(std::size_t at, TokenKind* kind) const;
  void pair_brackets();

  std::unique_ptr<std::string> text_;
  std::vector<Token> tokens_;
  std::vector<std::size_t> partner_, around_;
  std::vector<std::size_t> line_starts_;
};

}  // namespace hinterland::trace
