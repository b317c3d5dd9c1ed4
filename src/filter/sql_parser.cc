// From text to nodes, by recursive descent, with the checks that RocketMQ's factories of expressions make:
//
//   or         = and { OR and }
//   and        = equality { AND equality }
//   equality   = comparison { ("=" | "<>") comparison | IS [NOT] NULL }
//   comparison = unary { (">" | ">=" | "<" | "<=") unary | [NOT] CONTAINS string | [NOT] STARTSWITH string
//                      | [NOT] ENDSWITH string | [NOT] BETWEEN unary AND unary
//                      | [NOT] IN "(" string { "," string } ")" }
//   unary      = "+" unary | "-" unary | NOT unary | primary
//   primary    = literal | property | "(" or ")"
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "filter/java_number.h"
#include "filter/property_table.h"
#include "filter/sql_expression.h"
#include "filter/sql_lexer.h"

namespace rmq::filter {

class Parser {
 public:
  explicit Parser(SqlExpression& e) : e_(e), lexer_(e.text()) {}

  // False: error() says why.
  bool parse() {
    auto root = or_expression();
    if (root) root = as_boolean(*root);
    if (root && lexer_.token() == Token::bad) root = fail_at_token("an operator");
    if (!root) return false;
    e_.root_ = *root;
    if (lexer_.token() != Token::end) e_.ignored_from_ = place_of(lexer_.begin());
    return true;
  }
  CompileError& error() { return error_; }

 private:
  using Op = SqlExpression::Op;
  using Node = SqlExpression::Node;
  using Index = std::optional<uint32_t>;  // nothing: an error

  static constexpr std::string_view cannot_be_compared =
      "only numbers, properties and what is made of them can be compared by size";

  // ---- errors ----
  TextPlace place_of(size_t byte) const {
    TextPlace p;
    std::string_view before = e_.text().substr(0, byte);
    for (char c : before) {
      if (c == '\n') {
        p.line++;
        p.column = 1;
      } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
        p.column++;
      }
    }
    return p;
  }
  std::nullopt_t fail(size_t byte, std::string_view reason) {
    error_ = {place_of(byte), std::string(reason)};
    return std::nullopt;
  }
  std::nullopt_t fail_at_token(std::string_view expected) {
    if (lexer_.token() == Token::bad) return fail(lexer_.begin(), lexer_.reason());
    if (lexer_.token() == Token::end)
      return fail(lexer_.begin(), fmt::format("the expression ends where {} must follow", expected));
    constexpr size_t shown_max = 40;
    std::string_view image = lexer_.image();
    return fail(lexer_.begin(), fmt::format("{}{} where {} must follow", image.substr(0, shown_max),
                                            image.size() > shown_max ? "..." : "", expected));
  }
  bool accept(Token t) {
    if (lexer_.token() != t) return false;
    lexer_.next();
    return true;
  }

  // ---- nodes ----
  const Node& node(uint32_t i) const { return e_.nodes_[i]; }
  Index add(Node n, size_t begin, uint32_t deepest_child) {
    const uint32_t depth = deepest_child + 1;
    if (depth > limits::filter_depth_max)
      return fail(begin, fmt::format("nested more than {} deep", limits::filter_depth_max));
    e_.nodes_.push_back(n);
    depths_.push_back(depth);
    begins_.push_back(begin);
    return static_cast<uint32_t>(e_.nodes_.size() - 1);
  }
  Index add_leaf(Node n, size_t begin) { return add(n, begin, 0); }
  Index add_unary(Op op, uint32_t child, size_t begin) {
    Node n;
    n.op = op;
    n.left = child;
    return add(n, begin, depths_[child]);
  }
  Index add_binary(Op op, uint32_t left, uint32_t right) {
    Node n;
    n.op = op;
    n.left = left;
    n.right = right;
    return add(n, begins_[left], std::max(depths_[left], depths_[right]));
  }
  Index add_group(Op op, const std::vector<uint32_t>& children) {
    Node n;
    n.op = op;
    n.left = static_cast<uint32_t>(e_.children_.size());
    n.right = static_cast<uint32_t>(children.size());
    uint32_t deepest = 0;
    for (uint32_t c : children) deepest = std::max(deepest, depths_[c]);
    e_.children_.insert(e_.children_.end(), children.begin(), children.end());
    return add(n, begins_[children.front()], deepest);
  }

