// The consumer groups that this broker knows: their configuration and subscriptionGroup.json with its log.
// Changes of the log, each with the data version that it made: "G <version> <configuration>", "D <version>
// <group>", and "F <version> <bits> <topic>@<group>" for what the group may not do.
#pragma once

#include <string>
#include <string_view>

#include "daemon/broker/logged_table.h"
#include "daemon/broker/text_map.h"
#include "daemon/config.h"
#include "proto/bodies_config.h"

namespace rmq::broker {

class GroupManager : public LoggedTable {
 public:
  GroupManager(Disk& disk, std::string path, const BrokerConfig& config);

  // Null when unknown. The pointer is good until the next change, of a group named as a light queue until the
  // next find(): each such name is a group, of which no table knows.
  const proto::SubscriptionGroupConfig* find(std::string_view group) const;
  // Also creates an unknown group where autoCreateSubscriptionGroup or its name allow it. A creation is in
  // memory at once and saved soon after (save_soon). Null: refused.
  const proto::SubscriptionGroupConfig* find_or_create(std::string_view group, int64_t now_ms);
  bool put(proto::SubscriptionGroupConfig c, int64_t now_ms);
  bool remove(std::string_view group, int64_t now_ms);
  void add_system_groups(int64_t now_ms);
  // One that every broker has, or of the system.
  static bool is_predefined(std::string_view group);
  // UPDATE_AND_GET_GROUP_FORBIDDEN: the group may not read the topic by its registered subscription. False
  // from set_: it was so already.
  bool is_read_forbidden(std::string_view group, std::string_view topic) const;
  bool set_read_forbidden(std::string_view group, std::string_view topic, bool forbidden, int64_t now_ms);
  const proto::DataVersion& data_version() const { return version_; }
  const TextMap<proto::SubscriptionGroupConfig>& all() const { return groups_; }
  proto::SubscriptionGroupWrapper snapshot() const;

  // True once after find_or_create made one: the caller awaits save().
  bool take_unsaved() { return std::exchange(unsaved_, false); }

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;
  bool apply(std::string_view change) override;

 private:
  void forbid(const std::string& group, const std::string& topic, int32_t bits);
  const BrokerConfig& config_;
  TextMap<proto::SubscriptionGroupConfig> groups_;
  mutable proto::SubscriptionGroupConfig light_;
  std::map<std::string, std::map<std::string, int32_t>> forbidden_;  // bits of proto::perm
  proto::DataVersion version_;
  bool unsaved_ = false;
};

}  // namespace rmq::broker
