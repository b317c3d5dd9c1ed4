// rmqctl store dump: records of a CommitLog in the order of the log, or units of a ConsumeQueue.

#include <fmt/format.h>

#include <charconv>

#include "base/time.h"
#include "ctl/message_view.h"
#include "ctl/store_verbs.h"
#include "proto/fastjson.h"
#include "store/offline/batch_queue_check.h"
#include "store/offline/log_scan.h"
#include "store/offline/queue_reader.h"

namespace rmq::ctl {

namespace {

namespace offline = store::offline;

constexpr size_t preview_bytes = 100;
constexpr int64_t units_at_once = 16'384;

struct DumpFilter {
  std::string topic;
  std::optional<int64_t> queue;
  int64_t left = INT64_MAX;  // how many more to show
};

class Dump final : public offline::LogVisitor {
 public:
  Dump(Context& c, DumpFilter filter) : c_(c), filter_(std::move(filter)) {}

  Result<void> on_record(const proto::RecordView& r) override {
    bool wanted = filter_.left > 0 && (filter_.topic.empty() || r.topic == filter_.topic) &&
                  (!filter_.queue || r.queue_id == *filter_.queue);
    if (!wanted) return {};
    filter_.left--;
    show(r);
    if (filter_.left == 0) return fail(Errc::cancelled, "enough");
    return {};
  }
  void on_hole(const offline::Hole& h) override {
    holes_++;
    c_.note(fmt::format("no valid record from {} to {}: {}", h.begin, h.end, h.why));
  }
  bool on_progress(uint64_t) override { return true; }
  uint64_t holes() const { return holes_; }

 private:
  void show(const proto::RecordView& r) {
    auto body = inflate_body(r.body, r.sys_flag);
    Message m{r, "", body ? std::move(*body) : std::string(as_text(r.body))};
    if (c_.options().json) {
      c_.print(message_json_line(m));
      return;
    }
    std::string_view tags = m.property(proto::prop::TAGS), keys = m.property(proto::prop::KEYS);
    std::string preview = one_line(std::string_view(m.body).substr(0, preview_bytes));
    c_.print(fmt::format("{:>14} {:>7} {}/{} @{}  {}  {}{}{}{}\n", r.physical_offset, r.size, r.topic,
                         r.queue_id, r.queue_offset, format_wall_ms(r.store_timestamp_ms),
                         tags.empty() ? "" : fmt::format("[{}] ", one_line(tags)),
                         keys.empty() ? "" : fmt::format("({}) ", one_line(keys)), preview,
                         m.body.size() > preview_bytes ? "..." : ""));
  }