  bool is_number(uint32_t i) const {
    Op op = node(i).op;
    return op == Op::integer || op == Op::long_ || op == Op::real;
  }
  bool is_constant(uint32_t i) const {
    Op op = node(i).op;
    return op == Op::null || op == Op::boolean || op == Op::text || is_number(i);
  }
  bool is_boolean(uint32_t i) const {
    Op op = node(i).op;
    return op != Op::text && op != Op::property && op != Op::negate && !is_number(i);
  }
  Index as_boolean(uint32_t i) {
    if (is_boolean(i)) return i;
    if (node(i).op == Op::property) return add_unary(Op::cast, i, begins_[i]);
    return fail(begins_[i], "this is no condition: it is neither true nor false");
  }

  // ---- the grammar ----
  Index chain(Token separator, Op op, Index (Parser::*operand)()) {
    Index left = (this->*operand)();
    if (!left || lexer_.token() != separator) return left;
    left = as_boolean(*left);
    if (!left) return std::nullopt;
    std::vector<uint32_t> children{*left};
    while (accept(separator)) {
      Index right = (this->*operand)();
      if (right) right = as_boolean(*right);
      if (!right) return std::nullopt;
      children.push_back(*right);
    }
    return add_group(op, children);
  }
  Index or_expression() { return chain(Token::OR, Op::any, &Parser::and_expression); }
  Index and_expression() { return chain(Token::AND, Op::all, &Parser::equality); }

  Index equality() {
    Index left = comparison();
    while (left) {
      if (accept(Token::equal)) {
        left = equal(*left, false);
      } else if (accept(Token::not_equal)) {
        left = equal(*left, true);
      } else if (accept(Token::IS)) {
        bool negated = accept(Token::NOT);
        if (!accept(Token::NULL_)) return fail_at_token(negated ? "NULL" : "NULL or NOT NULL");
        const size_t begin = begins_[*left];
        left = add_unary(Op::is_null, *left, begin);
        if (left && negated) left = add_unary(Op::not_, *left, begin);
      } else {
        break;
      }
    }
    return left;
  }

  Index equal(uint32_t left, bool negated) {
    Index right = comparison();
    if (!right) return right;
    for (uint32_t i : {left, *right})
      if (node(i).op == Op::null)
        return fail(begins_[i], "NULL cannot be compared: IS NULL or IS NOT NULL asks for it");
    if (node(left).op == Op::boolean && is_constant(*right) && !is_boolean(*right))
      return fail(begins_[*right], "this constant cannot be compared with a boolean");
    Index out = add_binary(Op::equal, left, *right);
    return out && negated ? add_unary(Op::not_, *out, begins_[left]) : out;
  }

  Index comparison() {
    Index left = unary();
    while (left) {
      switch (lexer_.token()) {
        case Token::greater:
          left = sizes(Op::greater, *left);
          break;
        case Token::greater_equal:
          left = sizes(Op::greater_equal, *left);
          break;
        case Token::less:
          left = sizes(Op::less, *left);
          break;
        case Token::less_equal:
          left = sizes(Op::less_equal, *left);
          break;
        case Token::NOT:
          lexer_.next();
          left = worded(*left, true);
          break;
        case Token::CONTAINS:
        case Token::STARTSWITH:
        case Token::ENDSWITH:
        case Token::BETWEEN:
        case Token::IN:
          left = worded(*left, false);
          break;
        default:
          return left;
      }
    }
    return left;
  }

