// What the name server knows: brokers, which of them are alive, and the queues of each topic on each broker.
// A plain data structure of one thread: no I/O, no clock of its own (times come in), no connections (a
// channel is a token that the caller chose).
//
// Topics and broker sets point at each other, so a broker that comes or goes touches its own topics only. The
// encoded answer of a route query is kept beside the topic until something in it changes.
//
// Versions. Each queue entry remembers the data version with which it came, and a deleted one leaves its
// version behind. A registration changes an entry only when it is not older than what made the entry: a
// snapshot that a broker took before a change, and that arrives after it, neither undoes the change nor
// brings a deleted topic back. (Apache's name server compares with one version per broker, and loses one of
// two changes that cross.) A broker that registers anew is believed whatever its version.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proto/bodies_route.h"

namespace rmq::namesrv {

// Hash look-ups by std::string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

// Identifies a broker's connection; 0: none. Never reused while entries with it exist.
using Channel = uint64_t;

// True when a registration with version `a` was made before one with version `b` by the same broker. Where
// counter and clock disagree (files restored, clock stepped) neither is older.
bool is_older(const proto::DataVersion& a, const proto::DataVersion& b);

struct RouteOptions {
  bool support_acting_master = false;
  bool delete_missing_topics = false;  // deleteTopicWithBrokerRegistration
};

class RouteTable {
 public:
  // What a registration's body is: all topics; one of several parts of all; what has changed.
  enum class Extent : uint8_t { whole, first_part, next_part, last_part, difference };
  struct Registration {
    std::string_view cluster, broker_name, broker_addr, ha_server_addr;
    int64_t broker_id = 0;
    int64_t timeout_ns = 0;
    std::optional<bool> enable_acting_master;  // absent: a broker older than 5.0
    std::optional<std::string_view> zone_name;
    Channel channel = 0;
    Extent extent = Extent::whole;
    proto::DataVersion base;  // of a difference
  };
  struct Registered {
    // refused: the first registration of a broker has exactly one topic. ignored: another address holds the
    // broker id with a higher state version. incomplete: a difference from a version that is not here, or a
    // part without the first.
    enum class Outcome : uint8_t { done, refused, ignored, incomplete } outcome = Outcome::done;
    bool is_new = false;  // this address was not known
    bool min_id_changed = false;
    std::string ha_server_addr, master_addr;  // of the master, for a slave; empty: no live master
  };
  // `now_ns` is monotonic, as everywhere here.
  Registered register_broker(const Registration& r, const proto::RegisterBrokerBody& body, int64_t now_ns);
  // Something: a registration with the same body and header is in effect, and this counts as one more; the
  // body need not be read. `fingerprint` is of body and header.
  std::optional<Registered> refresh_if_same(const Registration& r, uint64_t fingerprint, int64_t now_ns);
  // To be told after register_broker() took that body.
  void set_fingerprint(std::string_view cluster, std::string_view addr, uint64_t fingerprint);

  struct Gone {  // a broker that was removed from its set
    std::string cluster, broker_name, broker_addr;
    int64_t broker_id = 0;
    Channel channel = 0;
    bool min_id_changed = false;  // others are left, and the smallest id is another now
    bool enable_acting_master = false;
  };
  std::optional<Gone> unregister_broker(std::string_view cluster, std::string_view broker_name,
                                        std::string_view broker_addr);
  std::vector<Gone> channel_closed(Channel channel);
  // Removes who was silent for longer than its timeout. Also forgets old deletions.
  std::vector<Gone> expire(int64_t now_ns);

  // A sign of life without a registration.
  void heartbeat(std::string_view cluster, std::string_view addr, int64_t now_ns);
  // The version of the last registration; null: unknown broker.
  const proto::DataVersion* data_version(std::string_view cluster, std::string_view addr) const;

  void register_topic(std::string_view topic, const std::vector<proto::QueueData>& queues);
  // With a cluster: only from the brokers of that cluster.
  void delete_topic(std::string_view topic, std::optional<std::string_view> cluster, int64_t now_ns);
  // Clears or sets the write bit in all topics of a broker; how many.
  int32_t wipe_write_perm(std::string_view broker_name);
  int32_t add_write_perm(std::string_view broker_name);

  // The body of a route answer, encoded; null: no such topic. Valid until the table is used again.
  const std::string* route(std::string_view topic, proto::JsonStyle style, std::string_view order_conf);
  std::optional<proto::TopicRouteData> route_data(std::string_view topic, std::string_view order_conf) const;
  // The options, or order configs, of any topic changed.
  void forget_answers();
  void forget_answer(std::string_view topic);
  void set_options(RouteOptions o);

