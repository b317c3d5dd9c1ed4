// The evaluation. Values have the Java types that RocketMQ compares by: what Integer 1 is equal to is not
// what Long 1 is equal to, as strings are read as the type of the other side.
#include "filter/sql_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "filter/java_number.h"
#include "filter/property_table.h"

namespace rmq::filter {

namespace {

struct Value {
  enum class Type : uint8_t { null, boolean, integer, long_, real, text, failed };
  Type type = Type::null;
  union {
    bool boolean;
    int32_t integer;
    int64_t long_ = 0;
    double real;
  };
  std::string_view text;

  static Value of(bool b) {
    Value v;
    v.type = Type::boolean;
    v.boolean = b;
    return v;
  }
  static Value of(int32_t i) {
    Value v;
    v.type = Type::integer;
    v.integer = i;
    return v;
  }
  static Value of(int64_t l) {
    Value v;
    v.type = Type::long_;
    v.long_ = l;
    return v;
  }
  static Value of(double d) {
    Value v;
    v.type = Type::real;
    v.real = d;
    return v;
  }
  static Value of(std::string_view t) {
    Value v;
    v.type = Type::text;
    v.text = t;
    return v;
  }
  static Value of(Verdict b) {
    if (b == Verdict::unknown) return {};
    if (b != Verdict::failed) return of(b == Verdict::yes);
    Value v;
    v.type = Type::failed;
    return v;
  }
  bool is_number() const { return type == Type::integer || type == Type::long_ || type == Type::real; }
  int64_t whole() const { return type == Type::integer ? integer : long_; }
  double as_double() const { return type == Type::real ? real : static_cast<double>(whole()); }
};
using Type = Value::Type;

// How a pair of values compares: less, equal, greater, or no answer, which ends the evaluation.
struct Order {
  int value = 0;
  bool failed = false;
};
constexpr Order no_order{0, true};

template <class T>
int order_of(T a, T b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

Order compare_numbers(const Value& a, const Value& b) {
  if (a.type == Type::real || b.type == Type::real) return {java_compare(a.as_double(), b.as_double())};
  return {order_of(a.whole(), b.whole())};
}

// A text read as the type of `like`, a number.
std::optional<Value> number_like(const Value& like, std::string_view text) {
  if (like.type == Type::integer) {
    auto i = java_int(text);
    return i ? std::optional(Value::of(*i)) : std::nullopt;
  }
  if (like.type == Type::long_) {
    auto l = java_long(text);
    return l ? std::optional(Value::of(*l)) : std::nullopt;
  }
  auto d = java_double(text);
  return d ? std::optional(Value::of(*d)) : std::nullopt;
}

bool is_true(std::string_view text) {  // Boolean.valueOf
  constexpr std::string_view upper = "TRUE", lower = "true";
  if (text.size() != upper.size()) return false;
  for (size_t i = 0; i < upper.size(); i++)
    if (text[i] != upper[i] && text[i] != lower[i]) return false;
  return true;
}

// Neither is NULL. Types that do not go together count as less, except that a boolean on the left cannot be
// compared with a text.
Order compare(const Value& a, const Value& b) {
  if (a.type == Type::text && b.type == Type::text) return {order_of(a.text.compare(b.text), 0)};
  if (a.type == Type::boolean) {
    if (b.type == Type::boolean) return {order_of<int>(a.boolean, b.boolean)};
    return b.type == Type::text ? no_order : Order{-1};
  }
  if (b.type == Type::boolean) {
    if (a.type != Type::text) return {-1};
    return {order_of<int>(is_true(a.text), b.boolean)};
  }
  if (a.type == Type::text) {
    auto read = number_like(b, a.text);
    return read ? compare_numbers(*read, b) : no_order;
  }
  if (b.type == Type::text) {
    auto read = number_like(a, b.text);
    return read ? compare_numbers(a, *read) : no_order;
  }
  return compare_numbers(a, b);
}

// For >, >=, <, <=: two texts are compared as floating-point numbers.
Order compare_sizes(const Value& a, const Value& b) {
  if (a.type != Type::text || b.type != Type::text) return compare(a, b);
  auto x = java_double(a.text), y = java_double(b.text);
  if (!x || !y) return no_order;
  return {java_compare(*x, *y)};
}

Verdict verdict_of(bool b) {
  return b ? Verdict::yes : Verdict::no;
}

}  // namespace

const char* name_of(Verdict v) {
  switch (v) {
    case Verdict::no:
      return "no";
    case Verdict::yes:
      return "yes";
    case Verdict::unknown:
      return "unknown";
    case Verdict::failed:
      return "failed";
  }
  return "";
}

std::string CompileError::to_string() const {
  return fmt::format("line {}, column {}: {}", line, column, reason);
}

// One evaluation: the values of the properties that the expression names, found in one walk over the text, or
// each in a table when it is needed.
struct SqlExpression::Evaluation {
  const SqlExpression& e;
  const PropertyTable* table = nullptr;
  std::array<std::string_view, limits::filter_properties_max> values;  // empty: there is none