  Index worded(uint32_t left, bool negated) {
    Token t = lexer_.token();
    if (accept(Token::CONTAINS)) return part(Op::contains, left, negated);
    if (accept(Token::STARTSWITH)) return part(Op::starts_with, left, negated);
    if (accept(Token::ENDSWITH)) return part(Op::ends_with, left, negated);
    if (accept(Token::BETWEEN)) return between(left, negated);
    if (t == Token::IN) return in(left, negated);
    return fail_at_token("CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN");
  }

  bool can_be_sized(uint32_t i) {
    if (is_constant(i) ? is_number(i) : !is_boolean(i)) return true;
    fail(begins_[i], cannot_be_compared);
    return false;
  }
  Index compared(Op op, uint32_t left, uint32_t right) {
    if (!can_be_sized(left) || !can_be_sized(right)) return std::nullopt;
    return add_binary(op, left, right);
  }
  Index sizes(Op op, uint32_t left) {
    lexer_.next();
    Index right = unary();
    return right ? compared(op, left, *right) : right;
  }

  Index between(uint32_t value, bool negated) {
    Index low = unary();
    if (!low) return low;
    if (!accept(Token::AND)) return fail_at_token("AND");
    Index high = unary();
    if (!high) return high;
    if (!negated && is_number(*low) && is_number(*high) && is_less(*high, *low))
      return fail(begins_[*high], "the second value of BETWEEN is less than the first");
    Index first = compared(negated ? Op::less : Op::greater_equal, value, *low);
    Index second = first ? compared(negated ? Op::greater : Op::less_equal, value, *high) : first;
    if (!second) return second;
    return add_group(negated ? Op::any : Op::all, {*first, *second});
  }
  bool is_less(uint32_t a, uint32_t b) const {
    const Node &x = node(a), &y = node(b);
    auto whole = [](const Node& n) { return n.op == Op::integer ? n.integer : n.long_; };
    auto real = [&](const Node& n) { return n.op == Op::real ? n.real : static_cast<double>(whole(n)); };
    if (x.op == Op::real || y.op == Op::real) return java_compare(real(x), real(y)) < 0;
    return whole(x) < whole(y);
  }

  Index part(Op op, uint32_t left, bool negated) {
    auto text = string();
    if (!text) return std::nullopt;
    Node n;
    n.op = op;
    n.negated = negated;
    n.left = left;
    n.right = *text;
    return add(n, begins_[left], depths_[left]);
  }

  Index in(uint32_t left, bool negated) {
    if (node(left).op != Op::property) return fail(begins_[left], "only a property can be asked for with IN");
    lexer_.next();
    if (!accept(Token::open)) return fail_at_token("(");
    Node n;
    n.op = Op::in;
    n.negated = negated;
    n.left = left;
    n.list = static_cast<uint32_t>(e_.texts_.size());
    do {
      if (!string()) return std::nullopt;
    } while (accept(Token::comma));
    if (!accept(Token::close)) return fail_at_token(", or )");
    n.right = static_cast<uint32_t>(e_.texts_.size()) - n.list;
    std::sort(e_.texts_.begin() + n.list, e_.texts_.end());
    return add(n, begins_[left], depths_[left]);
  }

  Index unary() {
    const size_t begin = lexer_.begin();
    if (++nested_ > limits::filter_depth_max)
      return fail(begin, fmt::format("nested more than {} deep", limits::filter_depth_max));
    Index out;
    if (accept(Token::plus)) {
      out = unary();
    } else if (accept(Token::minus)) {
      out = unary();
      if (out) out = add_unary(Op::negate, *out, begin);
    } else if (accept(Token::NOT)) {
      out = unary();
      if (out) out = as_boolean(*out);
      if (out) out = add_unary(Op::not_, *out, begin);
    } else {
      out = primary();
    }
    nested_--;
    return out;
  }