  Context& c_;
  DumpFilter filter_;
  uint64_t holes_ = 0;
};

Outcome<int64_t> start_offset(const Context& c) {
  const std::string& text = c.options().from;
  int64_t v = 0;
  if (text.empty()) return -1;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || end != text.data() + text.size() || v < 0)
    return fail(Exit::usage, fmt::format("--from {}: not an offset", text));
  return v;
}

Outcome<void> dump_records(Context& c) {
  const Options& o = c.options();
  const std::string& root = c.arg(0);
  TRY_VAR(from, start_offset(c));
  offline::Findings findings(8);
  auto log = offline::list_log(o.commit_log.empty() ? root + "/commitlog" : o.commit_log, findings);
  if (!log) return std::unexpected(store_failure(root, log.error()));
  for (const offline::Finding& f : findings.kept()) c.note(fmt::format("{}: {}", f.path, f.text));
  Dump dump(c, {o.topic, o.queue, o.count.value_or(INT64_MAX)});
  offline::LogScan scan(*log, dump);
  uint64_t begin = std::max(log->first_base(), static_cast<uint64_t>(std::max<int64_t>(from, 0)));
  if (log->files.empty() || begin >= log->end_base()) {
    if (from < 0) return {};
    return fail(Exit::refused, fmt::format("the CommitLog has no offset {}", from));
  }
  auto first = scan.next_record(begin);
  if (!first) return std::unexpected(store_failure(root, first.error()));
  if (!*first) return {};
  auto end = scan.run(from < 0 ? begin : **first);
  if (!end && end.error().code != Errc::cancelled) return std::unexpected(store_failure(root, end.error()));
  if (dump.holes() != 0)
    return fail(Exit::damaged, fmt::format("{} places without a valid record", dump.holes()));
  return {};
}

// `messages`: of the record, in a queue of type BatchCQ; 0: in another one.
void show_unit(Context& c, int64_t offset, const store::QueueUnit& u, int32_t messages = 0) {
  if (c.options().json) {
    proto::JsonWriter w(proto::JsonStyle::strict);
    w.begin_object();
    w.member("queueOffset", offset);
    w.member("commitLogOffset", u.physical_offset);
    w.member("size", u.bytes);
    w.member("tagsCode", u.tags_code);
    if (is_blank(u)) w.member("blank", true);
    if (messages != 0) w.member("messages", messages);
    w.end_object();
    c.print(w.take() + "\n");
    return;
  }
  c.print(fmt::format("{:>12} {:>14} {:>10} {}{}{}\n", offset, u.physical_offset, u.bytes, u.tags_code,
                      is_blank(u) ? "  (filling)" : "", messages > 1 ? fmt::format("  x{}", messages) : ""));
}

// A queue of type BatchCQ: the unit of each record.
Outcome<void> dump_batch_units(Context& c, offline::BatchQueueReader& queue, int64_t from) {
  for (int64_t left = c.options().count.value_or(INT64_MAX); left > 0;) {
    auto unit = queue.next();
    if (!unit) return std::unexpected(store_failure(c.arg(0), unit.error()));
    if (!*unit) return {};
    const store::BatchUnit& u = **unit;
    if (u.base_offset + u.count <= from) continue;
    show_unit(c, u.base_offset, {u.physical_offset, u.bytes, u.tags_code}, u.count);
    left--;
  }
  return {};
}

Outcome<void> dump_units(Context& c) {
  const std::string& name = c.options().consume_queue;
  const std::string& root = c.arg(0);
  size_t slash = name.rfind('/');
  int32_t id = 0;
  if (slash == std::string::npos || slash == 0 || !store::parse_queue_id(name.substr(slash + 1), id))
    return fail(Exit::usage, fmt::format("--consume-queue {}: it is TOPIC/QUEUE", name));
  TRY_VAR(from, start_offset(c));
  auto batch = offline::BatchQueueReader::open(root, name.substr(0, slash), id);
  if (batch) return dump_batch_units(c, *batch, from);
  if (batch.error().code != Errc::not_found) return std::unexpected(store_failure(root, batch.error()));
  auto queue = offline::QueueReader::open(root, name.substr(0, slash), id);
  if (!queue && queue.error().code == Errc::not_found)
    return fail(Exit::refused, fmt::format("{} has no files of a ConsumeQueue {}", root, name));
  if (!queue) return std::unexpected(store_failure(root, queue.error()));
  int64_t left = c.options().count.value_or(INT64_MAX);
  for (int64_t at = std::max(from, queue->begin()); at < queue->end() && left > 0;) {
    auto units = queue->read(at, std::min(left, units_at_once));
    if (!units) return std::unexpected(store_failure(root, units.error()));
    for (const store::QueueUnit& u : *units) {
      if (u.bytes == 0) return {};  // not written: the queue's end
      show_unit(c, at++, u);
    }
    left -= static_cast<int64_t>(units->size());
  }
  return {};
}

}  // namespace

Outcome<void> store_dump(Context& c) {
  const std::string& root = c.arg(0);
  auto known = offline::refuse_foreign_store(root);
  if (!known) return std::unexpected(store_failure(root, known.error()));
  auto lock = offline::SharedLock::take(root);
  bool may = lock || (c.options().live && lock.error().code == Errc::exists);
  if (!may) return std::unexpected(store_failure(root, lock.error()));
  return c.options().consume_queue.empty() ? dump_records(c) : dump_units(c);
}

}  // namespace rmq::ctl
