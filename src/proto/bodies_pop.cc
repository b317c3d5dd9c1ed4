#include "proto/bodies_pop.h"

#include <algorithm>
#include <charconv>

#include "base/base64.h"
#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

// A member has a short name, and a long one that RocketMQ reads too.
static Value member(Value v, std::string_view name, std::string_view long_name) {
  Value found = v[name];
  return found.present() ? found : v[long_name];
}

static void read_bits(Value v, std::vector<uint8_t>& out) {
  if (v.is_array()) {
    std::vector<int32_t> bytes;
    v.read(bytes);
    for (int32_t b : bytes) out.push_back(static_cast<uint8_t>(b));
    return;
  }
  std::string text;
  v.read(text);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  auto bytes = base64url_decode(text);
  if (!bytes) return v.bad();
  out.assign(bytes->begin(), bytes->end());
}

static void read_ack(Value v, BatchAck& a) {
  member(v, "c", "consumerGroup").read(a.consumer_group);
  member(v, "t", "topic").read(a.topic);
  member(v, "r", "retry").read(a.retry);
  member(v, "so", "startOffset").read(a.start_offset);
  member(v, "q", "queueId").read(a.queue_id);
  member(v, "rq", "reviveQueueId").read(a.revive_queue_id);
  member(v, "pt", "popTime").read(a.pop_time_ms);
  member(v, "it", "invisibleTime").read(a.invisible_time_ms);
  read_bits(member(v, "b", "bitSet"), a.bits);
}

Result<BatchAckMessageRequestBody> BatchAckMessageRequestBody::parse(std::string_view json) {
  return read_body<BatchAckMessageRequestBody>(json, [](Value v, BatchAckMessageRequestBody& b) {
    v["brokerName"].read(b.broker_name);
    v["acks"].each([&](Value a) { read_ack(a, b.acks.emplace_back()); });
  });
}

Result<ReviveLogRecord> ReviveLogRecord::parse(std::string_view json) {
  return read_body<ReviveLogRecord>(json, [](Value v, ReviveLogRecord& r) {
    member(v, "c", "consumerGroup").read(r.consumer_group);
    member(v, "t", "topic").read(r.topic);
    member(v, "q", "queueId").read(r.queue_id);
    member(v, "so", "startOffset").read(r.start_offset);
    member(v, "pt", "popTime").read(r.pop_time_ms);
    v["it"].read(r.invisible_time_ms);
    v["bm"].read(r.bit_map);
    v["n"].read(r.count);
    v["d"].read(r.differences);
    member(v, "aol", "ackOffsetList").read(r.acknowledged);
    if (Value one = member(v, "ao", "ackOffset"); one.present() && r.acknowledged.empty())
      one.read(r.acknowledged.emplace_back());
  });
}

namespace {

template <class T>
bool number_of(std::string_view text, T& out) {
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc() && end == text.data() + text.size();
}

template <class T>
void read_by_offset(Value v, std::map<int64_t, T>& out) {
  v.members([&](std::string_view key, Value e) {
    int64_t offset = 0;
    if (number_of(key, offset)) e.read(out[offset]);
  });
}

void read_order(Value v, ConsumerOrderInfo& o) {
  v["popTime"].read(o.pop_time_ms);
  v["i"].read(o.invisible_time_ms);
  v["o"].read(o.offsets);  // the first, and how far the others lie behind it
  for (size_t i = 1; i < o.offsets.size(); i++) o.offsets[i] += o.offsets[0];
  read_by_offset(v["ot"], o.next_visible_ms);
  read_by_offset(v["oc"], o.consumed);
  v["cm"].read(o.acknowledged);
  v["a"].read(o.attempt_id);
}

}  // namespace

Result<std::vector<ConsumerOrderInfo>> ConsumerOrderInfo::parse_table(std::string_view json) {
  return read_body<std::vector<ConsumerOrderInfo>>(json, [](Value v, std::vector<ConsumerOrderInfo>& all) {
    v["table"].members([&](std::string_view key, Value queues) {
      const size_t at = key.find('@');
      if (at == std::string_view::npos) return;
      queues.members([&](std::string_view queue, Value entry) {
        ConsumerOrderInfo o;
        if (!number_of(queue, o.queue_id) || o.queue_id < 0) return;
        o.topic = key.substr(0, at);
        o.consumer_group = key.substr(at + 1);
        read_order(entry, o);
        all.push_back(std::move(o));
      });
    });
  });
}

}  // namespace rmq::proto
