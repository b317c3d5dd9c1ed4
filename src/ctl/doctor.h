// rmqctl doctor: what goes wrong in practice, looked for one thing after another, each with what to do about
// it. Checks never change anything, and one that cannot be made says so and does not keep the others.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/context.h"
#include "proto/bodies_running.h"

namespace rmq::ctl {

enum class Grade : uint8_t {
  ok,
  note,     // worth knowing; nothing has to be done
  warning,  // will become a problem, or is one for some
  problem,
};
std::string_view name_of(Grade g);

struct Finding {
  Grade grade = Grade::ok;
  std::string check;    // for programs: "advertised-address"
  std::string subject;  // "broker broker-a", "group billing", "this host"
  std::string text;     // what was seen
  std::string cure;     // what to do; empty when nothing is
};

// A latency of the disk in microseconds, from writes that were made durable one by one.
struct SyncLatency {
  std::string directory;
  int64_t median_us = 0, p99_us = 0, worst_us = 0;
  size_t writes = 0;
};
// Writes 4 KiB again and again, as the log is written (O_DIRECT, RWF_DSYNC), in a file without a name in
// `directory`. A text: why it could not be done.
std::expected<SyncLatency, std::string> measure_sync_latency(const std::string& directory, size_t writes);

class Doctor {
 public:
  explicit Doctor(Context& c) : c_(c) {}

  // doctor_cluster.cc
  void look_at_name_servers();
  void look_at_brokers();
  // doctor_groups.cc
  void look_at_groups();
  // doctor_host.cc: of this host, when a broker of the cluster runs here, or `store` names its directory.
  void look_at_host(const std::string& store);

  const std::vector<Finding>& findings() const { return findings_; }
  bool has_reached_anything() const { return !name_servers_.empty() || !brokers_.empty(); }

 private:
  using Values = std::map<std::string, std::string, std::less<>>;
  struct NameServer {
    std::string address;
    std::unique_ptr<Channel> channel;
    proto::ClusterInfo cluster;
    std::optional<std::vector<std::string>> topics;  // nothing: it does not tell
  };
  struct BrokerSeen {
    BrokerNode node;
    Values runtime, config;
    std::string subject() const { return "broker " + node.name; }
  };
  struct Member {
    std::string client_id;
    std::optional<proto::ConsumerRunningInfo> info;  // nothing: it does not tell
  };
  struct Group {
    std::string name;
    bool is_broadcast = false, pops = false;
    std::vector<Member> members;
  };

  void add(Grade grade, const char* check, std::string subject, std::string text, std::string cure = {});

  std::optional<NameServer> ask_name_server(const Address& a);
  void compare_name_servers(const NameServer& a, const NameServer& b);
  std::vector<std::string> registration_differences(const NameServer& a, const NameServer& b) const;

  void look_at_broker(const BrokerNode& node);
  void look_at_address(const BrokerNode& node);
  void look_at_clock(const BrokerSeen& b, int64_t asked_ms, int64_t answered_ms);
  void look_at_disk(const BrokerSeen& b);
  void look_at_flush(const BrokerSeen& b);

  std::optional<Group> group_at(Channel& broker, const std::string& name);
  // Messages that wait for the group at this broker.
  static int64_t lag_at(Channel& broker, const std::string& name);
  void look_at_groups_without_members(const std::map<std::string, int64_t>& lags);
  void look_at_group(const Group& g, Channel& broker);
  // Findings about the group as it is now.
  std::vector<Finding> group_findings(const Group& g);
  std::optional<Finding> subscription_mismatch(const Group& g) const;
  std::optional<Finding> queues_without_owner(const Group& g);
  std::vector<proto::MessageQueue> queues_of(const std::string& topic);

  void look_at_kernel();
  void look_at_limits();
  void look_at_store(const std::string& directory, Grade when_it_cannot);

  Context& c_;
  std::vector<Finding> findings_;
  std::vector<NameServer> name_servers_;  // that answer
  std::vector<BrokerSeen> brokers_;       // that answer
  std::map<std::string, std::vector<proto::MessageQueue>> queues_;
};

// Addresses of this host's interfaces, as text.
std::vector<std::string> own_addresses();

}  // namespace rmq::ctl
