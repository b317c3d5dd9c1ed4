// rmqctl bench: load of sends or pulls, and what the broker made of it.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ctl/bench.h"
#include "ctl/sender.h"
#include "proto/batch.h"
#include "proto/fastjson.h"
#include "proto/headers_namesrv.h"
#include "proto/headers_offset.h"
#include "proto/headers_pull.h"
#include "proto/properties.h"

namespace rmq::ctl {

namespace {

// A place in a frame that gets a number of fixed width.
struct Patch {
  size_t at = std::string::npos;
  void put_decimal(std::string& frame, uint64_t v, size_t digits) const {
    for (size_t i = digits; i-- > 0; v /= 10) frame[at + i] = static_cast<char>('0' + v % 10);
  }
  void put_hex(std::string& frame, uint64_t v, size_t digits) const {
    for (size_t i = digits; i-- > 0; v >>= 4) frame[at + i] = "0123456789ABCDEF"[v & 15];
  }
};

constexpr int64_t no_end_ms = 365LL * 24 * 3'600'000;
constexpr size_t topic_digits = 6;
std::string numbered_topic(std::string_view topic, uint64_t number) {
  return fmt::format("{}_{:0>{}}", topic, number, topic_digits);
}

class SendLoad : public Workload {
 public:
  SendLoad(std::string topic, WriteTarget target, std::vector<std::string> addresses, size_t size,
           size_t batch, uint64_t topics, std::string properties)
      : topic_(std::move(topic)),
        properties_(std::move(properties)),
        target_(std::move(target)),
        addresses_(std::move(addresses)),
        batch_(batch),
        topics_(topics) {
    body_.resize(size);
    for (size_t i = 0; i < size; i++)
      body_[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[(i * 7 + i / 11) % 36];
  }

  void prepare(Slot& slot, size_t number, size_t connection, int32_t opaque) override {
    const std::string& address = addresses_[connection % addresses_.size()];
    std::vector<const WriteQueue*> queues;
    for (const WriteQueue& q : target_.queues)
      if (q.address == address) queues.push_back(&q);
    const WriteQueue& q = *queues[number % queues.size()];
    std::string id =
        fmt::format("{:0>8X}{:0>8X}{:0>16X}", 0x7F000001, static_cast<uint32_t>(getpid()), number);
    std::string properties;
    if (batch_ == 1) proto::append_property(properties, proto::prop::UNIQ_KEY, id);
    proto::append_property(properties, proto::prop::WAIT, "true");
    properties += properties_;
    std::string body = body_;
    if (batch_ > 1) {
      body.clear();
      for (size_t i = 0; i < batch_; i++) {
        std::string own;
        proto::append_property(own, proto::prop::UNIQ_KEY, fmt::format("{}{:04X}", id.substr(0, 28), i));
        proto::append_property(own, proto::prop::WAIT, "true");
        proto::append_batch_message(body, 0, as_bytes(body_), own);
      }
    }
    const std::string topic = topics_ == 1 ? topic_ : numbered_topic(topic_, 0);
    auto h = send_header(topic, q, properties, born_placeholder);
    h.batch = batch_ > 1;
    if (h.batch) {
      proto::SendBatchMessage::append_request(slot.frame, opaque, h, body);
    } else {
      proto::SendMessageV2::append_request(slot.frame, opaque, h, body);
    }
    // Frames of all slots have the same members; only places may differ by the digits of the queue.
    Places p;
    p.born.at = slot.frame.find(fmt::format("{}", born_placeholder));
    if (batch_ == 1) p.id.at = slot.frame.find(id) + 16;
    if (topics_ > 1) p.topic.at = slot.frame.find(topic) + topic.size() - topic_digits;
    places_.resize(std::max(places_.size(), number + 1));
    places_[number] = p;
    slot.queue_id = static_cast<int32_t>(number);
  }

  void patch(Slot& slot, int64_t now_ms) override {
    const Places& p = places_[static_cast<size_t>(slot.queue_id)];
    p.born.put_decimal(slot.frame, static_cast<uint64_t>(now_ms), 13);
    if (p.id.at != std::string::npos) p.id.put_hex(slot.frame, ++counter_, 16);
    if (topics_ > 1) p.topic.put_decimal(slot.frame, next_topic_++ % topics_, topic_digits);
  }

  bool take(Slot&, const proto::RemotingCommand& answer, size_t, BenchResult* r) override {
    if (answer.code != 0) return false;
    r->messages += static_cast<int64_t>(batch_);
    r->bytes += static_cast<int64_t>(batch_ * body_.size());
    return true;
  }

 private:
  static constexpr int64_t born_placeholder = 1'111'222'233'333;  // 13 digits, as the times until 2286
  struct Places {
    Patch born, id, topic;
  };
  std::string topic_;
  const std::string properties_;  // that the user wants besides
  WriteTarget target_;
  std::vector<std::string> addresses_;
  size_t batch_;
  const uint64_t topics_;
  std::string body_;
  std::vector<Places> places_;
  uint64_t counter_ = 0;
  uint64_t next_topic_ = 0;
};

struct ReadQueue {
  std::string address;
  int32_t queue_id = 0;
  int64_t min = 0, max = 0;
};

// Every slot reads one queue from its beginning, and begins again at its end.
class PullLoad : public Workload {
 public:
  PullLoad(std::string topic, std::vector<ReadQueue> queues, std::vector<std::string> addresses, int32_t max)
      : topic_(std::move(topic)), queues_(std::move(queues)), addresses_(std::move(addresses)), max_(max) {}

