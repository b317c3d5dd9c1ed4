// rmqctl send: messages from an argument, a file or standard input, one by one or many in a batch.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "ctl/context.h"
#include "ctl/files.h"
#include "ctl/sender.h"
#include "proto/batch.h"
#include "proto/fastjson.h"
#include "proto/message_id.h"
#include "proto/properties.h"

namespace rmq::ctl {

namespace {

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) out.emplace_back(line);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

Outcome<std::vector<std::string>> bodies_of(Context& c) {
  const Options& o = c.options();
  bool from_argument = c.has_arg(1) && c.arg(1) != "-";
  if (from_argument && !o.file.empty())
    return fail(Exit::usage, "send: the body is given twice, as an argument and by --file");
  if (!from_argument && o.file.empty() && !c.has_arg(1) && Context::stdin_is_terminal())
    return fail(Exit::usage, "send: what shall the message say? Give BODY, --file FILE, or standard input");
  Outcome<std::string> text = from_argument    ? Outcome<std::string>(c.arg(1))
                              : o.file.empty() ? read_all(stdin, "standard input")
                                               : read_file(o.file);
  if (!text) return std::unexpected(text.error());
  // A shell's echo puts it there, and nobody means it.
  if (!from_argument && o.file.empty() && text->ends_with('\n')) text->pop_back();
  std::vector<std::string> out;
  if (o.lines) {
    out = split_lines(*text);
  } else {
    out.push_back(std::move(*text));
  }
  if (out.empty() || out[0].empty())
    return fail(Exit::bad_input, "the body is empty; RocketMQ takes no empty messages");
  auto count = static_cast<size_t>(o.count.value_or(1));
  if (count > 1 && out.size() > 1) return fail(Exit::usage, "send: --count and --lines exclude each other");
  return out;
}

Outcome<std::string> properties_of(Context& c) {
  const Options& o = c.options();
  std::string out;
  auto add = [&](std::string_view name, std::string_view value) -> Outcome<void> {
    if (!proto::is_property_text(name) || !proto::is_property_text(value))
      return fail(Exit::usage,
                  fmt::format("property {}: neither name nor value may be empty or hold the bytes "
                              "1 and 2",
                              name));
    proto::append_property(out, name, value);
    return {};
  };
  if (!o.tag.empty()) TRY(add(proto::prop::TAGS, o.tag));
  if (!o.keys.empty()) TRY(add(proto::prop::KEYS, fmt::format("{}", fmt::join(o.keys, " "))));
  for (const std::string& p : o.properties) {
    auto eq = p.find('=');
    if (eq == std::string::npos)
      return fail(Exit::usage, fmt::format("--property {}: it must be NAME=VALUE", p));
    TRY(add(std::string_view(p).substr(0, eq), std::string_view(p).substr(eq + 1)));
  }
  if (o.delay_level && !o.delay.empty())
    return fail(Exit::usage, "send: --delay and --delay-level exclude each other");
  if (o.delay_level) TRY(add(proto::prop::DELAY, fmt::format("{}", *o.delay_level)));
  if (!o.delay.empty()) {
    TRY_VAR(ms, c.duration_ms(o.delay, "--delay", 0));
    TRY(add(proto::prop::TIMER_DELAY_MS, fmt::format("{}", ms)));
  }
  TRY(add(proto::prop::WAIT, "true"));
  return out;
}

class Sender {
 public:
  Sender(Context& c, std::string properties, WriteTarget target)
      : c_(c),
        properties_(std::move(properties)),
        target_(std::move(target)),
        ids_(proto::Host::v4_of(0x7F000001, 0), static_cast<uint16_t>(getpid()),
             static_cast<uint32_t>(Context::now_ms())) {
    // A single message should not always go to the first queue.
    next_ = static_cast<size_t>(Context::now_ms()) % target_.queues.size();
  }

  // One request; several bodies make a batch.
  Outcome<void> send(std::span<const std::string* const> bodies) {
    const WriteQueue& q = target_.queues[next_++ % target_.queues.size()];
    TRY_VAR(channel, c_.broker_at(q.address, q.broker));
    std::vector<std::string> ids;
    std::string batch, own;
    for (const std::string* body : bodies) {
      ids.push_back(ids_.next(Context::now_ms()));
      own = properties_;
      proto::append_property(own, proto::prop::UNIQ_KEY, ids.back());
      if (bodies.size() > 1) proto::append_batch_message(batch, 0, as_bytes(*body), own);
    }
    auto h = send_header(c_.arg(0), q, bodies.size() > 1 ? properties_ : own, Context::now_ms());
    h.batch = bodies.size() > 1;
    auto reply = h.batch ? channel->call<proto::SendBatchMessage>(h, batch)
                         : channel->call<proto::SendMessageV2>(h, *bodies[0]);
    if (!reply) return std::unexpected(reply.error());
    return show(*channel, *reply, q, ids);
  }

  Outcome<void> finish() {
    if (sent_ > 1 && !c_.options().json) c_.print(fmt::format("{} messages sent\n", sent_));
    if (unsure_.empty()) return {};
    return fail(Exit::refused, unsure_);
  }

