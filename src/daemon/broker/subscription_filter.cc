#include "daemon/broker/subscription_filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/codes.h"
#include "proto/record.h"

namespace rmq::broker {

using proto::ResponseCode;

SubscriptionFilter SubscriptionFilter::of_tags(const proto::SubscriptionData& s) {
  SubscriptionFilter f;
  f.all_tags_ =
      s.class_filter_mode || s.sub_string.empty() || s.sub_string == proto::SubscriptionData::sub_all;
  if (f.all_tags_) return f;
  f.codes_ = s.code_set;
  std::sort(f.codes_.begin(), f.codes_.end());
  return f;
}

SubscriptionFilter SubscriptionFilter::of_expression(ExpressionRef e) {
  SubscriptionFilter f;
  f.expression_ = std::move(e);
  return f;
}

SubscriptionFilter SubscriptionFilter::of_retries(const ConsumerFilterManager& filters,
                                                  std::string_view group) {
  SubscriptionFilter f;
  f.filters_ = &filters;
  f.group_ = group;
  return f;
}

bool SubscriptionFilter::matches_tags_code(int64_t tags_code) const {
  return all_tags_ || (tags_code == static_cast<int32_t>(tags_code) &&
                       std::binary_search(codes_.begin(), codes_.end(), static_cast<int32_t>(tags_code)));
}

uint32_t SubscriptionFilter::record_cost() const {
  return expression_ != nullptr ? expression_->expression().cost() : 10;
}

std::optional<bool> SubscriptionFilter::known(int64_t physical_offset) const {
  return expression_ != nullptr ? expression_->known(physical_offset) : std::nullopt;
}

// What cannot be read is for the client to judge.
bool SubscriptionFilter::matches_record(Bytes bytes) const {
  if (expression_ != nullptr && bytes.size() >= proto::record_bytes_min)
    if (auto verdict =
            expression_->matches(load_be<int64_t>(bytes.data() + proto::record_physical_offset_at)))
      return *verdict;
  auto record = proto::parse_record(bytes);
  if (!record) return true;
  if (expression_ != nullptr) return expression_->matches(record->physical_offset, record->properties);
  auto topic = record->property(proto::prop::RETRY_TOPIC);
  const auto* filter = topic ? filters_->find(*topic, group_) : nullptr;
  return filter == nullptr || filter->expression->matches(record->physical_offset, record->properties);
}

bool SubscriptionFilter::matches_copy(Bytes bytes) const {
  if (expression_ == nullptr) return matches_record(bytes);
  auto record = proto::parse_record(bytes);
  return !record || expression_->expression().matches(record->properties);
}

static Refusal not_supported(std::string_view type) {
  return {ResponseCode::SYSTEM_ERROR,
          fmt::format("The broker does not support consumer to filter message by {}", type)};
}

std::expected<SubscriptionFilter, Refusal> filter_of_request(Broker& b, std::string_view topic,
                                                             std::string_view expression,
                                                             std::string_view type) {
  constexpr std::string_view unparsable = "parse the consumer's subscription failed";
  const bool by_tags = type.empty() || type == "TAG";
  if (by_tags && (expression.empty() || expression == proto::SubscriptionData::sub_all))
    return SubscriptionFilter();
  auto s = proto::SubscriptionData::build(topic, expression, type);
  if (!s) return std::unexpected(Refusal{ResponseCode::SUBSCRIPTION_PARSE_FAILED, std::string(unparsable)});
  if (by_tags) return SubscriptionFilter::of_tags(*s);
  if (!b.config.enablePropertyFilter) return std::unexpected(not_supported(type));
  auto compiled = b.filters.compile(expression, type);
  if (!compiled)
    return std::unexpected(Refusal{ResponseCode::SUBSCRIPTION_PARSE_FAILED,
                                   fmt::format("{}: {}", unparsable, compiled.error().to_string())});
  return SubscriptionFilter::of_expression(std::move(*compiled));
}

std::expected<SubscriptionFilter, Refusal> filter_of_group(Broker& b, std::string_view group,
                                                           const proto::SubscriptionData& s,
                                                           int64_t sub_version) {
  if (s.is_tag_type() || s.class_filter_mode) return SubscriptionFilter::of_tags(s);
  const auto* known = b.filters.find(s.topic, group);
  if (known == nullptr) {
    std::string_view reason = b.filters.why_refused(s.topic, group);
    return std::unexpected(Refusal{
        ResponseCode::FILTER_DATA_NOT_EXIST,
        fmt::format("The broker's consumer filter data is not exist!Your expression may be wrong!{}{}",
                    reason.empty() ? "" : " ", reason)});
  }
  if (known->data.client_version < sub_version)
    return std::unexpected(
        Refusal{ResponseCode::FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest"});
  if (!b.config.enablePropertyFilter) return std::unexpected(not_supported(s.expression_type));
  return SubscriptionFilter::of_expression(known->expression);
}

}  // namespace rmq::broker