  void prepare(Slot& slot, size_t number, size_t connection, int32_t opaque) override {
    const std::string& address = addresses_[connection % addresses_.size()];
    std::vector<const ReadQueue*> queues;
    for (const ReadQueue& q : queues_)
      if (q.address == address) queues.push_back(&q);
    const ReadQueue& q = *queues[number % queues.size()];
    proto::PullMessageRequestHeader h;
    h.consumer_group = proto::names::TOOLS_CONSUMER;
    h.topic = topic_;
    h.queue_id = q.queue_id;
    h.queue_offset = offset_placeholder;
    h.max_msg_nums = max_;
    h.sys_flag = proto::pull_sys_flag::subscription;
    h.subscription = "*";
    h.expression_type = "TAG";
    proto::PullMessage::append_request(slot.frame, opaque, h);
    State s{{slot.frame.find(fmt::format("{}", offset_placeholder))}, q.min};
    states_.resize(std::max(states_.size(), number + 1));
    states_[number] = s;
    slot.queue_id = static_cast<int32_t>(number);
    slot.offset = q.min;
  }

  // Java's Long.parseLong takes leading zeros.
  void patch(Slot& slot, int64_t) override {
    states_[static_cast<size_t>(slot.queue_id)].offset.put_decimal(slot.frame,
                                                                   static_cast<uint64_t>(slot.offset), 18);
  }

  bool take(Slot& slot, const proto::RemotingCommand& answer, size_t body_bytes, BenchResult* r) override {
    using enum proto::ResponseCode;
    auto h = proto::PullMessage::decode_response(answer);
    if (!h) return false;
    if (answer.response_code() == SUCCESS && h->next_begin_offset > slot.offset) {
      r->messages += h->next_begin_offset - slot.offset;
      r->bytes += static_cast<int64_t>(body_bytes);
      slot.offset = h->next_begin_offset;
    } else if (answer.response_code() == PULL_NOT_FOUND || answer.response_code() == PULL_OFFSET_MOVED) {
      slot.offset = h->min_offset;
    } else {
      return false;
    }
    if (slot.offset >= h->max_offset)
      slot.offset = std::max(h->min_offset, states_[static_cast<size_t>(slot.queue_id)].min);
    return true;
  }

