#include "daemon/broker/expressions.h"

#include <algorithm>

namespace rmq::broker {

const filter::PropertyTable* LastProperties::get(int64_t physical_offset, std::string_view properties) {
  if (read_ == physical_offset) return &table_;
  if (seen_ != physical_offset) {
    seen_ = physical_offset;
    return nullptr;
  }
  reads_++;
  table_.read(properties);
  read_ = physical_offset;
  return &table_;
}

bool SharedExpression::matches(int64_t physical_offset, std::string_view properties) {
  if (auto verdict = known(physical_offset)) return *verdict;
  const filter::PropertyTable* table = last_->get(physical_offset, properties);
  return remember(physical_offset,
                  table != nullptr ? expression_->evaluate(*table) : expression_->evaluate(properties));
}

std::optional<bool> SharedExpression::matches(int64_t physical_offset) {
  if (auto verdict = known(physical_offset)) return verdict;
  const filter::PropertyTable* table = last_->find(physical_offset);
  if (table == nullptr) return std::nullopt;
  return remember(physical_offset, expression_->evaluate(*table));
}

bool SharedExpression::remember(int64_t physical_offset, filter::Verdict v) {
  if (verdicts_.empty()) verdicts_.assign(slots, UINT64_MAX);
  evaluations_++;
  const bool passes = v == filter::Verdict::yes;
  verdicts_[slot_of(physical_offset)] = static_cast<uint64_t>(physical_offset) << 1 | (passes ? 1 : 0);
  return passes;
}

std::expected<ExpressionRef, filter::CompileError> ExpressionCache::get(std::string_view text) {
  auto it = by_text_.find(text);
  if (it != by_text_.end())
    if (ExpressionRef e = it->second.lock()) return e;
  auto compiled = filter::SqlExpression::compile(text);
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  auto e = std::make_shared<SharedExpression>(std::move(*compiled), last_);
  by_text_.insert_or_assign(std::string(text), e);
  keep(e);
  if (by_text_.size() >= look_through_at_) {
    std::erase_if(by_text_, [](const auto& entry) { return entry.second.expired(); });
    look_through_at_ = std::max<size_t>(2 * kept_max, 2 * by_text_.size());
  }
  return e;
}

void ExpressionCache::keep(ExpressionRef e) {
  kept_bytes_ += e->expression().text().size();
  kept_.push_back(std::move(e));
  while (kept_.size() > kept_max || kept_bytes_ > kept_bytes_max) {
    kept_bytes_ -= kept_.front()->expression().text().size();
    kept_.pop_front();
  }
}

}  // namespace rmq::broker
