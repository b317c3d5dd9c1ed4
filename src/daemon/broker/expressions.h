// Compiled SQL92 expressions, each once: a thousand groups with the same expression share it, and what it has
// said about a message. One thread, the store's.
#pragma once

#include <deque>
#include <expected>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/broker/text_map.h"
#include "filter/property_table.h"
#include "filter/sql_expression.h"
#include "store/types.h"

namespace rmq::broker {

// The properties of the message that expressions look at. The first one reads what it needs of their text; it
// is often the only one. For the second all are read, and the others find them.
class LastProperties {
 public:
  // Null: they were not read.
  const filter::PropertyTable* find(int64_t physical_offset) const {
    return physical_offset == read_ ? &table_ : nullptr;
  }
  // Null for the first one.
  const filter::PropertyTable* get(int64_t physical_offset, std::string_view properties);
  uint64_t reads() const { return reads_; }

 private:
  int64_t seen_ = -1, read_ = -1;  // physical offsets
  filter::PropertyTable table_;
  uint64_t reads_ = 0;
};

// An expression with its verdicts on the messages that it has seen last. Records never change, so a verdict
// is by the record's physical offset.
class SharedExpression {
 public:
  // `last` is shared by all that look at the same messages.
  SharedExpression(std::shared_ptr<const filter::SqlExpression> e, std::shared_ptr<LastProperties> last)
      : expression_(std::move(e)), last_(std::move(last)) {
    if (const auto& n = expression_->needed())
      needed_ = store::NeededProperty{n->property, n->text, n->number};
  }

  // Nothing: not evaluated, or not lately.
  std::optional<bool> known(int64_t physical_offset) const {
    if (verdicts_.empty()) return std::nullopt;
    const uint64_t v = verdicts_[slot_of(physical_offset)];
    if (v >> 1 != static_cast<uint64_t>(physical_offset)) return std::nullopt;
    return (v & 1) != 0;
  }
  // Whether the message passes whose record, with these properties, lies there.
  bool matches(int64_t physical_offset, std::string_view properties);
  // The same without its properties; nothing: they are needed.
  std::optional<bool> matches(int64_t physical_offset);
  const filter::SqlExpression& expression() const { return *expression_; }
  const store::NeededProperty* needed() const { return needed_ ? &*needed_ : nullptr; }
  uint64_t evaluations() const { return evaluations_; }

 private:
  static constexpr size_t slots = 256;  // a pull reads no more messages that it passes on
  static size_t slot_of(int64_t physical_offset) {
    return static_cast<size_t>(static_cast<uint64_t>(physical_offset) * 0x9e3779b97f4a7c15 >> 56);
  }

  bool remember(int64_t physical_offset, filter::Verdict v);

  std::shared_ptr<const filter::SqlExpression> expression_;
  std::shared_ptr<LastProperties> last_;
  std::optional<store::NeededProperty> needed_;
  std::vector<uint64_t> verdicts_;  // offset * 2 + verdict; made at the first use
  uint64_t evaluations_ = 0;
};
using ExpressionRef = std::shared_ptr<SharedExpression>;

class ExpressionCache {
 public:
  // Compiles what is not there. The cache keeps those that were compiled last alive; whoever holds one, too.
  std::expected<ExpressionRef, filter::CompileError> get(std::string_view text);
  size_t known() const { return by_text_.size(); }
  const LastProperties& last() const { return *last_; }

 private:
  static constexpr size_t kept_max = 256, kept_bytes_max = 1 << 20;
  void keep(ExpressionRef e);

  std::shared_ptr<LastProperties> last_ = std::make_shared<LastProperties>();
  TextMap<std::weak_ptr<SharedExpression>> by_text_;  // some may be gone
  size_t look_through_at_ = 512;
  std::deque<ExpressionRef> kept_;
  size_t kept_bytes_ = 0;  // of their texts
};

}  // namespace rmq::broker
