// For tests of transactions: what producers send, and what they are asked.
#pragma once

#include "broker_world.h"
#include "proto/bodies_client.h"
#include "proto/codes.h"
#include "proto/headers_transaction.h"
#include "proto/properties.h"

namespace rmq::broker {

namespace names = proto::names;
inline constexpr const char* commit = "8";
inline constexpr const char* rollback = "12";

inline std::string half_properties(std::string_view key, std::string_view group = "pg",
                                   std::string_view more_name = {}, std::string_view more_value = {}) {
  std::string out;
  proto::append_property(out, "TRAN_MSG", "true");
  proto::append_property(out, "PGROUP", group);
  proto::append_property(out, "UNIQ_KEY", key);
  if (!more_name.empty()) proto::append_property(out, more_name, more_value);
  return out;
}

struct HalfPlace {
  std::string queue_offset, physical;
};
inline HalfPlace place_of(const Answer& sent) {
  auto id = proto::parse_offset_id(ext(sent, "msgId"));
  return {ext(sent, "queueOffset"), id ? std::to_string(id->physical_offset) : "-1"};
}

inline std::string end_frame(World& w, const HalfPlace& p, std::string_view decision,
                             std::string_view group = "pg", std::string_view from_check = "false",
                             int32_t flag = 0) {
  return w.request(RequestCode::END_TRANSACTION,
                   {{"topic", "T"},
                    {"producerGroup", group},
                    {"tranStateTableOffset", p.queue_offset},
                    {"commitLogOffset", p.physical},
                    {"commitOrRollback", decision},
                    {"fromTransactionCheck", from_check},
                    {"msgId", "K"}},
                   {}, flag);
}
inline Task<Answer> end(World& w, HalfPlace p, std::string_view decision, std::string_view group = "pg",
                        std::string_view from_check = "false") {
  return w.peer->call(end_frame(w, p, decision, group, from_check));
}

inline std::string producer_heartbeat(std::string_view group) {
  return R"({"clientID":"p","producerDataSet":[{"groupName":")" + std::string(group) +
         R"("}],"consumerDataSet":[]})";
}

// A question as the producer sees it.
struct Question {
  HalfPlace place;
  std::string unique_key, topic, body;
  int32_t queue_id = -1, flag = 0;
  std::string check_times;
};
inline std::optional<Question> question(const Answer& a) {
  if (!a || a->command.code != static_cast<int32_t>(RequestCode::CHECK_TRANSACTION_STATE) ||
      a->command.is_response())
    return std::nullopt;
  Question q;
  q.place = {ext(a, "tranStateTableOffset"), ext(a, "commitLogOffset")};
  q.unique_key = ext(a, "transactionId");
  q.flag = a->command.flag;
  auto record = proto::parse_record(a->frame.body(), proto::CrcCheck::verify);
  if (!record) return std::nullopt;
  q.topic = record->topic;
  q.body = as_text(record->body);
  q.queue_id = record->queue_id;
  q.check_times = record->property("TRANSACTION_CHECK_TIMES").value_or("");
  return q;
}

}  // namespace rmq::broker
