#include "daemon/broker/refusal_log.h"

#include <algorithm>

#include "base/log.h"
#include "base/time.h"
#include "daemon/connection.h"

namespace rmq::broker {

using proto::ResponseCode;

namespace {

constexpr int64_t tell_again_ns = 60 * ns_per_s;

// A field by its name, or by its short name in SEND_MESSAGE_V2.
std::string_view field(const Request& r, std::string_view name, std::string_view short_name) {
  const std::string_view value = r.command.ext.value_or(name, "");
  const bool is_v2 = r.command.code == static_cast<int32_t>(proto::RequestCode::SEND_MESSAGE_V2) ||
                     r.command.code == static_cast<int32_t>(proto::RequestCode::SEND_BATCH_MESSAGE);
  return value.empty() && is_v2 ? r.command.ext.value_or(short_name, "") : value;
}

}  // namespace

// What clients meet while they come and go, and set right by themselves; and the answer "there is none" to a
// tool that asks whether there is one.
bool is_usual(int32_t request_code, ResponseCode code) {
  switch (static_cast<proto::RequestCode>(request_code)) {
    case proto::RequestCode::GET_CONSUMER_LIST_BY_GROUP:  // the first of a group asks before its heartbeat
      return true;
    case proto::RequestCode::GET_TOPIC_CONFIG:
    case proto::RequestCode::GET_CONSUME_STATS:
      if (code == ResponseCode::TOPIC_NOT_EXIST || code == ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST)
        return true;
      break;
    case proto::RequestCode::VIEW_BROKER_STATS_DATA:  // nothing was counted of it yet
      if (code == ResponseCode::SYSTEM_ERROR) return true;
      break;
    default:
      break;
  }
  switch (code) {
    case ResponseCode::CONSUMER_NOT_ONLINE:
    case ResponseCode::SUBSCRIPTION_NOT_LATEST:
    case ResponseCode::FILTER_DATA_NOT_LATEST:
      return true;
    default:
      return false;
  }
}

bool is_refusal(ResponseCode code) {
  switch (code) {
    case ResponseCode::SUCCESS:
    case ResponseCode::FLUSH_DISK_TIMEOUT:
    case ResponseCode::PULL_NOT_FOUND:
    case ResponseCode::PULL_RETRY_IMMEDIATELY:
    case ResponseCode::PULL_OFFSET_MOVED:
    case ResponseCode::QUERY_NOT_FOUND:
    case ResponseCode::POLLING_TIMEOUT:
      return false;
    default:
      return true;
  }
}

void RefusalLog::note(const Request& r, ResponseCode code, int64_t now_ns) {
  if (!is_refusal(code) || is_usual(r.command.code, code)) return;
  const std::string_view name = proto::name_of(static_cast<proto::RequestCode>(r.command.code));
  const int32_t request_code = name.empty() ? -1 : r.command.code;  // any number of them can be made up
  auto [it, is_first] = kinds_.try_emplace({request_code, static_cast<int32_t>(code)});
  Kind& kind = it->second;
  if (!is_first && now_ns - kind.told_ns < tell_again_ns) {
    kind.untold++;
    return;
  }
  const std::string number = std::to_string(r.command.code);
  const std::string_view reason = proto::name_of(code);
  const std::string_view group = field(r, "consumerGroup", "");
  std::string text =
      "a request was refused: " + std::string(name.empty() ? number : name) + ", " + std::string(reason);
  if (kind.untold != 0) text += "; " + std::to_string(kind.untold) + " more since the last line";
  log(LogLevel::notice, ids::request_refused, text,
      {{"CODE", name.empty() ? number : name},
       {"REASON", reason},
       {"CLIENT", r.connection().peer_text()},
       {"TOPIC", field(r, "topic", "b")},
       {"GROUP", group.empty() ? field(r, "producerGroup", "a") : group},
       {"SUPPRESSED", std::to_string(kind.untold)}});
  kind = {now_ns, 0};
}

}  // namespace rmq::broker
