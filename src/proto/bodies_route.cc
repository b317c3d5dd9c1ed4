#include "proto/bodies_route.h"

#include <zlib.h>

#include "base/bytes.h"
#include "base/check.h"
#include "proto/codes.h"
#include "proto/json_read.h"

namespace rmq::proto {

using json_read::read_body;
using json_read::Value;

namespace {

void read_broker_addrs(Value v, std::map<int64_t, std::string>& out) {
  v.members([&](std::string_view key, Value address) {
    int64_t id = 0;
    auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (ec != std::errc() || end != key.data() + key.size()) return v.bad();
    address.read(out[id]);
  });
}

void write_broker_addrs(JsonWriter& w, const std::map<int64_t, std::string>& addrs) {
  w.key("brokerAddrs");
  w.begin_object();
  for (const auto& [id, address] : addrs) {
    w.key_int(id);
    w.text(address);
  }
  w.end_object();
}

void write_texts(JsonWriter& w, const std::vector<std::string>& texts) {
  w.begin_array();
  for (const std::string& t : texts) w.text(t);
  w.end_array();
}

void read_broker(Value v, BrokerData& b) {
  v["cluster"].read(b.cluster);
  v["brokerName"].read(b.broker_name);
  read_broker_addrs(v["brokerAddrs"], b.broker_addrs);
  v["zoneName"].read(b.zone_name);
  v["enableActingMaster"].read(b.enable_acting_master);
}

void write_broker(JsonWriter& w, const BrokerData& b) {
  w.begin_object();
  write_broker_addrs(w, b.broker_addrs);
  w.member("brokerName", b.broker_name);
  w.member("cluster", b.cluster);
  w.member("enableActingMaster", b.enable_acting_master);
  if (b.zone_name) w.member("zoneName", *b.zone_name);
  w.end_object();
}

void read_queue_data(Value v, QueueData& q) {
  v["brokerName"].read(q.broker_name);
  v["readQueueNums"].read(q.read_queue_nums);
  v["writeQueueNums"].read(q.write_queue_nums);
  v["perm"].read(q.perm);
  v["topicSysFlag"].read(q.topic_sys_flag);
}

void write_queue_data(JsonWriter& w, const QueueData& q) {
  w.begin_object();
  w.member("brokerName", q.broker_name);
  w.member("perm", q.perm);
  w.member("readQueueNums", q.read_queue_nums);
  w.member("topicSysFlag", q.topic_sys_flag);
  w.member("writeQueueNums", q.write_queue_nums);
  w.end_object();
}

}  // namespace

// --------------------------------------------------------------------------------------- routes, lists

Result<TopicRouteData> TopicRouteData::parse(std::string_view json) {
  return read_body<TopicRouteData>(json, [](Value v, TopicRouteData& r) {
    v["orderTopicConf"].read(r.order_topic_conf);
    v["queueDatas"].each([&](Value q) { read_queue_data(q, r.queue_datas.emplace_back()); });
    v["brokerDatas"].each([&](Value b) { read_broker(b, r.broker_datas.emplace_back()); });
    v["filterServerTable"].members([&](std::string_view address, Value list) {
      list.read(r.filter_server_table[std::string(address)]);
    });
    r.topic_queue_mapping_by_broker = v["topicQueueMappingByBroker"].raw();
  });
}

std::string TopicRouteData::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("brokerDatas");
  w.begin_array();
  for (const BrokerData& b : broker_datas) write_broker(w, b);
  w.end_array();
  w.key("filterServerTable");
  w.members(filter_server_table, [&](const auto& list) { write_texts(w, list); });
  if (order_topic_conf) w.member("orderTopicConf", *order_topic_conf);
  w.key("queueDatas");
  w.begin_array();
  for (const QueueData& q : queue_datas) write_queue_data(w, q);
  w.end_array();
  if (!topic_queue_mapping_by_broker.empty()) {
    w.key("topicQueueMappingByBroker");
    w.raw(topic_queue_mapping_by_broker);
  }
  w.end_object();
  return w.take();
}