 private:
  static constexpr int64_t offset_placeholder = 111'222'333'444'555'666;  // 18 digits
  struct State {
    Patch offset;
    int64_t min;
  };
  std::string topic_;
  std::vector<ReadQueue> queues_;
  std::vector<std::string> addresses_;
  int32_t max_;
  std::vector<State> states_;
};

// Route queries, of one topic or of a topic and its numbered followers in turn.
class RouteLoad : public Workload {
 public:
  RouteLoad(std::string topic, uint64_t topics) : topic_(std::move(topic)), topics_(topics) {}

  void prepare(Slot& slot, size_t number, size_t, int32_t opaque) override {
    const std::string topic = topics_ == 1 ? topic_ : numbered_topic(topic_, 0);
    proto::GetRouteInfoRequestHeader h;
    h.topic = topic;
    h.accept_standard_json_only = true;
    proto::GetRouteinfoByTopic::append_request(slot.frame, opaque, h);
    places_.resize(std::max(places_.size(), number + 1));
    if (topics_ > 1) places_[number].at = slot.frame.find(topic) + topic.size() - topic_digits;
    slot.queue_id = static_cast<int32_t>(number);
  }

  void patch(Slot& slot, int64_t) override {
    if (topics_ == 1) return;
    places_[static_cast<size_t>(slot.queue_id)].put_decimal(slot.frame, next_++ % topics_, topic_digits);
  }

  bool take(Slot&, const proto::RemotingCommand& answer, size_t body_bytes, BenchResult* r) override {
    if (answer.code != 0) return false;
    r->messages++;
    r->bytes += static_cast<int64_t>(body_bytes);
    return true;
  }

