// The tokens of a SQL92 expression, as RocketMQ's grammar has them (filter, SelectorParser.jj): the longest
// one that fits, keywords in any case, comments and blanks passed over. A line comment needs its line end, an
// integer may have L behind it, a floating-point number has no suffix, a string doubles the quotes in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rmq::filter {

enum class Token : uint8_t {
  end,
  NOT,
  AND,
  OR,
  BETWEEN,
  IN,
  TRUE,
  FALSE,
  NULL_,
  IS,
  CONTAINS,
  STARTSWITH,
  ENDSWITH,
  integer,
  floating,
  string,
  identifier,
  equal,
  not_equal,
  greater,
  greater_equal,
  less,
  less_equal,
  open,
  comma,
  close,
  plus,
  minus,
  bad,  // no token: Lexer::reason() says why
};

class Lexer {
 public:
  // `text` must outlive the lexer. The first token is there at once.
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  void next();
  Token token() const { return token_; }
  std::string_view image() const { return text_.substr(begin_, end_ - begin_); }  // as it is written
  size_t begin() const { return begin_; }                                         // in bytes
  const char* reason() const { return reason_; }

 private:
  bool skip_comment();
  void skip_blanks();
  void take(Token t, size_t bytes) {
    token_ = t;
    end_ = begin_ + bytes;
  }
  void take_number();
  void take_string();
  void take_word();
  void take_sign();
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  std::string_view text_;
  size_t begin_ = 0, end_ = 0;
  Token token_ = Token::end;
  const char* reason_ = "";
};

}  // namespace rmq::filter