  proto::ClusterInfo cluster_info() const;
  proto::BrokerMemberGroup member_group(std::string_view cluster, std::string_view broker_name) const;
  std::vector<std::string> all_topics() const;
  std::vector<std::string> topics_of_cluster(std::string_view cluster) const;
  proto::TopicList system_topics() const;
  // Topics whose topicSysFlag, masked, has this value.
  std::vector<std::string> topics_by_flag(int32_t mask, int32_t value) const;
  // HA address that the broker registered; empty: unknown.
  std::string ha_address(std::string_view cluster, std::string_view addr) const;

  size_t topic_count() const { return topics_.size(); }
  size_t broker_count() const { return live_.size(); }

 private:
  struct Topic;
  struct Deleted {
    proto::DataVersion version;
    int64_t at_ns = 0;
  };
  struct BrokerSet {
    proto::BrokerData data;
    std::unordered_set<Topic*> topics;
    proto::DataVersion newest;  // of the registrations that gave topics
    TextMap<Deleted> deleted;
    uint32_t round = 0;  // of registrations in parts
  };
  struct QueueEntry {
    BrokerSet* set;
    int32_t read_queue_nums, write_queue_nums, perm, topic_sys_flag;
    uint32_t round;  // the last one that had it
    proto::DataVersion version;
    std::unique_ptr<std::string> mapping;  // TopicQueueMappingInfo of a static topic, JSON
  };
  struct Topic {
    std::string name;
    std::vector<QueueEntry> queues;  // by broker name
    std::string answers[2];          // fastjson, strict; empty: not made
    std::list<Topic*>::iterator cached_at;
    bool is_cached = false;
  };
  struct Live {
    std::string cluster, broker_name, broker_addr, ha_server_addr;
    int64_t broker_id = 0;
    int64_t last_update_ns = 0, timeout_ns = 0;
    proto::DataVersion version;
    Channel channel = 0;
    std::optional<std::vector<std::string>> filter_servers;
    uint64_t fingerprint = 0;
    bool in_parts = false;  // the last part has not come
    bool is_new = false;    // these parts are its first registration
  };

  static std::string live_key(std::string_view cluster, std::string_view addr);
  Live* find_live(std::string_view cluster, std::string_view addr);
  const Live* find_live(std::string_view cluster, std::string_view addr) const;
  void forget_live(std::string_view cluster, std::string_view addr);
  BrokerSet* find_set(std::string_view broker_name) const;
  Topic* find_topic(std::string_view name) const;
  static QueueEntry* find_entry(Topic& t, const BrokerSet& set);
  Topic& make_topic(std::string_view name);
  QueueEntry& make_entry(Topic& t, BrokerSet& set);
  void remove_entry(Topic& t, BrokerSet& set);  // and the topic when it was the last
  void remove_set(BrokerSet& set);
  void clear_write_bit(BrokerSet& set);
  bool id_is_taken(const BrokerSet& set, const Registration& r, const proto::DataVersion& version) const;
  bool is_incomplete(const Registration& r, const Live* live, const BrokerSet* set) const;
  void take_topics(const Registration& r, BrokerSet& set, bool force, const proto::RegisterBrokerBody& body);
  void take_topic(const proto::TopicConfig& c, int32_t perm, BrokerSet& set, bool force,
                  const proto::DataVersion& version);
  void take_mappings(BrokerSet& set, std::string_view mappings);
  void remove_missing_topics(const Registration& r, BrokerSet& set, const proto::RegisterBrokerBody& body);
  static void take_header(Live& l, const Registration& r, int64_t now_ns);
  void fill_master(const Registration& r, const BrokerSet& set, Registered& out) const;
  proto::TopicRouteData build_route(const Topic& t, std::string_view order_conf) const;
  void act_as_master(proto::TopicRouteData& route) const;
  void changed(Topic& t);
  void changed(BrokerSet& set);
  void remember_answer(Topic& t, size_t added_bytes);

  RouteOptions options_;
  TextMap<std::unique_ptr<Topic>> topics_;
  TextMap<std::unique_ptr<BrokerSet>> sets_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> clusters_;
  TextMap<Live> live_;
  std::list<Topic*> cached_;  // oldest first
  size_t cached_bytes_ = 0;
  size_t filter_server_lists_ = 0;
};

}  // namespace rmq::namesrv
