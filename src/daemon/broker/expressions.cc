#include "daemon/broker/expressions.h"

#include <algorithm>

namespace rmq::broker {

bool SharedExpression::matches(int64_t physical_offset, std::string_view properties) {
  if (auto verdict = known(physical_offset)) return *verdict;
  if (verdicts_.empty()) verdicts_.assign(slots, UINT64_MAX);
  evaluations_++;
  const bool verdict = expression_->matches(properties);
  verdicts_[slot_of(physical_offset)] = static_cast<uint64_t>(physical_offset) << 1 | (verdict ? 1 : 0);
  return verdict;
}

std::expected<ExpressionRef, filter::CompileError> ExpressionCache::get(std::string_view text) {
  auto it = by_text_.find(text);
  if (it != by_text_.end())
    if (ExpressionRef e = it->second.lock()) return e;
  auto compiled = filter::SqlExpression::compile(text);
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  auto e = std::make_shared<SharedExpression>(std::move(*compiled));
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