  Evaluation(const SqlExpression& expression, const PropertyTable& t) : e(expression), table(&t) {}
  Evaluation(const SqlExpression& expression, std::string_view properties) : e(expression) {
    const size_t n = e.names_.size();
    std::fill_n(values.begin(), n, std::string_view());
    for_each_property(properties, [&](std::string_view name, std::string_view value) {
      for (size_t i = 0; i < n; i++) {
        if (e.names_[i] != name) continue;
        values[i] = value;
        break;
      }
    });
  }

  std::string_view property(uint32_t index) const {
    return table != nullptr ? table->find(e.names_[index], e.hashes_[index]) : values[index];
  }
  const Node& node(uint32_t index) const { return e.nodes_[index]; }

  Value value(uint32_t index) const {
    const Node& n = node(index);
    switch (n.op) {
      case Op::null:
        return {};
      case Op::boolean:
        return Value::of(n.boolean);
      case Op::integer:
        return Value::of(n.integer);
      case Op::long_:
        return Value::of(n.long_);
      case Op::real:
        return Value::of(n.real);
      case Op::text:
        return Value::of(e.texts_[n.left]);
      case Op::property: {
        std::string_view v = property(n.left);
        return v.empty() ? Value{} : Value::of(v);
      }
      case Op::negate:
        return negated(value(n.left));
      default:
        return Value::of(verdict(index));
    }
  }

  static Value negated(const Value& v) {
    if (v.type == Type::failed) return v;
    // The smallest int negated is itself, as Java has it; no literal is one.
    if (v.type == Type::integer)
      return Value::of(static_cast<int32_t>(0u - static_cast<uint32_t>(v.integer)));
    if (v.type == Type::long_) return Value::of(static_cast<int64_t>(0ull - static_cast<uint64_t>(v.long_)));
    if (v.type == Type::real) return Value::of(-v.real);
    return {};
  }

  Verdict verdict(uint32_t index) const {
    const Node& n = node(index);
    switch (n.op) {
      case Op::null:
        return Verdict::unknown;
      case Op::boolean:
        return verdict_of(n.boolean);
      case Op::cast:  // a property is a text, and that is no boolean
        return property(node(n.left).left).empty() ? Verdict::unknown : Verdict::no;
      case Op::not_:
        return opposite(verdict(n.left));
      case Op::all:
        return group(n, Verdict::no, Verdict::yes);
      case Op::any:
        return group(n, Verdict::yes, Verdict::no);
      case Op::equal:
        return equal(value(n.left), n.right);
      case Op::is_null: {
        Value v = value(n.left);
        return v.type == Type::failed ? Verdict::failed : verdict_of(v.type == Type::null);
      }
      case Op::greater:
      case Op::greater_equal:
      case Op::less:
      case Op::less_equal:
        return sizes(n);
      case Op::in:
        return is_in(n);
      case Op::contains:
      case Op::starts_with:
      case Op::ends_with:
        return has_part(n);
      default:
        return Verdict::no;  // the parser lets no other stand for a boolean
    }
  }

