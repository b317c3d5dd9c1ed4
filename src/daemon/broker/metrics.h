// What the broker counts for the exporter, as RocketMQ 5's exporter does: by topic, by topic and group, by
// request and response code. Plain numbers of the broker's loop: to count costs a look-up, or less when it is
// the same series as the last time. What is counted of a topic or group goes with it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/broker/pair_index.h"
#include "daemon/broker/text_map.h"
#include "daemon/metric_histogram.h"
#include "proto/codes.h"

namespace rmq {
class Request;
}

namespace rmq::broker {

// TopicMessageType of RocketMQ, of a message that is sent.
enum class MessageType : uint8_t { normal, fifo, delay, transaction };
inline constexpr size_t message_types = 4;
std::string_view name_of(MessageType t);

// Families of request codes that RocketMQ's broker serves with a thread pool each.
enum class Processor : uint8_t {
  send,
  async_put,
  pull,
  ack,
  query_message,
  client_manager,
  heartbeat,
  lite_pull,
  transaction,
  consumer_manager,
  admin,
  reply,
};
inline constexpr size_t processors = 12;
Processor processor_of(int32_t request_code);
std::string_view name_of(Processor p);

struct Traffic {
  uint64_t messages = 0, bytes = 0;
};

class BrokerMetrics {
 public:
  static constexpr std::array<double, 6> size_bounds{1024, 4096, 524'288, 1'048'576, 2'097'152, 4'194'304};
  static constexpr std::array<double, 9> rpc_bounds_ms{1, 3, 5, 7, 10, 100, 1000, 2000, 3000};
  static constexpr std::array<double, 5> create_bounds_ms{10, 100, 1000, 3000, 5000};
  static constexpr std::array<double, 6> finish_bounds_s{5, 60, 600, 3600, 43'200, 86'400};
  static constexpr std::array<double, 6> delay_bounds_s{60, 600, 3600, 43'200, 86'400, 259'200};

  // ---- counting ----
  // `messages` of one send, whose records have `bytes` together.
  void message_in(std::string_view topic, MessageType type, uint64_t messages, uint64_t bytes);
  // An answer that gives messages to a consumer.
  void messages_out(std::string_view topic, std::string_view group, uint64_t messages, uint64_t bytes);
  void popped(std::string_view topic, std::string_view group, bool retry, uint64_t messages, uint64_t bytes);
  void dead_letter(std::string_view topic, std::string_view group);
  void transaction_ended(std::string_view topic, bool commit, int64_t since_birth_ms);
  void timer_taken(std::string_view topic, int64_t delay_ms);
  void timer_delivered(std::string_view topic);
  void revived(std::string_view topic, std::string_view group, uint64_t messages);
  void answered(const Request& r, proto::ResponseCode code, int64_t now_ns);
  void at_work(int32_t request_code, int change) { at_work_[index(processor_of(request_code))] += change; }

  void forget_topic(std::string_view topic);
  void forget_group(std::string_view group);
  // Forgets what those say is there no more.
  template <class HasTopic, class HasGroup>
  void forget_where(HasTopic has_topic, HasGroup has_group) {
    looked_at_ += topics_.size() + pairs_.size();
    std::erase_if(topics_, [&](const auto& e) { return !has_topic(e.first); });
    std::erase_if(pairs_, [&](const auto& e) {
      const bool goes = !has_topic(topic_of(e.first)) || !has_group(group_of(e.first));
      if (goes) index_.remove(topic_of(e.first), group_of(e.first));
      return goes;
    });
    last_topic_ = nullptr;
    last_pair_ = nullptr;
  }
  // How many series all forgetting has looked at.
  uint64_t looked_at() const { return looked_at_; }

  // ---- what was counted ----
  struct OfTopic {
    std::array<Traffic, message_types> in;
    std::array<MetricHistogram<6>, message_types> sizes;
    uint64_t commits = 0, rollbacks = 0;
    MetricHistogram<6> finish;
    uint64_t timers_taken = 0, timers_delivered = 0;
    MetricHistogram<6> delays;
  };
  struct OfPair {  // topic and group
    Traffic pulled;
    std::array<Traffic, 2> popped;  // without and with is_retry
    uint64_t dead_letters = 0, revived = 0;
  };
  struct Rpc {
    int32_t request_code = 0, response_code = 0;
    bool held = false, oneway = false, unwritten = false;
    MetricHistogram<9> ms;
  };
  const TextMap<OfTopic>& topics() const { return topics_; }
  const TextMap<OfPair>& pairs() const { return pairs_; }  // by "topic@group"
  const std::unordered_map<uint64_t, Rpc>& rpcs() const { return rpcs_; }
  int64_t at_work(Processor p) const { return at_work_[index(p)]; }
  struct Creation {
    std::array<std::array<MetricHistogram<5>, 2>, 2> topic;  // by success, by is_system
    std::array<MetricHistogram<5>, 2> group;                 // by success
  };
  const Creation& creation() const { return creation_; }
  static std::string_view topic_of(std::string_view pair) { return pair.substr(0, pair.find('@')); }
  static std::string_view group_of(std::string_view pair) { return pair.substr(pair.find('@') + 1); }

 private:
  static size_t index(Processor p) { return static_cast<size_t>(p); }
  OfTopic& of(std::string_view topic);
  OfPair& of(std::string_view topic, std::string_view group);
  void forget_pair(std::string_view topic, std::string_view group);
  static constexpr int32_t unknown_code = -1;
  Rpc& rpc_of(const Request& r, int32_t request_code, int32_t response_code);
  void created(const Request& r, proto::ResponseCode code, double ms);

  TextMap<OfTopic> topics_;
  TextMap<OfPair> pairs_;
  PairIndex index_;  // of pairs_
  uint64_t looked_at_ = 0;
  std::unordered_map<uint64_t, Rpc> rpcs_;
  Creation creation_;
  std::array<int64_t, processors> at_work_{};
  // The last ones, whose keys are those of the maps.
  TextMap<OfTopic>::value_type* last_topic_ = nullptr;
  TextMap<OfPair>::value_type* last_pair_ = nullptr;
  uint64_t last_rpc_key_ = 0;
  Rpc* last_rpc_ = nullptr;
  std::string key_;
};

}  // namespace rmq::broker
