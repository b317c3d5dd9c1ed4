// Requests to brokers that several verbs make, with their answers taken apart.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/context.h"
#include "proto/bodies_client.h"
#include "proto/bodies_config.h"
#include "proto/bodies_stats.h"
#include "proto/headers_offset.h"
#include "proto/remarks.h"

namespace rmq::ctl {

// Brokers that do not answer. A list is for a bad night, too: it shows what the others have, and ends with
// the failures of these.
class Silent {
 public:
  // True: nobody answered at `address`; the verb goes on without it. False: the failure is another one.
  bool passes_over(const std::string& address, const Failure& f);
  bool has(const std::string& address) const { return failures_.contains(address); }
  // For the end of the verb.
  Outcome<void> result() const;

 private:
  std::map<std::string, std::string> failures_;  // by address
};

// A change that is made at several brokers: one that fails keeps nobody from trying the others, and the verb
// ends with what became of each.
class Undone {
 public:
  void add(Failure f) { failures_.push_back(std::move(f)); }
  // What `f` of a broker gives; one that fails is taken out of `brokers`. A failure when none is left.
  template <class Broker, class F>
  Outcome<void> keep_those(std::vector<Broker>* brokers, F f) {
    for (auto it = brokers->begin(); it != brokers->end();) {
      Outcome<void> done = f(*it);
      if (!done) add(std::move(done.error()));
      it = done ? it + 1 : brokers->erase(it);
    }
    return brokers->empty() ? result() : Outcome<void>();
  }
  // The change itself, and the end of the verb: `f` adds to `t`, which is shown when it has a row or when
  // nothing failed.
  template <class Broker, class F>
  Outcome<void> change(Context& c, std::vector<Broker> brokers, const Table& t, F f) {
    Outcome<void> done = keep_those(&brokers, f);
    if (t.rows() != 0 || done) c.print_table(t);
    return result();
  }
  // All of them in one line. The exit code is that of the first.
  Outcome<void> result() const;

 private:
  std::vector<Failure> failures_;
};

struct KeyValue {
  std::string key, value;
};
// Configuration as servers send and take it, in lines of "key=value" as Java writes properties.
std::vector<KeyValue> parse_properties(std::string_view text);
std::string property_line(std::string_view key, std::string_view value);
bool is_property_key(std::string_view key);

// GET_BROKER_RUNTIME_INFO and GET_BROKER_CONFIG.
Outcome<std::vector<KeyValue>> runtime_values_at(Channel& broker);
Outcome<std::vector<KeyValue>> config_values_at(Channel& broker);
// UPDATE_BROKER_CONFIG or UPDATE_NAMESRV_CONFIG. True: it is kept, and waits for a restart, which is noted.
template <class Command>
Outcome<bool> change_config_at(Context& c, Channel& server, std::string_view key, std::string_view value) {
  TRY_VAR(reply, server.call<Command>({}, property_line(key, value)));
  if (reply.ok()) return false;
  const std::string_view remark = reply.command.remark;
  if (remark.find(proto::needs_restart_remark) == std::string_view::npos) return server.refusal(reply);
  c.note(server.peer().to_string() + ": " + std::string(remark));
  return true;
}
// Empty: there is no such key.
std::string_view value_of(const std::vector<KeyValue>& values, std::string_view key);

// Of a Failure to connect the reason alone: "Connection refused".
std::string connect_reason(const Failure& f);

// Nothing: the broker has no such topic.
Outcome<std::optional<proto::TopicConfig>> topic_config_at(Channel& broker, std::string_view topic);
// Creates or changes it. `attributes` as UPDATE_AND_CREATE_TOPIC takes them; empty: they stay.
Outcome<void> put_topic_at(Channel& broker, const proto::TopicConfig& config, const std::string& attributes);
// The masters that have the topic, of the wanted cluster or broker.
std::vector<BrokerNode> topic_holders(const proto::TopicRouteData& route, const Options& o);
// The same for what is asked about one topic: none is a failure, as what is wanted is not there.
Outcome<std::vector<BrokerNode>> holders_of(Context& c, const std::string& topic);
// Nothing: nobody of the group is online there.
Outcome<std::optional<proto::ConsumerConnection>> members_at(Channel& broker, std::string_view group);

// All that it has, those that it made for itself included.
Outcome<proto::TopicConfigTable> topics_at(Channel& broker);
Outcome<proto::SubscriptionGroupTable> groups_at(Channel& broker);
// Topics and groups that brokers make for themselves, and topics that follow from a group (retries, dead
// letters). `servers`: names of clusters and brokers, whose topics those are.
bool is_made_by_brokers(std::string_view topic, const std::vector<std::string>& servers);
bool is_group_of_brokers(std::string_view group);
Outcome<std::vector<std::string>> server_names(Context& c);

// GET_MIN_OFFSET and GET_MAX_OFFSET.
template <class C>
Outcome<int64_t> queue_offset(Channel& broker, std::string_view topic, int32_t queue_id) {
  typename C::Request h;
  h.topic = topic;
  h.queue_id = queue_id;
  TRY_VAR(reply, broker.ask<C>(h));
  auto answer = C::decode_response(reply.command);
  if (!answer)
    return fail(Exit::bad_input,
                broker.peer().to_string() + ": malformed answer: " + proto::remark_of(answer.error()));
  return answer->offset;
}

// Messages of a queue that are there and that a group has not confirmed.
struct Behind {
  proto::MessageQueue queue;
  int64_t messages = 0;
};
// The queues of which something is left for the group; of that topic, or of all when it is empty. What was
// deleted since nobody has to consume. A group or topic that the broker does not know has none.
Outcome<std::vector<Behind>> behind_at(Channel& broker, const std::string& group, const std::string& topic);

}  // namespace rmq::ctl