  static Verdict opposite(Verdict v) {
    return v == Verdict::yes ? Verdict::no : v == Verdict::no ? Verdict::yes : v;
  }

  // AND and OR: the first child that is `decisive` ends it, NULL does not.
  Verdict group(const Node& n, Verdict decisive, Verdict otherwise) const {
    for (uint32_t i = 0; i < n.right; i++) {
      Verdict v = verdict(e.children_[n.left + i]);
      if (v == decisive || v == Verdict::failed) return v;
      if (v == Verdict::unknown) otherwise = v;
    }
    return otherwise;
  }

  Verdict equal(const Value& a, uint32_t right) const {
    if (a.type == Type::failed) return Verdict::failed;
    Value b = value(right);
    if (b.type == Type::failed) return Verdict::failed;
    if (a.type == Type::null) return b.type == Type::null ? Verdict::yes : Verdict::unknown;
    if (b.type == Type::null) return Verdict::no;
    if (a.type == Type::text && b.type == Type::text) return verdict_of(a.text == b.text);
    Order o = compare(a, b);
    return o.failed ? Verdict::failed : verdict_of(o.value == 0);
  }

  Verdict sizes(const Node& n) const {
    Value a = value(n.left);
    if (a.type == Type::null) return Verdict::unknown;
    if (a.type == Type::failed) return Verdict::failed;
    Value b = value(n.right);
    if (b.type == Type::null) return Verdict::unknown;
    if (b.type == Type::failed) return Verdict::failed;
    Order o = compare_sizes(a, b);
    if (o.failed) return Verdict::failed;
    switch (n.op) {
      case Op::greater:
        return verdict_of(o.value > 0);
      case Op::greater_equal:
        return verdict_of(o.value >= 0);
      case Op::less:
        return verdict_of(o.value < 0);
      default:
        return verdict_of(o.value <= 0);
    }
  }

  Verdict is_in(const Node& n) const {
    std::string_view v = property(node(n.left).left);
    if (v.empty()) return Verdict::unknown;
    auto begin = e.texts_.begin() + n.list;
    return verdict_of(std::binary_search(begin, begin + n.right, v) != n.negated);
  }

  // A missing property, what is no text, and an empty part give no, with NOT before it as well.
  Verdict has_part(const Node& n) const {
    std::string_view part = e.texts_[n.right];
    if (part.empty()) return Verdict::no;
    Value v = value(n.left);
    if (v.type == Type::failed) return Verdict::failed;
    if (v.type != Type::text) return Verdict::no;
    bool has = n.op == Op::contains      ? v.text.find(part) != std::string_view::npos
               : n.op == Op::starts_with ? v.text.starts_with(part)
                                         : v.text.ends_with(part);
    return verdict_of(has != n.negated);
  }
};

// AND is only `yes` when each of its parts is.
std::optional<NeededValue> SqlExpression::needed_by(uint32_t index) const {
  const Node& n = nodes_[index];
  if (n.op == Op::all) {
    for (uint32_t i = 0; i < n.right; i++)
      if (auto needed = needed_by(children_[n.left + i])) return needed;
    return std::nullopt;
  }
  if (n.op != Op::equal) return std::nullopt;
  const Node *property = &nodes_[n.left], *literal = &nodes_[n.right];
  if (property->op != Op::property) std::swap(property, literal);
  if (property->op != Op::property) return std::nullopt;
  NeededValue out;
  out.property = names_[property->left];
  if (literal->op == Op::text)
    out.text = texts_[literal->left];
  else if (literal->op == Op::integer)
    out.number = literal->integer;
  else if (literal->op == Op::long_)
    out.number = literal->long_;
  else
    return std::nullopt;
  return out;
}

Verdict SqlExpression::evaluate(std::string_view properties) const {
  return Evaluation(*this, properties).verdict(root_);
}

Verdict SqlExpression::evaluate(const PropertyTable& properties) const {
  return Evaluation(*this, properties).verdict(root_);
}

}  // namespace rmq::filter