Result<ClusterInfo> ClusterInfo::parse(std::string_view json) {
  return read_body<ClusterInfo>(json, [](Value v, ClusterInfo& c) {
    v["brokerAddrTable"].members(
        [&](std::string_view name, Value b) { read_broker(b, c.broker_addr_table[std::string(name)]); });
    v["clusterAddrTable"].members(
        [&](std::string_view name, Value list) { list.read(c.cluster_addr_table[std::string(name)]); });
  });
}

std::string ClusterInfo::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("brokerAddrTable");
  w.members(broker_addr_table, [&](const auto& b) { write_broker(w, b); });
  w.key("clusterAddrTable");
  w.members(cluster_addr_table, [&](const auto& brokers) { write_texts(w, brokers); });
  w.end_object();
  return w.take();
}

Result<TopicList> TopicList::parse(std::string_view json) {
  return read_body<TopicList>(json, [](Value v, TopicList& l) {
    v["topicList"].read(l.topic_list);
    v["brokerAddr"].read(l.broker_addr);
  });
}

std::string TopicList::to_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  if (broker_addr) w.member("brokerAddr", *broker_addr);
  w.key("topicList");
  write_texts(w, topic_list);
  w.end_object();
  return w.take();
}

Result<BrokerMemberGroup> BrokerMemberGroup::parse_response(std::string_view json) {
  return read_body<BrokerMemberGroup>(json, [](Value v, BrokerMemberGroup& g) {
    Value m = v["brokerMemberGroup"];
    m["cluster"].read(g.cluster);
    m["brokerName"].read(g.broker_name);
    read_broker_addrs(m["brokerAddrs"], g.broker_addrs);
  });
}

std::string BrokerMemberGroup::to_response_json(JsonStyle style) const {
  JsonWriter w(style);
  w.begin_object();
  w.key("brokerMemberGroup");
  w.begin_object();
  write_broker_addrs(w, broker_addrs);
  w.member("brokerName", broker_name);
  w.member("cluster", cluster);
  w.end_object();
  w.end_object();
  return w.take();
}

// ---------------------------------------------------------------------------------------- registration

Result<RegisterBrokerBody> RegisterBrokerBody::parse(std::string_view json) {
  return read_body<RegisterBrokerBody>(json, [](Value v, RegisterBrokerBody& b) {
    v["filterServerList"].read(b.filter_server_list);
    v["rmqdDeletedTopics"].read(b.deleted_topics);
    if (Value w = v["topicConfigSerializeWrapper"]; w.present())
      json_read::read_topics(w, b.topic_config_wrapper);
  });
}

std::string RegisterBrokerBody::to_json() const {
  JsonWriter w;
  w.begin_object();
  if (filter_server_list) {
    w.key("filterServerList");
    write_texts(w, *filter_server_list);
  }
  if (!deleted_topics.empty()) {
    w.key("rmqdDeletedTopics");
    write_texts(w, deleted_topics);
  }
  w.key("topicConfigSerializeWrapper");
  topic_config_wrapper.write(w);
  w.end_object();
  return w.take();
}

namespace {

constexpr size_t inflated_bytes_max = 64 << 20;

Result<std::string> inflate_all(std::string_view bytes) {
  z_stream z{};
  if (inflateInit(&z) != Z_OK) return fail(Errc::limit, "zlib");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int rc = Z_OK;
  size_t used = 0;
  while (rc == Z_OK && used < inflated_bytes_max) {
    if (used == out.size()) out.resize(std::min(inflated_bytes_max, std::max<size_t>(4096, 2 * out.size())));
    z.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    z.avail_out = static_cast<uInt>(out.size() - used);
    rc = inflate(&z, Z_NO_FLUSH);
    used = out.size() - z.avail_out;
    if (rc == Z_BUF_ERROR && z.avail_out == 0) rc = Z_OK;  // only room was missing
  }
  inflateEnd(&z);
  if (rc == Z_OK) return fail(Errc::limit, "compressed registration is too large");
  if (rc != Z_STREAM_END) return fail(Errc::bad_input, "compressed registration");
  out.resize(used);
  return out;
}

std::string deflate_all(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  check(compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                  bytes.size(), Z_BEST_COMPRESSION) == Z_OK);
  out.resize(size);
  return out;
}

