#include "filter/sql_lexer.h"

#include <algorithm>
#include <iterator>

namespace rmq::filter {

namespace {

constexpr std::string_view blanks = " \t\n\r\f";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

struct Keyword {
  std::string_view word;
  Token token;
};
constexpr Keyword keywords[] = {
    {"NOT", Token::NOT},
    {"AND", Token::AND},
    {"OR", Token::OR},
    {"BETWEEN", Token::BETWEEN},
    {"IN", Token::IN},
    {"TRUE", Token::TRUE},
    {"FALSE", Token::FALSE},
    {"NULL", Token::NULL_},
    {"IS", Token::IS},
    {"CONTAINS", Token::CONTAINS},
    {"STARTSWITH", Token::STARTSWITH},
    {"ENDSWITH", Token::ENDSWITH},
};

bool same_word(std::string_view word, std::string_view upper) {
  auto equal = [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 32 : a) == b; };
  return word.size() == upper.size() && std::equal(word.begin(), word.end(), upper.begin(), equal);
}

}  // namespace

bool Lexer::skip_comment() {
  if (at(end_) == '-' && at(end_ + 1) == '-') {
    size_t line_end = text_.find_first_of("\n\r", end_);
    if (line_end == std::string_view::npos) return false;
    end_ = line_end + 1;
    return true;
  }
  if (at(end_) == '/' && at(end_ + 1) == '*') {
    size_t close = text_.find("*/", end_ + 2);
    if (close == std::string_view::npos) return false;
    end_ = close + 2;
    return true;
  }
  return false;
}

void Lexer::skip_blanks() {
  do {
    end_ = std::min(text_.find_first_not_of(blanks, end_), text_.size());
  } while (skip_comment());
}

void Lexer::next() {
  skip_blanks();
  begin_ = end_;
  if (begin_ == text_.size()) return take(Token::end, 0);
  char c = at(begin_);
  if (is_digit(c) || (c == '.' && is_digit(at(begin_ + 1)))) return take_number();
  if (c == '\'') return take_string();
  if (begins_word(c)) return take_word();
  take_sign();
}

void Lexer::take_number() {
  size_t i = begin_;
  while (is_digit(at(i))) i++;
  const size_t whole_end = i;
  bool floating = false;
  if (at(i) == '.') {
    floating = true;
    i++;
    while (is_digit(at(i))) i++;
  }
  if ((at(i) | 32) == 'e') {
    size_t digits = i + 1;
    if (at(digits) == '+' || at(digits) == '-') digits++;
    if (is_digit(at(digits))) {
      floating = true;
      i = digits;
      while (is_digit(at(i))) i++;
    }
  }
  if (floating) return take(Token::floating, i - begin_);
  // "0" stands alone: what follows is a token of its own.
  if (at(begin_) == '0') return take(Token::integer, 1);
  bool is_long = (at(whole_end) | 32) == 'l';
  take(Token::integer, whole_end - begin_ + (is_long ? 1 : 0));
}

void Lexer::take_string() {
  for (size_t i = begin_ + 1; i < text_.size(); i++) {
    if (text_[i] != '\'') continue;
    if (at(i + 1) != '\'') return take(Token::string, i + 1 - begin_);
    // A doubled quote, unless nothing behind it ends the string: then the first of the two does.
    if (text_.find('\'', i + 2) == std::string_view::npos) return take(Token::string, i + 1 - begin_);
    i++;
  }
  reason_ = "a string without its closing quote";
  take(Token::bad, text_.size() - begin_);
}

void Lexer::take_word() {
  size_t i = begin_;
  while (begins_word(at(i)) || is_digit(at(i))) i++;
  std::string_view word = text_.substr(begin_, i - begin_);
  const auto* k = std::find_if(std::begin(keywords), std::end(keywords),
                               [&](const Keyword& known) { return same_word(word, known.word); });
  take(k == std::end(keywords) ? Token::identifier : k->token, word.size());
}

void Lexer::take_sign() {
  const char second = at(begin_ + 1);
  switch (at(begin_)) {
    case '=':
      return take(Token::equal, 1);
    case '<':
      if (second == '>') return take(Token::not_equal, 2);
      return second == '=' ? take(Token::less_equal, 2) : take(Token::less, 1);
    case '>':
      return second == '=' ? take(Token::greater_equal, 2) : take(Token::greater, 1);
    case '(':
      return take(Token::open, 1);
    case ')':
      return take(Token::close, 1);
    case ',':
      return take(Token::comma, 1);
    case '+':
      return take(Token::plus, 1);
    case '-':
      return take(Token::minus, 1);
    default:
      break;
  }
  reason_ = second == '*' && at(begin_) == '/' ? "a comment without its end"
                                               : "a character that nothing in an expression begins with";
  take(Token::bad, 1);
}

}  // namespace rmq::filter
