// A SQL92 filter as RocketMQ 5.5.0 has it: compiled once, then evaluated over the properties text of messages
// (name 0x01 value 0x02 ...) without allocating. Grammar, types and the rules for NULL are the reference's,
// with what is odd about them; tests/unit/filter/verdicts.txt has its own verdicts.
//
// Worth knowing: NOT binds tighter than a comparison; what follows a complete expression is ignored; a value
// that cannot be converted for a comparison ends the whole evaluation, not that comparison alone; 0.0 is no
// literal, integers have the range of a long.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"

namespace rmq::filter {

// Only `yes` lets a message pass.
enum class Verdict : uint8_t {
  no,
  yes,
  unknown,  // NULL
  failed,   // a value that is not the number, or not of the type, that it is compared as
};
const char* name_of(Verdict v);

struct TextPlace {
  uint32_t line = 1, column = 1;  // in characters, from 1
};
// Why a text is no expression, and where.
struct CompileError : TextPlace {
  std::string reason;
  std::string to_string() const;  // "line 1, column 5: the expression ends where ..."
};

class PropertyTable;

// A property without which, and with another value of which, no message passes.
struct NeededValue {
  std::string_view property;
  std::string_view text;          // unless it is a number
  std::optional<int64_t> number;  // the property's text, read as a long
};

class SqlExpression {
 public:
  // Texts of at most limits::filter_expression_bytes_max bytes, nested at most limits::filter_depth_max deep,
  // with at most limits::filter_properties_max different properties.
  static std::expected<std::shared_ptr<const SqlExpression>, CompileError> compile(std::string_view text);
  SqlExpression(const SqlExpression&) = delete;
  SqlExpression& operator=(const SqlExpression&) = delete;

  Verdict evaluate(std::string_view properties) const;
  // The same from properties that were read before. Cheaper from the second expression on.
  Verdict evaluate(const PropertyTable& properties) const;
  bool matches(std::string_view properties) const { return evaluate(properties) == Verdict::yes; }

  std::string_view text() const { return {text_.get(), text_bytes_}; }
  // Where something begins that is not part of the expression. RocketMQ takes such texts ("a LIKE 'x'" is the
  // property a and no more), but nobody can mean them.
  std::optional<TextPlace> ignored_from() const { return ignored_from_; }
  // What an evaluation costs at most, beside the walk over the properties: about that many times 10 ns.
  uint32_t cost() const { return static_cast<uint32_t>(10 + 2 * nodes_.size()); }
  // The properties that are looked at, each once.
  const std::vector<std::string_view>& properties() const { return names_; }
  // Of "a = 1 AND b > 2" that a is 1. Nothing: there is no such property, or it was not found. The texts are
  // the expression's.
  const std::optional<NeededValue>& needed() const { return needed_; }

 private:
  friend class Parser;
  struct Evaluation;

  enum class Op : uint8_t {
    null,
    boolean,  // value
    integer,
    long_,
    real,
    text,      // texts_[left]
    property,  // names_[left]
    cast,      // of a property, where a boolean is needed
    negate,
    not_,
    all,  // children_[left, left + right)
    any,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    is_null,
    in,  // left: the property; texts_[list, list + right), sorted
    contains,
    starts_with,
    ends_with,  // left in texts_[right]
  };
  struct Node {
    Op op = Op::null;
    bool negated = false;  // of in, contains, starts_with, ends_with
    uint32_t left = 0, right = 0, list = 0;
    union {
      bool boolean;
      int32_t integer;
      int64_t long_ = 0;
      double real;
    };
  };

  SqlExpression() = default;
  std::optional<NeededValue> needed_by(uint32_t node) const;

  std::unique_ptr<char[]> text_;
  size_t text_bytes_ = 0;
  std::unique_ptr<char[]> strings_;  // the decoded literals
  std::vector<Node> nodes_;
  std::vector<uint32_t> children_;
  std::vector<std::string_view> texts_;
  std::vector<std::string_view> names_;
  std::vector<size_t> hashes_;  // of names_, by PropertyTable
  uint32_t root_ = 0;
  std::optional<NeededValue> needed_;
  std::optional<TextPlace> ignored_from_;
};

}  // namespace rmq::filter