 private:
  const std::string topic_;
  const uint64_t topics_;
  std::vector<Patch> places_;
  uint64_t next_ = 0;
};

Outcome<BenchPlan> plan_of(Context& c) {
  const Options& o = c.options();
  BenchPlan plan;
  plan.connections = static_cast<size_t>(o.connections.value_or(16));
  plan.window = static_cast<size_t>(o.window.value_or(8));
  TRY_VAR(ms, c.duration_ms(o.duration, "--duration", 10'000));
  plan.duration_ms = ms;
  if (o.count) plan.requests_max = *o.count;
  if (o.count && o.duration.empty()) plan.duration_ms = no_end_ms;
  return plan;
}

void write_json(Context& c, const BenchPlan& plan, const BenchResult& r) {
  proto::JsonWriter w(proto::JsonStyle::strict);
  w.begin_object();
  w.member("connections", static_cast<int64_t>(plan.connections));
  w.member("window", static_cast<int64_t>(plan.window));
  w.member("seconds", r.seconds);
  w.member("requests", r.requests);
  w.member("messages", r.messages);
  w.member("messagesPerSecond", static_cast<double>(r.messages) / r.seconds);
  w.member("bytesPerSecond", static_cast<double>(r.bytes) / r.seconds);
  w.key("latencyUs");
  w.begin_object();
  w.member("p50", r.latency.percentile_us(0.50));
  w.member("p90", r.latency.percentile_us(0.90));
  w.member("p99", r.latency.percentile_us(0.99));
  w.member("p999", r.latency.percentile_us(0.999));
  w.member("max", r.latency.max_us());
  w.end_object();
  w.key("refused");
  w.begin_object();
  for (const auto& [code, count] : r.refused) w.member(fmt::format("{}", code), count);
  w.end_object();
  w.member("clientCpu", r.cpu_seconds / r.seconds);
  w.end_object();
  c.print(w.take() + "\n");
}

void write_text(Context& c, const BenchPlan& plan, const BenchResult& r) {
  double rate = static_cast<double>(r.messages) / r.seconds;
  c.print(fmt::format("{} connections x {} in flight, {:.1f}s\n", plan.connections, plan.window, r.seconds));
  c.print(fmt::format("{:<12}{} ({} requests)\n", plan.counted, format_number(r.messages),
                      format_number(r.requests)));
  c.print(fmt::format("{:<12}{} {}, {}/s\n", "rate", format_number(static_cast<int64_t>(rate)), plan.unit,
                      format_bytes(static_cast<int64_t>(static_cast<double>(r.bytes) / r.seconds))));
  c.print(fmt::format("{:<12}p50 {}us  p90 {}us  p99 {}us  p99.9 {}us  max {}us\n", "latency",
                      r.latency.percentile_us(0.50), r.latency.percentile_us(0.90),
                      r.latency.percentile_us(0.99), r.latency.percentile_us(0.999), r.latency.max_us()));
  for (const auto& [code, count] : r.refused)
    c.print(fmt::format("{:<12}{} x {} ({})\n", "refused", format_number(count),
                        proto::name_of(static_cast<proto::ResponseCode>(code)), code));
  if (r.cpu_seconds / r.seconds > 0.9)
    c.note("this program used a whole core: it may have been the bottleneck");
}

Outcome<void> finish(Context& c, const BenchPlan& plan, const BenchResult& r) {
  if (c.options().json) {
    write_json(c, plan, r);
  } else {
    write_text(c, plan, r);
  }
  if (r.refused.empty()) return {};
  int64_t refused = 0;
  for (const auto& [code, count] : r.refused) refused += count;
  return fail(Exit::refused, fmt::format("{} of {} requests were refused", refused, r.requests));
}

Outcome<void> bench_send(Context& c) {
  const Options& o = c.options();
  TRY_VAR(plan, plan_of(c));
  auto size = o.size.empty() ? std::optional<int64_t>(1024) : parse_bytes(o.size);
  if (!size || *size < 1 || *size > (4 << 20))
    return fail(Exit::usage, fmt::format("--size {}: it must be between 1 byte and 4 MiB", o.size));
  std::string properties;
  for (const std::string& p : o.properties) {
    auto eq = p.find('=');
    std::string_view name = std::string_view(p).substr(0, eq);
    if (eq == std::string::npos || !proto::is_property_text(name) ||
        !proto::is_property_text(std::string_view(p).substr(eq + 1)))
      return fail(Exit::usage, fmt::format("--property {}: it must be NAME=VALUE", p));
    proto::append_property(properties, name, std::string_view(p).substr(eq + 1));
  }
  const auto topics = static_cast<uint64_t>(o.topics.value_or(1));
  const int64_t batch = o.batch.value_or(1);
  if (o.count) plan.requests_max = (*o.count + batch - 1) / batch;
  TRY_VAR(target, write_target(c, topics == 1 ? c.arg(0) : numbered_topic(c.arg(0), 0)));
  for (const WriteQueue& q : target.queues)
    if (std::find(plan.addresses.begin(), plan.addresses.end(), q.address) == plan.addresses.end())
      plan.addresses.push_back(q.address);
  SendLoad load(c.arg(0), target, plan.addresses, static_cast<size_t>(*size), static_cast<size_t>(batch),
                topics, std::move(properties));
  TRY_VAR(result, run_bench(c, plan, load));
  return finish(c, plan, result);
}

Outcome<std::vector<ReadQueue>> read_queues(Context& c, const std::string& topic) {
  TRY_VAR(route, c.route(topic));
  std::vector<ReadQueue> out;
  for (const proto::QueueData& data : route.queue_datas) {
    auto b = std::find_if(route.broker_datas.begin(), route.broker_datas.end(),
                          [&](const proto::BrokerData& x) { return x.broker_name == data.broker_name; });
    const std::string* address = b == route.broker_datas.end() ? nullptr : main_address(*b);
    if (!address || !proto::perm::is_readable(data.perm)) continue;
    TRY_VAR(channel, c.broker_at(*address, data.broker_name));
    for (int32_t id = 0; id < data.read_queue_nums; id++) {
      proto::GetMinOffsetRequestHeader min_header{topic, id};
      proto::GetMaxOffsetRequestHeader max_header{topic, id, true};
      TRY_VAR(min_reply, channel->ask<proto::GetMinOffset>(min_header));
      TRY_VAR(max_reply, channel->ask<proto::GetMaxOffset>(max_header));
      auto min = proto::GetMinOffset::decode_response(min_reply.command);
      auto max = proto::GetMaxOffset::decode_response(max_reply.command);
      if (!min || !max) return fail(Exit::bad_input, "malformed answer to an offset query");
      if (max->offset > min->offset)
        out.push_back({*address, id, std::max<int64_t>(0, min->offset), max->offset});
    }
  }
  if (out.empty())
    return fail(Exit::refused,
                fmt::format("topic {} has no messages; fill it with \"rmqctl bench send {}\"", topic, topic));
  return out;
}

Outcome<void> bench_pull(Context& c) {
  const Options& o = c.options();
  TRY_VAR(plan, plan_of(c));
  TRY_VAR(queues, read_queues(c, c.arg(0)));
  for (const ReadQueue& q : queues)
    if (std::find(plan.addresses.begin(), plan.addresses.end(), q.address) == plan.addresses.end())
      plan.addresses.push_back(q.address);
  PullLoad load(c.arg(0), queues, plan.addresses, static_cast<int32_t>(o.max_messages.value_or(32)));
  TRY_VAR(result, run_bench(c, plan, load));
  return finish(c, plan, result);
}

Outcome<void> bench_route(Context& c) {
  TRY_VAR(plan, plan_of(c));
  plan.counted = "routes";
  plan.unit = "routes/s";
  TRY(c.namesrv());
  TRY_VAR(list, c.namesrv_list());
  for (const Address& a : list) plan.addresses.push_back(to_string(a));
  RouteLoad load(c.arg(0), static_cast<uint64_t>(c.options().topics.value_or(1)));
  TRY_VAR(result, run_bench(c, plan, load));
  return finish(c, plan, result);
}

constexpr OptionSpec connections_option = {
    "--connections", "N", &Options::connections, "connections to the servers (default 16)", 1, 10'000};
constexpr OptionSpec window_option = {
    "--window", "N", &Options::window, "requests in flight on each connection (default 8)", 1, 4'096};
constexpr OptionSpec duration_option = {"-d,--duration", "DURATION", &Options::duration,
                                        "how long (default 10s)"};
constexpr OptionSpec send_options[] = {
    connections_option,
    window_option,
    {"-s,--size", "BYTES", &Options::size, "of a message's body (default 1024; 4k, 1m)"},
    {"--batch", "N", &Options::batch, "messages in each request (default 1)", 1, 1'000},
    {"--property", "NAME=VALUE", &Options::properties, "a property of each request; repeatable"},
    {"--count", "N", &Options::count, "stop after N messages, rounded up to whole requests", 1,
     INT64_MAX / 2},
    {"--topics", "N", &Options::topics, "in turn to TOPIC_000000 and the N - 1 that follow; 1: to TOPIC", 1,
     1'000'000},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only this broker"},
    duration_option,
};
constexpr OptionSpec pull_options[] = {
    connections_option,
    window_option,
    {"--max-messages", "N", &Options::max_messages, "messages that a pull asks for (default 32)", 1, 1'000},
    duration_option,
};

constexpr OptionSpec route_options[] = {
    connections_option,
    window_option,
    {"--topics", "N", &Options::topics, "in turn of TOPIC_000000 and the N - 1 that follow; 1: of TOPIC", 1,
     1'000'000},
    {"--count", "N", &Options::count, "stop after N queries", 1, INT64_MAX / 2},
    duration_option,
};

constexpr Verb verbs[] = {
    {"bench send", "TOPIC", 1, 1, send_options, bench_send, "load brokers with messages and measure",
     "On a terminal a line shows the rate and the latencies of the last quarter second. The result tells "
     "messages "
     "a second and the latency of requests as percentiles; with --json as one object."},
    {"bench pull", "TOPIC", 1, 1, pull_options, bench_pull, "load brokers with pulls and measure",
     "Reads the topic's queues again and again from their beginnings, several times at once. Nothing at the "
     "broker changes."},
    {"bench route", "TOPIC", 1, 1, route_options, bench_route,
     "load name servers with route queries and measure",
     "Connections go to the name servers in turn. In --json, messages are routes that came."},
};

}  // namespace

std::span<const Verb> bench_verbs() {
  return verbs;
}

}  // namespace rmq::ctl
