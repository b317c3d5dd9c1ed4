// rmqctl topic latency and cluster latency: how long a send takes, one message after another.

#include <fmt/format.h>

#include <algorithm>

#include "base/time.h"
#include "ctl/bench.h"
#include "ctl/context.h"
#include "ctl/sender.h"
#include "proto/headers_send.h"

namespace rmq::ctl {

namespace {

constexpr int64_t count_default = 100, size_default = 128;

struct Measured {
  BrokerNode broker;
  int64_t sent = 0, failed = 0, total_us = 0;
  Histogram latency;
  std::string first_failure;
};

Outcome<int64_t> size_of(const Options& o) {
  if (o.size.empty()) return size_default;
  auto bytes = parse_bytes(o.size);
  if (!bytes || *bytes < 1 || *bytes > (4 << 20))
    return fail(Exit::usage, fmt::format("--size {}: it must be from 1 to 4 MiB", o.size));
  return *bytes;
}

// A send that is refused, or that breaks its connection, counts as failed; the next one connects anew.
void send_one(Context& c, const std::string& topic, const WriteQueue& q, std::string_view body,
              Measured* out) {
  const int64_t began_ns = system_mono_ns();
  auto failed = [&](const Failure& f) {
    out->failed++;
    if (out->first_failure.empty()) out->first_failure = f.text;
  };
  auto channel = c.broker_at(q.address, q.broker);
  if (!channel) return failed(channel.error());
  auto reply =
      (*channel)->call<proto::SendMessageV2>(send_header(topic, q, "WAIT\1true\2", Context::now_ms()), body);
  if (!reply) return failed(reply.error());
  if (!is_stored(reply->code())) return failed((*channel)->refusal(*reply).error());
  const int64_t us = (system_mono_ns() - began_ns) / 1000;
  out->sent++;
  out->total_us += us;
  out->latency.add(us);
}

Cell milliseconds(const Measured& m, int64_t us) {
  return m.sent ? Cell::real(static_cast<double>(us) / 1000) : Cell::none();
}

Outcome<void> show(Context& c, const std::vector<Measured>& all, bool with_cluster) {
  Table t({{with_cluster ? "CLUSTER" : "", "cluster"},
           {"BROKER", "brokerName"},
           {"SENT", "successCount"},
           {"FAILED", "failCount"},
           {"AVERAGE ms", "averageMs"},
           {"50% ms", "p50Ms"},
           {"99% ms", "p99Ms"},
           {"LONGEST ms", "maxMs"}});
  std::string failure;
  for (const Measured& m : all) {
    t.add({Cell::text(m.broker.cluster), Cell::text(m.broker.name.empty() ? m.broker.address : m.broker.name),
           Cell::integer(m.sent), Cell::integer(m.failed), milliseconds(m, m.sent ? m.total_us / m.sent : 0),
           milliseconds(m, m.latency.percentile_us(0.5)), milliseconds(m, m.latency.percentile_us(0.99)),
           milliseconds(m, m.latency.max_us())});
    if (failure.empty()) failure = m.first_failure;
  }
  c.print_table(t);
  if (!failure.empty()) return fail(Exit::refused, failure);
  return {};
}

Outcome<void> topic_latency(Context& c) {
  const Options& o = c.options();
  TRY_VAR(size, size_of(o));
  TRY_VAR(target, write_target(c, c.arg(0)));
  std::vector<Measured> all;
  const std::string body(static_cast<size_t>(size), 'x');
  watch_for_stop();
  for (int64_t i = 0; i < o.count.value_or(count_default) && !stop_asked(); i++) {
    const WriteQueue& q = target.queues[static_cast<size_t>(i) % target.queues.size()];
    auto m = std::find_if(all.begin(), all.end(),
                          [&](const Measured& a) { return a.broker.address == q.address; });
    if (m == all.end()) {
      all.emplace_back().broker = {"", q.broker, q.address, 0};
      m = all.end() - 1;
    }
    send_one(c, c.arg(0), q, body, &*m);
  }
  return show(c, all, false);
}

// Each broker has a topic of its own name, which nobody consumes.
Outcome<void> cluster_latency(Context& c) {
  const Options& o = c.options();
  TRY_VAR(size, size_of(o));
  TRY_VAR(brokers, c.brokers());
  const std::string body(static_cast<size_t>(size), 'x');
  std::vector<Measured> all;
  watch_for_stop();
  for (const BrokerNode& b : brokers) {
    if (b.id != 0) continue;
    Measured& m = all.emplace_back();
    m.broker = b;
    for (int64_t i = 0; i < o.count.value_or(count_default) && !stop_asked(); i++)
      send_one(c, b.name, {b.name, b.address, 0}, body, &m);
  }
  if (all.empty()) return fail(Exit::refused, "no master is registered at the name server");
  return show(c, all, true);
}

constexpr OptionSpec topic_options[] = {
    {"--count", "N", &Options::count, "send N messages (default 100)", 1, 1'000'000},
    {"-s,--size", "BYTES", &Options::size, "of so many bytes (default 128)"},
    {"-q,--queue", "N", &Options::queue, "only into queue N", 0, 65535},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker, "only to this broker"},
};
constexpr OptionSpec cluster_options[] = {
    topic_options[0],
    topic_options[1],
    {"-c,--cluster", "NAME", &Options::cluster, "only the brokers of this cluster"},
};

constexpr Verb verbs[] = {
    {"topic latency", "TOPIC", 1, 1, topic_options, topic_latency, "measure how long a send to a topic takes",
     "Sends messages one after another, over the topic's queues in turn; they stay in the topic. From asking "
     "to the broker's answer. \"bench send\" is for load."},
    {"cluster latency", "", 0, 0, cluster_options, cluster_latency,
     "measure how long a send to each broker takes",
     "Sends messages one after another to the topic that each master has of its own name, which nobody "
     "consumes.",
     true},
};

}  // namespace

std::span<const Verb> latency_verbs() {
  return verbs;
}

}  // namespace rmq::ctl
