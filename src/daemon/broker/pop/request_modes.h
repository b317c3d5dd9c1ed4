// Which groups take a topic's messages by POP and which by pull (SET_MESSAGE_REQUEST_MODE), kept in
// messageRequestMode.json as RocketMQ keeps it. And the shares of queues that a group's clients get.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/persisted_table.h"
#include "proto/bodies_client.h"

namespace rmq::broker {

class RequestModes : public PersistedTable {
 public:
  RequestModes(Disk& disk, std::string path) : PersistedTable(disk, std::move(path)) {}

  // Null: nobody has set one.
  const proto::SetMessageRequestModeRequestBody* find(std::string_view topic, std::string_view group) const;
  void set(proto::SetMessageRequestModeRequestBody mode);
  // The table as text: the file, and the answer of GET_ALL_MESSAGE_REQUEST_MODE.
  std::string to_json(proto::JsonStyle style) const;

 protected:
  std::string render() const override { return to_json(proto::JsonStyle::pretty); }
  Result<void> parse(std::string_view text) override;

 private:
  // By topic, then by group.
  proto::MessageRequestModes modes_;
};

// The queues of `all` (sorted) that `client_id`, one of `clients` (sorted), takes messages from with PULL, by
// RocketMQ's strategies AVG and AVG_BY_CIRCLE. Nothing: the strategy is not known.
std::optional<std::vector<proto::MessageQueue>> allocate_queues(std::string_view strategy,
                                                                std::string_view client_id,
                                                                const std::vector<proto::MessageQueue>& all,
                                                                const std::vector<std::string>& clients);
// The same with POP: with `share_queues` of 0 or below, or of nearly as many as there are clients, all queues
// of each broker, said as queue -1; else its own and those of that many clients that follow it.
std::optional<std::vector<proto::MessageQueue>> allocate_for_pop(std::string_view strategy,
                                                                 std::string_view client_id,
                                                                 const std::vector<proto::MessageQueue>& all,
                                                                 const std::vector<std::string>& clients,
                                                                 int32_t share_queues);

}  // namespace rmq::broker
