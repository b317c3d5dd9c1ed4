// Tells every name server about this broker: all topics when it is met, what changes at once, a sign of life
// each registerNameServerPeriod, goodbye at the end. One that does not answer holds up nobody else, and is
// tried again within a second, so that it has everything when it is back.
//
// rmq-namesrvd takes a whole registration in parts of half a megabyte and then differences, each from the
// data version that it has to the next (QueryDataVersionRequestHeader says how the two find out). Others get
// what RocketMQ's broker sends: everything in one frame, in several when it would be too long for one or
// enableSplitRegistration is set, and only the topics that changed in between.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/remoting_client.h"
#include "proto/bodies_config.h"
#include "proto/bodies_route.h"
#include "proto/headers_namesrv.h"

namespace rmq::broker {

class Broker;

class Registration {
 public:
  Registration(Broker& broker, Net& net);
  // Keeps every name server up to date until the broker's `stopping`.
  void start(Scope& scope);
  // Resolves when each name server has what was true at the call, or could not be told. Those that could not
  // be reached the last time are not waited for: they get it when they are back.
  Task<void> tell_changes();
  Task<void> unregister_all();
  Task<void> stop();
  // "2 of 3 name servers": for the status line.
  std::string status() const;
  size_t servers() const { return servers_.size(); }
  size_t reached() const;  // of them, the last time
  bool has_servers() const { return !servers_.empty(); }
  // The route of a topic from the first name server that answers; nothing when it does not know the topic.
  // Fails when none answers.
  Task<Result<std::optional<proto::TopicRouteData>>> topic_route(std::string topic);

 private:
  struct Held {                 // what a name server has
    uint64_t change_count = 0;  // TopicManager's
    proto::DataVersion version;
  };
  struct Server {
    Server(Net& net, std::string address) : client(net, std::move(address)) {}
    RemotingClient client;
    Event wake;  // set when its connection closes, and when it could not be reached
    Semaphore turn{1};
    uint64_t wanted = 0, served = 0;  // calls of update()
    uint64_t met = 0;                 // the connection over which it was asked what it has
    bool takes_differences = false;
    std::optional<Held> held;
    uint32_t beats = 0;  // signs of life since everything was sent
    bool reached = false;
    bool refused = false;
    bool known = false;  // whether `reached` says anything yet
  };
  using Names = std::vector<std::string>;
  // again: it has less than was thought.
  enum class Outcome : uint8_t { done, again, failed };

  Task<void> keep(Server& s);
  Task<void> update(Server& s);
  Task<void> bring_up_to_date(Server& s);
  Task<bool> meet(Server& s);
  Task<Outcome> tell_all(Server& s);
  Task<Outcome> tell_difference(Server& s);
  Task<Outcome> tell_other(Server& s);
  Task<Outcome> show_life(Server& s);
  Task<Outcome> send(Server& s, proto::RegisterBrokerRequestHeader h, std::string body);
  Task<void> unregister_at(Server& s);
  proto::RegisterBrokerRequestHeader header() const;
  proto::QueryDataVersionRequestHeader version_query() const;
  proto::RegisterBrokerBody body_of(std::span<const std::string> names) const;
  std::vector<Names> parts_for(const Server& s) const;
  int64_t deadline() const;
  void note(Server& s, bool reached, std::string_view reason);

  Broker& broker_;
  const std::string ha_address_;
  std::vector<std::unique_ptr<Server>> servers_;
  int64_t parts_sent_ = 0;
  bool stopped_ = false;
};

}  // namespace rmq::broker