Result<std::string_view> get_counted(ByteReader& r) {
  auto n = r.get<int32_t>();
  if (!r.ok() || n < 0 || static_cast<size_t>(n) > r.left())
    return fail(Errc::bad_input, "registration: a length");
  return r.text(static_cast<size_t>(n));
}

void put_counted(std::string& out, std::string_view s) {
  append_be(out, static_cast<int32_t>(s.size()));
  out += s;
}

// The queue mappings: a list of TopicQueueMappingInfo on the wire, an object by topic with us.
Result<std::string> read_mappings(ByteReader& r) {
  auto count = r.get<int32_t>();
  if (!r.ok() || count < 0) return fail(Errc::bad_input, "registration: number of mappings");
  JsonWriter w;
  w.begin_object();
  for (int32_t i = 0; i < count; ++i) {
    TRY_VAR(json, get_counted(r));
    struct Info {
      std::string topic, raw;
    };
    TRY_VAR(info, read_body<Info>(json, [](Value v, Info& out) {
              v["topic"].read(out.topic);
              out.raw = v.raw();
            }));
    w.key(info.topic);
    w.raw(info.raw);
  }
  w.end_object();
  return w.take();
}

Result<std::vector<std::string>> mappings_of(const std::string& object) {
  if (object.empty()) return std::vector<std::string>();
  return read_body<std::vector<std::string>>(object, [](Value v, auto& out) {
    v.members([&](std::string_view, Value m) { out.push_back(m.raw()); });
  });
}

}  // namespace

Result<RegisterBrokerBody> RegisterBrokerBody::parse_compressed(std::string_view bytes, int32_t version) {
  TRY_VAR(text, inflate_all(bytes));
  RegisterBrokerBody body;
  TopicConfigSerializeWrapper& topics = body.topic_config_wrapper;
  ByteReader r(text);
  TRY_VAR(version_json, get_counted(r));
  TRY_VAR(data_version, DataVersion::parse(version_json));
  topics.data_version = data_version;
  auto count = r.get<int32_t>();
  if (!r.ok() || count < 0) return fail(Errc::bad_input, "registration: number of topics");
  for (int32_t i = 0; i < count; ++i) {
    TRY_VAR(line, get_counted(r));
    TRY_VAR(config, TopicConfig::parse_line(line));
    std::string name = config.topic_name;
    topics.topic_config_table.insert_or_assign(std::move(name), std::move(config));
  }
  TRY_VAR(filters, get_counted(r));
  TRY_VAR(list, json_read::read_array<std::string>(filters));
  body.filter_server_list = std::move(list);
  if (version >= mq_version::V5_0_0 && r.left() > 0) {
    TRY_VAR(mappings, read_mappings(r));
    topics.mapping_data_version.emplace();
    topics.topic_queue_mapping_info_map = std::move(mappings);
  }
  return body;
}

Result<std::string> RegisterBrokerBody::to_compressed() const {
  std::string s;
  put_counted(s, topic_config_wrapper.data_version.to_json());
  append_be(s, static_cast<int32_t>(topic_config_wrapper.topic_config_table.size()));
  for (const auto& [name, config] : topic_config_wrapper.topic_config_table) put_counted(s, config.to_line());
  JsonWriter w;
  write_texts(w, filter_server_list.value_or(std::vector<std::string>()));
  put_counted(s, w.take());
  TRY_VAR(mappings, mappings_of(topic_config_wrapper.topic_queue_mapping_info_map));
  append_be(s, static_cast<int32_t>(mappings.size()));
  for (const std::string& m : mappings) put_counted(s, m);
  return deflate_all(s);
}

Result<RegisterBrokerBody> RegisterBrokerBody::parse_any(std::string_view body, bool compressed,
                                                         int32_t version) {
  if (body.empty()) return RegisterBrokerBody();
  if (version < mq_version::V3_0_11) {
    TRY_VAR(topics, TopicConfigSerializeWrapper::parse(body));
    RegisterBrokerBody out;
    out.topic_config_wrapper = std::move(topics);
    return out;
  }
  return compressed ? parse_compressed(body, version) : parse(body);
}

}  // namespace rmq::proto
