// For tests of POP: the requests of a client, and the handles that it makes of an answer as Java's client
// does.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker_world.h"
#include "daemon/broker/pop/pop_handle.h"

namespace rmq::broker {

struct PopAsk {
  PopAsk() = default;  // no aggregate: GCC 12 and braces beside co_await
  std::string topic = "T", group = "g";
  int32_t queue = -1, most = 32;
  int64_t invisible_ms = 60'000, poll_ms = 0;
  bool order = false;
  std::string attempt{};
  std::string expression = "*", type = "TAG";
  int32_t init_mode = 0;
};

struct PoppedMessage {
  std::string body, topic, tag, first_pop_time;
  int64_t offset = 0;
  int32_t reconsume_times = 0;
  std::string handle;
};

inline std::string pop_frame(int32_t opaque, const PopAsk& p, int64_t now_ms) {
  const std::string queue = std::to_string(p.queue), most = std::to_string(p.most),
                    invisible = std::to_string(p.invisible_ms), poll = std::to_string(p.poll_ms),
                    born = std::to_string(now_ms), mode = std::to_string(p.init_mode);
  const sim::Ext ext({"consumerGroup", p.group}, {"topic", p.topic}, {"queueId", queue}, {"maxMsgNums", most},
                     {"invisibleTime", invisible}, {"pollTime", poll}, {"bornTime", born}, {"initMode", mode},
                     {"expType", p.type}, {"exp", p.expression}, {"order", p.order ? "true" : "false"},
                     {"attemptId", p.attempt});
  return sim::request_frame(static_cast<int32_t>(RequestCode::POP_MESSAGE), opaque, ext);
}

inline std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  while (!text.empty()) {
    size_t end = text.find(at);
    out.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return out;
}

// What the client has after the answer. Texts that a client would throw at are failures here.
inline std::vector<PoppedMessage> popped_of(const Answer& a) {
  std::map<std::string, std::string> start;
  std::map<std::string, std::vector<std::string>> offsets;
  auto info = [&](std::string_view name) { return split(a->command.ext.value_or(name, ""), ';'); };
  for (const std::string& part : info("startOffsetInfo")) {
    auto f = split(part, ' ');
    check(f.size() == 3 && start.emplace(f[0] + "@" + f[1], f[2]).second);
  }
  for (const std::string& part : info("msgOffsetInfo")) {
    auto f = split(part, ' ');
    check(f.size() == 3 && offsets.emplace(f[0] + "@" + f[1], split(f[2], ',')).second);
  }
  std::map<std::string, std::string> counts;
  for (const std::string& part : info("orderCountInfo")) {
    auto f = split(part, ' ');
    check(f.size() == 3 && counts.emplace(f[0] + "@" + f[1], f[2]).second);
  }
  std::vector<PoppedMessage> out;
  for (const proto::RecordView& r : records(a)) {
    PoppedMessage& m = out.emplace_back();
    m.body = as_text(r.body);
    m.topic = r.topic;
    m.tag = r.property("TAGS").value_or("");
    m.first_pop_time = r.property("1ST_POP_TIME").value_or("");
    m.offset = r.queue_offset;
    m.reconsume_times = r.reconsume_times;
    const std::string queue = std::to_string(r.queue_id), offset = std::to_string(r.queue_offset);
    const std::string key = std::string(1, retry_mark_of(r.topic)) + "@" + queue;
    if (auto ck = r.property("POP_CK")) {
      m.handle = *ck;
      continue;
    }
    check(start.contains(key) && offsets.contains(key));
    bool listed = false;
    for (const std::string& o : offsets[key]) listed |= o == offset;
    check(listed);
    m.handle = start[key] + " " + ext(a, "popTime") + " " + ext(a, "invisibleTime") + " " +
               ext(a, "reviveQid") + " " + key.substr(0, 1) + " b " + queue + " " + offset;
    auto count = counts.find(key.substr(0, 1) + "@qo" + queue + "%" + offset);
    if (count == counts.end()) count = counts.find(key);
    if (count != counts.end()) m.reconsume_times = std::atoi(count->second.c_str());
  }
  return out;
}

inline std::string bodies_of(const std::vector<PoppedMessage>& all) {
  std::string out;
  for (const PoppedMessage& m : all) out += (out.empty() ? "" : ",") + m.body;
  return out;
}

inline std::string real_topic(const PopHandle& h, std::string_view group, std::string_view topic) {
  return topic_of_mark(std::string(1, h.mark), group, topic).value_or("");
}

inline std::string ack_frame(int32_t opaque, std::string_view group, std::string_view topic,
                             std::string_view handle, int64_t offset = -1) {
  auto h = PopHandle::parse(handle);
  check(h.has_value());
  const std::string real = real_topic(*h, group, topic), queue = std::to_string(h->queue_id),
                    at = std::to_string(offset < 0 ? h->offset.value_or(-1) : offset);
  const sim::Ext ext({"consumerGroup", group}, {"topic", real}, {"queueId", queue}, {"extraInfo", handle},
                     {"offset", at});
  return sim::request_frame(static_cast<int32_t>(RequestCode::ACK_MESSAGE), opaque, ext);
}

inline std::string change_frame(int32_t opaque, std::string_view group, std::string_view topic,
                                std::string_view handle, int64_t invisible_ms) {
  auto h = PopHandle::parse(handle);
  check(h.has_value());
  const std::string real = real_topic(*h, group, topic), queue = std::to_string(h->queue_id),
                    at = std::to_string(h->offset.value_or(-1)), invisible = std::to_string(invisible_ms);
  const sim::Ext ext({"consumerGroup", group}, {"topic", real}, {"queueId", queue}, {"extraInfo", handle},
                     {"offset", at}, {"invisibleTime", invisible});
  return sim::request_frame(static_cast<int32_t>(RequestCode::CHANGE_MESSAGE_INVISIBLETIME), opaque, ext);
}

// The handle after its time was changed, as the client makes it.
inline std::string changed_handle(std::string_view before, const Answer& a) {
  auto h = PopHandle::parse(before);
  check(h.has_value());
  return std::to_string(*h->offset) + " " + ext(a, "popTime") + " " + ext(a, "invisibleTime") + " " +
         ext(a, "reviveQid") + " " + h->mark + " " + std::string(h->broker_name) + " " +
         std::to_string(h->queue_id) + " " + std::to_string(*h->offset);
}

// ---- in a simulated world --------------------------------------------------------------------------------

using Popped = std::vector<PoppedMessage>;

inline Task<Answer> ask(World& w, PopAsk p) {
  std::string frame = pop_frame(++w.opaque, p, w.broker.wall_ms());
  bool sent = co_await w.peer->send(std::move(frame));
  EXPECT_TRUE(sent);
  co_return co_await w.peer->next(60);
}
inline Task<Popped> pop(World& w, PopAsk p = {}) {
  auto a = co_await ask(w, p);
  EXPECT_TRUE(code_of(a) == 0 || code_of(a) == 210) << remark(a);
  Popped out;
  if (code_of(a) == 0) out = popped_of(a);
  co_return out;
}
inline Task<int32_t> ack(World& w, std::string handle, std::string group = "g", std::string topic = "T") {
  std::string frame = ack_frame(++w.opaque, group, topic, handle);
  auto a = co_await w.peer->call(std::move(frame));
  co_return code_of(a);
}
inline Task<Answer> change(World& w, std::string handle, int64_t invisible_ms) {
  std::string frame = change_frame(++w.opaque, "g", "T", handle, invisible_ms);
  co_return co_await w.peer->call(std::move(frame));
}
inline Task<void> send_some(World& w, int n, std::string topic = "T", std::string queue = "0", int from = 0) {
  for (int i = from; i < from + n; i++) {
    auto a = co_await w.send(topic, "m" + std::to_string(i), {}, queue);
    EXPECT_EQ(code_of(a), 0) << remark(a);
  }
}
inline int64_t committed(World& w, std::string_view topic = "T", std::string_view group = "g",
                         int32_t queue = 0) {
  return w.broker.offsets.query(group, topic, queue).value_or(-1);
}
inline PopAsk with_invisible(int64_t ms) {
  PopAsk p;
  p.invisible_ms = ms;
  return p;
}

}  // namespace rmq::broker
