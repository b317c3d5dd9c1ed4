// Who is connected: producers and consumers by group, from their heartbeats. A client leaves by
// unregistering, by closing its connection, or after channelExpiredTimeout without a heartbeat; the rest of
// its group is told (NOTIFY_CONSUMER_IDS_CHANGED): at once, and while more come and go, all changes of a
// while together, so that thousands who start together do not tell each other millions of times.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/text_map.h"
#include "daemon/connection.h"
#include "proto/bodies_client.h"
#include "uring/sync.h"

namespace rmq::broker {

// A client's connection within a group.
struct ClientChannel {
  std::shared_ptr<Connection> connection;
  std::string client_id;
  proto::LanguageCode language = proto::LanguageCode::JAVA;
  int32_t version = 0;
  int64_t last_update_ns = 0;
  int64_t last_update_wall_ms = 0;
};

struct ConsumerGroupInfo {
  std::string group;
  proto::ConsumeType consume_type = proto::ConsumeType::CONSUME_PASSIVELY;
  proto::MessageModel message_model = proto::MessageModel::CLUSTERING;
  proto::ConsumeFromWhere consume_from_where = proto::ConsumeFromWhere::CONSUME_FROM_LAST_OFFSET;
  std::map<Connection*, ClientChannel> channels;
  std::map<std::string, proto::SubscriptionData, std::less<>> subscriptions;
  int32_t heartbeat_fingerprint = 0;

  // Sorted. And as the body of GET_CONSUMER_LIST_BY_GROUP. Each member asks for one of them after each
  // change.
  const std::vector<std::string>& client_ids() const;
  const std::shared_ptr<const std::string>& list_body() const;
  const proto::SubscriptionData* subscription(std::string_view topic) const;
  const ClientChannel* channel_of(std::string_view client_id) const;

 private:
  friend class ClientManager;
  // After `channels` has changed.
  void members_changed() {
    ids_.clear();
    list_body_.reset();
  }
  // What was asked for since.
  mutable std::vector<std::string> ids_;
  mutable std::shared_ptr<const std::string> list_body_;
  int64_t told_ns_ = -ns_per_s;  // when its members were told last
};

class ClientManager {
 public:
  using ConsumerTable = TextMap<ConsumerGroupInfo>;
  using ProducerTable = TextMap<std::map<Connection*, ClientChannel>>;

  // A heartbeat's entry. True: members or subscriptions changed. `without_sub` leaves subscriptions as they
  // are.
  bool register_consumer(const proto::ConsumerData& data, const ClientChannel& channel, bool without_sub,
                         int32_t fingerprint, bool notify);
  void register_producer(std::string_view group, const ClientChannel& channel);
  void unregister_consumer(std::string_view group, Connection* c, bool notify);
  void unregister_producer(std::string_view group, Connection* c);
  // A closed connection leaves all groups. `notify_group` says whether a group's members are told.
  void remove_connection(Connection* c, bool (*notify_group)(const void*, std::string_view),
                         const void* context);
  // Closes connections whose last heartbeat is older; they leave as any closed connection does.
  void close_silent(int64_t now_ns, int64_t timeout_ns);

  // Called with each group whose last consumer has left.
  void set_on_last_left(std::function<void(std::string_view group)> f) { on_last_left_ = std::move(f); }

  const ConsumerGroupInfo* consumers(std::string_view group) const;
  // The connection of the client with that id which last said that it has producers; null: there is none.
  std::shared_ptr<Connection> producer_connection(std::string_view client_id) const;

  // A member that is told that its group has no offset for a queue asks next where the queue ends, and begins
  // there (CONSUME_FROM_LAST_OFFSET). What is sent between the two would be missed: so the end of the first
  // moment is kept, the last one of each connection, and given to one such question within 3 s.
  void keep_end(std::string_view group, const Connection* c, std::string_view topic, int32_t queue_id,
                int64_t end);
  std::optional<int64_t> take_end(const Connection* c, std::string_view topic, int32_t queue_id);

  const ConsumerTable& all_consumers() const { return consumers_; }
  const ProducerTable& all_producers() const { return producers_; }
  // Tells those whose turn has come; until `stopping` and stop().
  Task<void> tell_members(Event& stopping);
  void stop() { has_to_tell_.notify(); }
  uint64_t told() const { return told_; }  // notifications, of all members

 private:
  void notify_members(ConsumerGroupInfo& g);
  void tell(ConsumerGroupInfo& g, int64_t now_ns);

  struct KeptEnd {
    std::string topic;
    int32_t queue_id;
    int64_t end;
    int64_t since_ns;
  };
  ConsumerTable consumers_;
  std::unordered_map<const Connection*, KeptEnd> ends_;
  std::set<std::string, std::less<>> to_tell_;  // groups that have changed since they were told
  Event has_to_tell_;
  uint64_t told_ = 0;
  ProducerTable producers_;
  TextMap<std::shared_ptr<Connection>> producer_clients_;  // by client id
  std::function<void(std::string_view group)> on_last_left_;
};

}  // namespace rmq::broker