 private:
  Outcome<void> show(const Channel& channel, const Reply& reply, const WriteQueue& q,
                     const std::vector<std::string>& ids) {
    if (!is_stored(reply.code())) return channel.refusal(reply);
    auto answer = proto::SendMessageV2::decode_response(reply.command);
    if (!answer)
      return fail(Exit::bad_input, fmt::format("{}: malformed answer: {}", channel.peer().to_string(),
                                               proto::remark_of(answer.error())));
    std::string_view status = reply.ok() ? "SEND_OK" : proto::name_of(reply.code());
    if (!reply.ok())
      unsure_ = channel.refusal(reply).error().text + " (the message is stored, but not as safely as asked)";
    std::string_view offset_ids = answer->msg_id;
    for (size_t i = 0; i < ids.size(); i++) {
      auto end = offset_ids.find(',');
      show_one(status, q, answer->queue_id, answer->queue_offset + static_cast<int64_t>(i), ids[i],
               offset_ids.substr(0, end));
      offset_ids = end == std::string_view::npos ? std::string_view() : offset_ids.substr(end + 1);
      sent_++;
    }
    return {};
  }

  void show_one(std::string_view status, const WriteQueue& q, int32_t queue_id, int64_t queue_offset,
                std::string_view id, std::string_view offset_id) {
    std::string_view broker = q.broker.empty() ? q.address : q.broker;
    if (!c_.options().json) {
      c_.print(fmt::format("{}  {}/{} @{}  id {}  offset id {}\n", status, broker, queue_id, queue_offset, id,
                           offset_id));
      return;
    }
    proto::JsonWriter w(proto::JsonStyle::strict);
    w.begin_object();
    w.member("brokerName", broker);
    w.member("msgId", id);
    w.member("offsetMsgId", offset_id);
    w.member("queueId", queue_id);
    w.member("queueOffset", queue_offset);
    w.member("status", status);
    w.member("topic", std::string_view(c_.arg(0)));
    w.end_object();
    c_.print(w.take() + "\n");
  }

  Context& c_;
  std::string properties_;
  WriteTarget target_;
  proto::UniqueIdMaker ids_;
  size_t next_ = 0;
  int64_t sent_ = 0;
  std::string unsure_;
};

Outcome<void> send(Context& c) {
  const Options& o = c.options();
  if (auto wrong = proto::invalid_topic_remark(c.arg(0))) return fail(Exit::usage, "send: " + *wrong);
  TRY_VAR(properties, properties_of(c));
  TRY_VAR(bodies, bodies_of(c));
  TRY_VAR(target, write_target(c, c.arg(0)));
  Sender sender(c, std::move(properties), std::move(target));
  auto total = bodies.size() > 1 ? static_cast<int64_t>(bodies.size()) : o.count.value_or(1);
  auto batch = o.batch.value_or(1);
  std::vector<const std::string*> request;
  for (int64_t i = 0; i < total; i++) {
    request.push_back(&bodies[static_cast<size_t>(i) % bodies.size()]);
    if (static_cast<int64_t>(request.size()) < batch && i + 1 < total) continue;
    TRY(sender.send(request));
    request.clear();
  }
  return sender.finish();
}

constexpr OptionSpec send_options[] = {
    {"-f,--file", "FILE", &Options::file, "the body is what FILE holds"},
    {"-l,--lines", nullptr, &Options::lines, "each line of the file or of standard input is a message"},
    {"--tag", "TAG", &Options::tag, "the message's tag (property TAGS)"},
    {"-k,--key", "KEY", &Options::keys, "a key to find it by; repeatable (property KEYS)"},
    {"--property", "NAME=VALUE", &Options::properties, "a property; repeatable"},
    {"-q,--queue", "N", &Options::queue, "into queue N, instead of each in turn", 0, 65535},
    {"-b,--broker", "NAME|HOST:PORT", &Options::broker,
     "only to this broker; with an address no name server is asked"},
    {"--delay-level", "N", &Options::delay_level, "deliver later, by level (property DELAY)", 1, 100},
    {"--delay", "DURATION", &Options::delay, "deliver that much later (property TIMER_DELAY_MS)"},
    {"--count", "N", &Options::count, "send the message N times", 1, 1'000'000'000},
    {"--batch", "N", &Options::batch, "N messages in one request", 1, 10'000},
};

constexpr Verb verbs[] = {
    {"send", "TOPIC [BODY]", 1, 2, send_options, send, "send messages",
     "Without BODY and --file, or with the BODY \"-\", the body comes from standard input; one newline at "
     "its end "
     "is dropped. A topic that does not "
     "exist is created by the broker, if it is configured to. Prints for each message its status, broker, "
     "queue "
     "and queue offset, and both its ids; with --json one object a line. FLUSH_DISK_TIMEOUT, "
     "FLUSH_SLAVE_TIMEOUT and SLAVE_NOT_AVAILABLE mean that the message is stored but not as safely as "
     "asked: "
     "exit code 1."},
};

}  // namespace

std::span<const Verb> send_verbs() {
  return verbs;
}

}  // namespace rmq::ctl
