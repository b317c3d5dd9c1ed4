// A RocketMQ broker's properties file (broker.conf) as rmqd.toml. Keys that rmqd has are taken over; of the
// others each is named in a comment with the reason. Settings whose loss would change what a broker does for
// its clients, or that rmqd cannot take, are refused: they are in the text as comments, too, and in
// `refused`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rmq {

struct ImportedConfig {
  std::string toml;
  size_t taken = 0;
  std::vector<std::string> refused;  // "key = value: why"
};

// `from` names the file in the first comment. Never fails: a text that is no properties file has odd keys.
ImportedConfig import_broker_config(std::string_view properties, std::string_view from);

}  // namespace rmq
