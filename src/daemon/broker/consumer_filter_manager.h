// What consumer groups filter topics by, from their heartbeats, and consumerFilter.json. Subscriptions by
// tags are not here. An expression outlives the group's last member by filterDataCleanTimeSpan, as a restart.
#pragma once

#include <expected>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/expressions.h"
#include "daemon/broker/persisted_table.h"
#include "proto/bodies_client.h"
#include "proto/bodies_filter.h"

namespace rmq::broker {

class ConsumerFilterManager : public PersistedTable {
 public:
  // `clean_after_ms`: filterDataCleanTimeSpan, which may change.
  ConsumerFilterManager(Disk& disk, std::string path, const int64_t& clean_after_ms)
      : PersistedTable(disk, std::move(path)), clean_after_ms_(clean_after_ms) {}

  struct Filter {
    proto::ConsumerFilterData data;
    ExpressionRef expression;
  };
  // What the group filters the topic by, also when nobody of it is there. Null: nothing, or what its
  // heartbeat brought was no expression.
  const Filter* find(std::string_view topic, std::string_view group) const;

  // A heartbeat of the group brought these, all that it subscribes to. Of one topic a newer version counts,
  // an older or the same one is ignored. A newer one that is no expression leaves nothing; it is said in the
  // journal.
  void register_group(std::string_view group, const std::vector<proto::SubscriptionData>& subscriptions,
                      int64_t now_ms);
  // The group's last member has left.
  void unregister_group(std::string_view group, int64_t now_ms);
  // Drops those whose group is away for too long. Then saves, when something has changed.
  Task<void> clean_and_save(int64_t now_ms);

  // Why the group's expression for the topic is none, with the place; empty: it is one, or there is none.
  std::string_view why_refused(std::string_view topic, std::string_view group) const;

  // Any expression; its type is SQL92 or it is refused.
  std::expected<ExpressionRef, filter::CompileError> compile(std::string_view expression,
                                                             std::string_view type);

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;

 private:
  using Groups = std::map<std::string, Filter, std::less<>>;
  struct Refused {
    int64_t client_version = 0;
    std::string reason;
  };
  void register_one(std::string_view group, const proto::SubscriptionData& s, int64_t now_ms);
  void refuse(std::string_view group, const proto::SubscriptionData& s, std::string reason);
  Filter* find_to_change(std::string_view topic, std::string_view group);
  void set_dead(std::string_view topic, std::string_view group, int64_t now_ms);

  const int64_t& clean_after_ms_;
  ExpressionCache expressions_;
  std::map<std::string, Groups, std::less<>> topics_;
  TextMap<std::set<std::string>> topics_of_;  // by group
  // What the last heartbeats of online groups brought that is no expression, by group and topic.
  TextMap<std::map<std::string, Refused, std::less<>>> refused_;
  bool changed_ = false;
};

}  // namespace rmq::broker
