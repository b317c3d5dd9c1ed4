// rmqctl message trace: what clients have told of a message in the trace topic: sent, consumed by whom, how
// long it took. Clients write there when they are configured to trace; a trace message holds records of
// several events, each with fields divided by the byte 1 and ended by the byte 2 (seen in the Java client
// 5.5.0).

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "ctl/context.h"
#include "ctl/message_trace.h"
#include "ctl/message_view.h"
#include "proto/headers_pull.h"

namespace rmq::ctl {

namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

int64_t number(std::string_view text) {
  int64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

std::string_view result_of(std::string_view success, std::string_view code) {
  if (success == "true") return "ok";
  static constexpr std::string_view codes[] = {"failed", "timed out", "exception", "returned null", "failed"};
  const auto n = static_cast<size_t>(number(code));
  return n < std::size(codes) ? codes[n] : codes[0];
}

constexpr std::string_view message_types[] = {"normal", "half", "transaction", "delayed", "ordered"};

// Fields that an older client does not write are empty.
class Fields {
 public:
  explicit Fields(std::string_view record) : all_(split(record, '\1')) {}
  std::string_view operator[](size_t i) const { return i < all_.size() ? all_[i] : std::string_view(); }
  size_t size() const { return all_.size(); }

 private:
  std::vector<std::string_view> all_;
};

// What a producer's records begin with.
void of_a_producer(const Fields& f, TraceEvent* e, const char* kind) {
  e->kind = kind;
  e->at_ms = number(f[1]);
  e->group = f[3];
  e->topic = f[4];
  e->msg_id = f[5];
}

void sent(const Fields& f, TraceEvent* e) {
  of_a_producer(f, e, "sent");
  e->keys = f[7];
  e->store_host = f[8];
  e->cost_ms = number(f[10]);
  // The offset id came later; without it what is at its place is the result.
  const bool has_offset_id = f.size() >= 14;
  e->offset_id = has_offset_id ? f[12] : std::string_view();
  e->result = f[has_offset_id ? 13 : 12] == "true" ? "ok" : "failed";
  const auto type = static_cast<size_t>(number(f[11]));
  if (type > 0 && type < std::size(message_types)) e->result += fmt::format(", {}", message_types[type]);
}

void transaction_ended(const Fields& f, TraceEvent* e) {
  of_a_producer(f, e, "transaction");
  e->keys = f[7];
  e->store_host = f[8];
  e->result = fmt::format("{}{}",
                          f[11] == "COMMIT_MESSAGE"     ? "committed"
                          : f[11] == "ROLLBACK_MESSAGE" ? "rolled back"
                                                        : "unknown",
                          f[12] == "true" ? ", when it was checked" : "");
}

void recalled(const Fields& f, TraceEvent* e) {
  of_a_producer(f, e, "recalled");
  e->result = f[6] == "true" ? "ok" : "failed";
}

void consuming(const Fields& f, TraceEvent* e) {
  e->kind = "consumed";
  e->at_ms = number(f[1]);
  e->group = f[3];
  e->request = f[4];
  e->msg_id = f[5];
  e->retry = number(f[6]);
  e->keys = f[7];
  e->result = "no end is told";
}

void consumed(const Fields& f, TraceEvent* e) {
  e->kind = "consumed";
  e->request = f[1];
  e->msg_id = f[2];
  e->cost_ms = number(f[3]);
  e->result = result_of(f[4], f[6]);
  e->keys = f[5];
  e->at_ms = number(f[7]) - (f[7].empty() ? 0 : e->cost_ms);
  e->group = f[8];
}

// The end of a consumption goes to its beginning; each may be in a trace message of its own.
void merge_ends(std::vector<TraceEvent>* events) {
  std::map<std::pair<std::string, std::string>, size_t> begun;
  std::vector<TraceEvent> out;
  for (const bool ends : {false, true})
    for (TraceEvent& e : *events) {
      const bool is_end = e.is_end;
      if (is_end != ends) continue;
      const std::pair key(e.request, e.msg_id);
      auto b = begun.find(key);
      if (!is_end || b == begun.end()) {
        if (e.kind == "consumed") begun.emplace(key, out.size());
        out.push_back(std::move(e));
        continue;
      }
      out[b->second].cost_ms = e.cost_ms;
      out[b->second].result = e.result;
    }
  *events = std::move(out);
}

}  // namespace

std::vector<TraceEvent> parse_trace(std::string_view body, std::string_view id) {
  std::vector<TraceEvent> out;
  for (std::string_view record : split(body, '\2')) {
    const Fields f(record);
    TraceEvent e;
    if (f[0] == "Pub") {
      sent(f, &e);
    } else if (f[0] == "EndTransaction") {
      transaction_ended(f, &e);
    } else if (f[0] == "Recall") {
      recalled(f, &e);
    } else if (f[0] == "SubBefore") {
      consuming(f, &e);
    } else if (f[0] == "SubAfter") {
      consumed(f, &e);
      e.is_end = true;
    } else {
      continue;
    }
    const std::vector<std::string_view> keys = split(e.keys, ' ');
    if (e.msg_id == id || e.offset_id == id || std::find(keys.begin(), keys.end(), id) != keys.end())
      out.push_back(std::move(e));
  }
  return out;
}

std::vector<TraceEvent> in_order(std::vector<TraceEvent> events) {
  merge_ends(&events);
  // No stable sort of the library's: equal times are in the order of what happens.
  auto rank = [](const TraceEvent& e) { return e.kind == "sent" ? 0 : e.kind == "consumed" ? 2 : 1; };
  std::sort(events.begin(), events.end(), [&](const TraceEvent& a, const TraceEvent& b) {
    return std::tuple(a.at_ms, rank(a), a.retry, std::string_view(a.group)) <
           std::tuple(b.at_ms, rank(b), b.retry, std::string_view(b.group));
  });
  return events;
}

namespace {

Outcome<void> trace(Context& c) {
  const Options& o = c.options();
  const std::string& id = c.arg(0);
  const std::string topic = o.topic.empty() ? "RMQ_SYS_TRACE_TOPIC" : o.topic;
  proto::QueryMessageRequestHeader h;
  h.topic = topic;
  h.key = id;
  h.max_num = static_cast<int32_t>(o.count.value_or(64));
  TRY_VAR(from, Context::moment_ms(o.from, "--from", 0));
  TRY_VAR(to, Context::moment_ms(o.to, "--to", INT64_MAX));
  h.begin_timestamp = from;
  h.end_timestamp = to;
  TRY_VAR(route, c.route(topic));
  std::vector<TraceEvent> events;
  for (const proto::BrokerData& b : route.broker_datas) {
    const std::string* address = main_address(b);
    if (!address) continue;
    TRY_VAR(channel, c.broker_at(*address, b.broker_name));
    TRY_VAR(reply, channel->call<proto::QueryMessage>(h));
    if (reply.code() == proto::ResponseCode::QUERY_NOT_FOUND) continue;
    if (!reply.ok()) return channel->refusal(reply);
    TRY_VAR(messages, parse_messages(reply.frame.body(), b.broker_name));
    for (const Message& m : messages)
      for (TraceEvent& e : parse_trace(m.body, id)) {
        e.client_host = m.record.born_host.to_string();
        events.push_back(std::move(e));
      }
  }
  if (events.empty())
    return fail(
        Exit::refused,
        fmt::format("topic {} tells nothing of {}: clients trace when they are configured to, by unique id "
                    "and keys",
                    topic, id));
  Table t({{"TIME", "timestamp"},
           {"EVENT", "event"},
           {"GROUP", "group"},
           {"CLIENT", "clientHost"},
           {"BROKER", "storeHost"},
           {"TRY", "retryTimes"},
           {"ms", "costTime"},
           {"RESULT", "status"},
           {"", "topic"},
           {"", "msgId"},
           {"", "keys"}});
  for (const TraceEvent& e : in_order(std::move(events)))
    t.add({Cell::moment(e.at_ms), Cell::text(e.kind), Cell::text(e.group), Cell::text(e.client_host),
           e.store_host.empty() ? Cell::none() : Cell::text(e.store_host),
           e.kind == "consumed" ? Cell::integer(e.retry + 1) : Cell::none(),
           e.cost_ms < 0 ? Cell::none() : Cell::integer(e.cost_ms), Cell::text(e.result), Cell::text(e.topic),
           Cell::text(e.msg_id), Cell::text(e.keys)});
  c.print_table(t);
  return {};
}

constexpr OptionSpec trace_options[] = {
    {"-t,--topic", "TOPIC", &Options::topic, "where clients write traces (default RMQ_SYS_TRACE_TOPIC)"},
    {"--from", "TIME", &Options::from, "only what was told from then on: \"2026-11-30 04:05\", \"10m ago\""},
    {"--to", "TIME", &Options::to, "only what was told until then"},
    {"--count", "N", &Options::count, "at most N trace messages of each broker (default 64)", 1, 10'000},
};

constexpr Verb verbs[] = {
    {"message trace", "ID", 1, 1, trace_options, trace,
     "show who sent a message, who consumed it, when, and how that went",
     "ID is a unique id (UNIQ_KEY) or a key (KEYS). Clients tell it themselves, in a topic that the broker "
     "has "
     "with "
     "traceTopicEnable: producers and consumers that are made with tracing. What none of them told is not "
     "there. TRY counts deliveries.",
     true},
};

}  // namespace

std::span<const Verb> message_trace_verbs() {
  return verbs;
}

}  // namespace rmq::ctl
