// What lets messages of a topic pass to a consumer: tags, or a SQL92 expression. For every way to get
// messages (PULL_MESSAGE, POP_MESSAGE and NOTIFICATION carry their expression or go by the group's
// heartbeat).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/broker.h"
#include "daemon/broker/expressions.h"
#include "store/types.h"

namespace rmq::broker {

class SubscriptionFilter : public store::MessageFilter {
 public:
  SubscriptionFilter() = default;  // lets everything pass

  // Messages pass whose tag has one of the subscription's hashes; the client compares the tags themselves.
  static SubscriptionFilter of_tags(const proto::SubscriptionData& s);
  static SubscriptionFilter of_expression(ExpressionRef e);
  // Of a retry topic: messages pass that the group's expression for their original topic lets pass, or that
  // have none. `filters` outlives it.
  static SubscriptionFilter of_retries(const ConsumerFilterManager& filters, std::string_view group);

  bool by_expression() const { return expression_ != nullptr; }

  // What MessageStore::get() and LongPolling take; null when everything passes. Valid as long as this.
  const store::MessageFilter* wanted() const { return all_tags_ && !needs_record() ? nullptr : this; }

  bool matches_tags_code(int64_t tags_code) const override;
  bool needs_record() const override { return expression_ != nullptr || filters_ != nullptr; }
  uint32_t record_cost() const override;
  std::optional<bool> known(int64_t physical_offset) const override;
  bool matches_record(Bytes record) const override;
  const void* identity() const override {
    return all_tags_ && filters_ == nullptr ? expression_.get() : nullptr;
  }
  const store::NeededProperty* needed() const override {
    return expression_ != nullptr ? expression_->needed() : nullptr;
  }
  bool matches_copy(Bytes record) const override;

 private:
  bool all_tags_ = true;
  std::vector<int32_t> codes_;  // sorted
  ExpressionRef expression_;
  const ConsumerFilterManager* filters_ = nullptr;
  std::string group_;
};

// From an expression that a request carries; an empty `type` is TAG. Refused: what cannot be parsed (23, with
// place and reason), SQL92 without enablePropertyFilter (1).
std::expected<SubscriptionFilter, Refusal> filter_of_request(Broker& b, std::string_view topic,
                                                             std::string_view expression,
                                                             std::string_view type);
// From what a heartbeat of the group brought. Refused when its expression is not there (27) or older than
// `sub_version` (28), or without enablePropertyFilter (1).
std::expected<SubscriptionFilter, Refusal> filter_of_group(Broker& b, std::string_view group,
                                                           const proto::SubscriptionData& s,
                                                           int64_t sub_version);

}  // namespace rmq::broker
