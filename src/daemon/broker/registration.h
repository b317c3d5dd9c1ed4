// Tells every name server about this broker: all topics at start and then each registerNameServerPeriod, a
// changed topic at once, goodbye at the end. A name server that does not answer holds up nobody else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/remoting_client.h"
#include "proto/bodies_config.h"
#include "proto/bodies_route.h"

namespace rmq::broker {

class Broker;

class Registration {
 public:
  Registration(Broker& broker, Net& net);
  // Registers again and again until the broker's `stopping`.
  void start(Scope& scope);
  // Everything to every name server; resolves when each has answered or failed.
  Task<void> register_all();
  // One changed topic to every name server.
  Task<void> register_topic(proto::TopicConfig topic);
  Task<void> unregister_all();
  Task<void> stop();
  // "2 of 3 name servers": for the status line.
  std::string status() const;
  size_t servers() const { return servers_.size(); }
  size_t reached() const;  // of them, the last time
  bool registered_once() const { return registered_once_; }
  bool has_servers() const { return !servers_.empty(); }
  // The route of a topic from the first name server that answers; nothing when it does not know the topic.
  // Fails when none answers.
  Task<Result<std::optional<proto::TopicRouteData>>> topic_route(std::string topic);

 private:
  struct Server {
    Server(Net& net, std::string address) : client(net, std::move(address)) {}
    RemotingClient client;
    bool reached = false;
    bool known = false;  // whether `reached` says anything yet
  };
  Task<void> loop();
  Task<void> register_at(Server& s, const std::string& body, bool one_topic);
  Task<bool> register_once(Server& s, const std::string& body);
  Task<void> unregister_at(Server& s);
  std::string body_of(const proto::TopicConfig* only) const;
  void note(Server& s, bool reached, std::string_view reason);

  Broker& broker_;
  std::vector<std::unique_ptr<Server>> servers_;
  bool registered_once_ = false;
  bool stopped_ = false;
};

}  // namespace rmq::broker