  Index primary() {
    const size_t begin = lexer_.begin();
    Node n;
    switch (lexer_.token()) {
      case Token::open: {
        lexer_.next();
        Index inner = or_expression();
        if (inner && !accept(Token::close)) return fail_at_token(") or an operator");
        return inner;
      }
      case Token::identifier:
        n.op = Op::property;
        n.left = name_index(lexer_.image());
        if (n.left >= limits::filter_properties_max)
          return fail(begin, fmt::format("more than {} different properties", limits::filter_properties_max));
        break;
      case Token::integer:
        return integer();
      case Token::floating:
        return floating();
      case Token::string: {
        auto text = string();
        n.op = Op::text;
        n.left = *text;
        return add_leaf(n, begin);
      }
      case Token::TRUE:
      case Token::FALSE:
        n.op = Op::boolean;
        n.boolean = lexer_.token() == Token::TRUE;
        break;
      case Token::NULL_:
        break;
      default:
        return fail_at_token("a property, a literal or (");
    }
    lexer_.next();
    return add_leaf(n, begin);
  }

  Index integer() {
    const size_t begin = lexer_.begin();
    std::string_view digits = lexer_.image();
    if ((digits.back() | 32) == 'l') digits.remove_suffix(1);
    auto value = java_long(digits);
    if (!value) return fail(begin, "an integer beyond 9223372036854775807");
    Node n;
    if (*value <= INT32_MAX) {
      n.op = Op::integer;
      n.integer = static_cast<int32_t>(*value);
    } else {
      n.op = Op::long_;
      n.long_ = *value;
    }
    lexer_.next();
    return add_leaf(n, begin);
  }

  Index floating() {
    const size_t begin = lexer_.begin();
    auto value = java_double(lexer_.image());
    if (!value || *value > 1.7976931348623157e308) return fail(begin, "a number too large for a double");
    if (*value <= 0) return fail(begin, "a floating-point number must be greater than 0");
    Node n;
    n.op = Op::real;
    n.real = *value;
    lexer_.next();
    return add_leaf(n, begin);
  }

  // The index of the decoded literal.
  std::optional<uint32_t> string() {
    if (lexer_.token() != Token::string) return fail_at_token("a string in single quotes");
    std::string_view image = lexer_.image();
    image = image.substr(1, image.size() - 2);
    char* out = e_.strings_.get() + string_bytes_;
    size_t bytes = 0;
    for (size_t i = 0; i < image.size(); i++) {
      if (image[i] == '\'') i++;  // the first of two
      out[bytes++] = image[i];
    }
    string_bytes_ += bytes;
    e_.texts_.emplace_back(out, bytes);
    lexer_.next();
    return static_cast<uint32_t>(e_.texts_.size() - 1);
  }

  uint32_t name_index(std::string_view name) {
    auto& names = e_.names_;
    auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) it = names.insert(it, name);
    return static_cast<uint32_t>(it - names.begin());
  }

  SqlExpression& e_;
  Lexer lexer_;
  CompileError error_;
  std::vector<uint32_t> depths_;  // of each node, a leaf has 1
  std::vector<size_t> begins_;    // where each stands in the text
  uint32_t nested_ = 0;
  size_t string_bytes_ = 0;
};

std::expected<std::shared_ptr<const SqlExpression>, CompileError> SqlExpression::compile(
    std::string_view text) {
  if (text.size() > limits::filter_expression_bytes_max) {
    CompileError e{{}, fmt::format("longer than {} bytes", limits::filter_expression_bytes_max)};
    return std::unexpected(std::move(e));
  }
  std::shared_ptr<SqlExpression> e(new SqlExpression());
  e->text_.reset(new char[text.size()]);
  e->strings_.reset(new char[text.size()]);
  std::copy(text.begin(), text.end(), e->text_.get());
  e->text_bytes_ = text.size();
  Parser parser(*e);
  if (!parser.parse()) return std::unexpected(std::move(parser.error()));
  e->nodes_.shrink_to_fit();
  for (std::string_view name : e->names_) e->hashes_.push_back(PropertyTable::hash_of(name));
  e->needed_ = e->needed_by(e->root_);
  return e;
}

}  // namespace rmq::filter
