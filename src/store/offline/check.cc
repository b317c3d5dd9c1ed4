#include "store/offline/check.h"

#include <algorithm>
#include <cstring>

#include "store/change_lines.h"
#include "store/offline/log_scan.h"

namespace rmq::store::offline {

CheckHelper::~CheckHelper() = default;

namespace {

constexpr int64_t java_checkpoint_slack_ms = 3000;  // RocketMQ begins that much earlier than its checkpoint
constexpr uint64_t write_bytes_max = 1u << 20;      // one write of rmqd: see docs/formats.md, 1.4
constexpr size_t config_bytes_max = 256u << 20;
constexpr uint64_t block_bytes = 4096;

class StoreCheck final : public LogVisitor {
 public:
  StoreCheck(const CheckOptions& o, CheckHelper& helper)
      : o_(o),
        helper_(helper),
        report_(o.kept_of_each),
        queues_(o.root, report_.findings),
        index_(o.root, report_.findings) {}
  Result<CheckReport> run();

 private:
  Result<void> read_state();
  Result<void> read_own();
  Result<void> read_java();
  Result<void> check_configs();
  void note_topics(const std::string& name, std::string text, bool from_backup);
  Result<void> check_config(const std::string& name, bool has_backup);
  QueueTruth truth() const;
  Result<void> on_record(const proto::RecordView& r) override;
  void on_hole(const Hole& h) override;
  bool on_progress(uint64_t physical) override;
  bool is_damage(const Hole& h) const;
  void judge_hole(const Hole& h);
  void check_end(const LogEnd& end);
  void check_checkpoints();
  Result<void> read_ends();
  bool own_fits() const;

  const CheckOptions& o_;
  CheckHelper& helper_;
  CheckReport report_;
  QueueChecker queues_;
  IndexChecker index_;
  LogDir log_;
  std::vector<Hole> holes_;  // judged when the end is known
  uint64_t last_record_at_ = 0;
  int64_t last_record_ms_ = INT64_MIN;
  bool topics_known_ = false;
  std::string topics_;  // topics.json as it was judged, until its log was read
  bool topics_from_backup_ = false;
  bool own_later_ = false;  // another broker wrote after rmqd's checkpoint
};

// ---- what the last broker left -----------------------------------------------------------------------

Result<void> StoreCheck::read_own() {
  auto text = read_small_file(o_.root + "/rmqd.checkpoint", 1 << 20);
  if (!text && text.error().code == Errc::not_found) return {};
  if (!text) return std::unexpected(text.error());
  Findings& f = report_.findings;
  if (text->size() != 2 * own_checkpoint_slot_bytes)
    f.damage(Kind::checkpoint, "rmqd.checkpoint", -1,
             "it has " + std::to_string(text->size()) + " bytes, not " +
                 std::to_string(2 * own_checkpoint_slot_bytes));
  size_t broken = 0;
  Bytes rest = as_bytes(*text);
  for (size_t i = 0; rest.size() >= own_checkpoint_slot_bytes && i < 2; i++) {
    Bytes slot = rest.first(own_checkpoint_slot_bytes);
    rest = rest.subspan(own_checkpoint_slot_bytes);
    bool unused = std::all_of(slot.begin(), slot.end(), [](std::byte b) { return b == std::byte{0}; });
    auto c = decode_checkpoint(slot);
    if (!c && !unused) broken++;
    if (c && (!report_.own || c->sequence > report_.own->sequence)) report_.own = c;
  }
  if (broken != 0 && !report_.own)
    f.damage(Kind::checkpoint, "rmqd.checkpoint", -1, "no slot of it is whole");
  else if (broken != 0)
    f.note(Kind::checkpoint, "rmqd.checkpoint", -1,
           "one of its two slots is not whole; the other one counts");
  return {};
}

Result<void> StoreCheck::read_ends() {
  auto text = read_small_file(o_.root + "/rmqd.ends", 1u << 30);
  if (!text && text.error().code == Errc::not_found) return {};
  if (!text) return std::unexpected(text.error());
  auto ends = decode_queue_ends(as_bytes(*text));
  if (ends)
    queues_.set_ends(*ends);
  else
    report_.findings.damage(Kind::checkpoint, "rmqd.ends", -1, "it is not whole");
  return {};
}

Result<void> StoreCheck::read_java() {
  auto text = read_small_file(o_.root + "/checkpoint", 1 << 20);
  if (!text && text.error().code == Errc::not_found) return {};
  if (!text) return std::unexpected(text.error());
  // It is not synced: a crash may leave it short.
  if (text->size() != java_checkpoint_bytes)
    report_.findings.add(
        {report_.stopped ? Severity::damage : Severity::note, Kind::checkpoint, "checkpoint", -1,
         "it has " + std::to_string(text->size()) + " bytes, not " + std::to_string(java_checkpoint_bytes)});
  else
    report_.java = decode_java_checkpoint(as_bytes(*text));
  return {};
}

Result<void> StoreCheck::read_state() {
  auto abort = read_small_file(o_.root + "/abort", 4096);
  if (!abort && abort.error().code != Errc::not_found) return std::unexpected(abort.error());
  if (abort) report_.running = *abort == own_abort_text ? Writer::rmqd : Writer::rocketmq;
  report_.stopped = !abort && !o_.live;
  TRY(read_own());
  return read_java();
}

// Our own checkpoint says something about this log.
bool StoreCheck::own_fits() const {
  return report_.own && static_cast<uint64_t>(report_.own->queues_durable) >= log_.first_base();
}

QueueTruth StoreCheck::truth() const {
  QueueTruth t;
  t.stopped = report_.stopped;
  t.log_min = static_cast<int64_t>(log_.first_base());
  if (own_fits()) t.units_below = t.sums_below = report_.own->queues_durable;
  if (report_.java && report_.running == Writer::rocketmq)
    t.units_until_timestamp =
        std::min(report_.java->physic_msg_timestamp, report_.java->logics_msg_timestamp) -
        java_checkpoint_slack_ms;
  return t;
}

// ---- config/ -----------------------------------------------------------------------------------------

void StoreCheck::note_topics(const std::string& name, std::string text, bool from_backup) {
  if (name != "topics.json") return;
  topics_known_ = true;
  topics_ = std::move(text);
  topics_from_backup_ = from_backup;
}

Result<void> StoreCheck::check_config(const std::string& name, bool has_backup) {
  std::string path = o_.root + "/config/" + name;
  TRY_VAR(text, read_small_file(path, config_bytes_max));
  report_.config_files++;
  std::string wrong = text.empty() ? "it is empty" : helper_.judge_config(name, text);
  if (wrong.empty()) {
    note_topics(name, std::move(text), false);
    return {};
  }
  std::string backup_wrong = "there is no .bak";
  if (has_backup) {
    TRY_VAR(backup, read_small_file(path + ".bak", config_bytes_max));
    backup_wrong = backup.empty() ? "its .bak is empty" : helper_.judge_config(name, backup);
    if (backup_wrong.empty()) note_topics(name, std::move(backup), true);
  }
  if (backup_wrong.empty())
    report_.findings.damage(Kind::config, "config/" + name, -1, wrong + "; a broker takes its .bak");
  else
    report_.findings.damage(Kind::config, "config/" + name, -1, wrong + "; " + backup_wrong);
  return {};
}

Result<void> StoreCheck::check_configs() {
  auto entries = list_dir(o_.root + "/config");
  if (!entries && entries.error().code == Errc::not_found) return {};
  if (!entries) return std::unexpected(entries.error());
  auto has = [&](const std::string& name) {
    return std::any_of(entries->begin(), entries->end(),
                       [&](const Entry& e) { return !e.is_dir && e.name == name; });
  };
  for (const Entry& e : *entries) {
    if (!e.is_dir && e.name.ends_with(".json")) TRY(check_config(e.name, has(e.name + ".bak")));
    if (e.is_dir || !e.name.ends_with(".json.bak")) continue;
    std::string main = e.name.substr(0, e.name.size() - 4);
    if (!has(main))
      report_.findings.note(Kind::config, "config/" + main, -1, "it is missing; a broker takes its .bak");
  }
  if (!topics_known_ || !has("topics.json.log")) return {};
  TRY_VAR(log, read_small_file(o_.root + "/config/topics.json.log", config_bytes_max));
  const std::vector<std::string> changes = changes_of(log);
  helper_.topics_changed(
      std::span(changes).subspan(first_change_since(changes, topics_, topics_from_backup_)));
  topics_.clear();
  return {};
}

// ---- the log -----------------------------------------------------------------------------------------

Result<void> StoreCheck::on_record(const proto::RecordView& r) {
  report_.records++;
  last_record_at_ = static_cast<uint64_t>(r.physical_offset);
  last_record_ms_ = r.store_timestamp_ms;
  report_.record_bytes += r.size;
  if (report_.records == 1) report_.first_store_ms = r.store_timestamp_ms;
  report_.last_store_ms = std::max(report_.last_store_ms, r.store_timestamp_ms);
  int32_t type = proto::sys_flag::transaction_of(r.sys_flag);
  if (type == proto::sys_flag::transaction_prepared || type == proto::sys_flag::transaction_rollback)
    report_.transaction_records++;
  TRY(queues_.on_record(r));
  return index_.on_record(r);
}

bool StoreCheck::on_progress(uint64_t physical) {
  return helper_.on_progress(physical - log_.first_base(), log_.end_base() - log_.first_base());
}

// As the recovery decides it: the rules are in docs/formats.md, 1.4.
bool StoreCheck::is_damage(const Hole& h) const {
  if (log_.find(h.begin) == nullptr) return true;
  if (own_fits() && h.begin < static_cast<uint64_t>(report_.own->log_durable)) return true;
  const bool older = h.next_store_timestamp_ms < h.previous_store_timestamp_ms;  // what RocketMQ has cut
  if (report_.stopped) return !older;
  if (report_.running == Writer::rocketmq || !own_fits())
    return report_.java && !older && h.next_store_timestamp_ms <= report_.java->physic_msg_timestamp;
  if (!report_.own->sync_flush) return false;
  uint64_t file_end = log_.find(h.begin)->base + log_.file_bytes;
  uint64_t spot_end = h.begin + std::max<uint64_t>(h.spot_bytes, 1);
  uint64_t proof = (spot_end + block_bytes - 1) / block_bytes * block_bytes + write_bytes_max;
  return last_record_at_ >= std::min(proof, file_end);
}

void StoreCheck::on_hole(const Hole& h) {
  queues_.on_hole(h.begin, h.end);
  index_.on_hole(h.begin, h.end);
  holes_.push_back(h);
  holes_.back().previous_store_timestamp_ms = last_record_ms_;
}

void StoreCheck::judge_hole(const Hole& h) {
  const LogFile* f = log_.find(h.begin);
  std::string path = f == nullptr ? "commitlog" : "commitlog/" + f->name;
  std::string range = std::to_string(h.end - h.begin) + " bytes up to " + std::to_string(h.end);
  if (is_damage(h)) {
    report_.findings.damage(Kind::log_record, path, static_cast<int64_t>(h.begin),
                            std::string(h.why) + "; no valid record in the " + range);
    return;
  }
  report_.findings.note(Kind::log_tail, path, static_cast<int64_t>(h.begin),
                        std::string(h.why) +
                            ": a write that was under way; a broker that opens the store "
                            "cuts the log here, although records follow after " +
                            range);
}

void StoreCheck::check_end(const LogEnd& end) {
  for (const Hole& h : holes_) judge_hole(h);
  report_.log_end = end.at;
  report_.torn_bytes = end.nonzero_end - end.at;
  Findings& f = report_.findings;
  const LogFile* file = log_.find(end.at);
  std::string path = file == nullptr ? "commitlog" : "commitlog/" + file->name;
  auto at = static_cast<int64_t>(end.at);
  if (own_fits() && end.at < static_cast<uint64_t>(report_.own->log_durable)) {
    f.damage(Kind::log_tail, path, at,
             "the log ends here (" + std::string(*end.why ? end.why : "nothing but zeros follows") +
                 "), but was on stable storage up to " + std::to_string(report_.own->log_durable));
    return;
  }
  if (report_.torn_bytes == 0) return;
  std::string text = std::string(end.why) + "; " + std::to_string(report_.torn_bytes) +
                     " bytes behind the last record are no record";
  bool ours_clean =
      report_.own && report_.own->clean && end.at <= static_cast<uint64_t>(report_.own->queues_durable);
  if (report_.stopped && ours_clean)
    f.damage(Kind::log_tail, path, at, text);
  else if (report_.stopped)
    f.note(Kind::log_tail, path, at, text + " (RocketMQ leaves such bytes after a crash)");
  else
    f.note(Kind::log_tail, path, at, text + ": a write that was under way; a broker cuts it");
}

void StoreCheck::check_checkpoints() {
  Findings& f = report_.findings;
  if (report_.own) {
    const OwnCheckpoint& c = *report_.own;
    own_later_ = c.clean && report_.log_end > static_cast<uint64_t>(c.queues_durable);
    if (c.queues_durable < 0 || c.log_durable < c.queues_durable)
      f.damage(Kind::checkpoint, "rmqd.checkpoint", -1, "its offsets contradict each other");
    if (log_.files.empty() && c.log_durable > 0)
      f.damage(
          Kind::log_file, "commitlog", -1,
          "there are no files, but the log was on stable storage up to " + std::to_string(c.log_durable));
  }
  if (!report_.java || report_.records == 0) return;
  if (report_.java->physic_msg_timestamp <= report_.last_store_ms) return;
  std::string text = "it says that a record stored at " + std::to_string(report_.java->physic_msg_timestamp) +
                     " was on stable storage, the newest one is of " + std::to_string(report_.last_store_ms);
  f.add({report_.stopped ? Severity::damage : Severity::note, Kind::checkpoint, "checkpoint", -1, text});
}

Result<CheckReport> StoreCheck::run() {
  TRY(refuse_foreign_store(o_.root));
  auto lock = SharedLock::take(o_.root);
  if (!lock && !(o_.live && lock.error().code == Errc::exists)) return std::unexpected(lock.error());
  auto log =
      list_log(o_.commit_log_dir.empty() ? o_.root + "/commitlog" : o_.commit_log_dir, report_.findings);
  if (!log) return std::unexpected(log.error());
  log_ = std::move(*log);
  TRY(read_state());
  TRY(check_configs());
  queues_.begin(truth());
  TRY(queues_.list());
  TRY(read_ends());
  TRY(index_.list(report_.stopped, o_.index_layout, static_cast<int64_t>(log_.first_base())));
  report_.log_files = log_.files.size();
  report_.log_file_bytes = log_.file_bytes;
  report_.log_begin = report_.log_end = log_.first_base();
  LogScan scan(log_, *this);
  TRY_VAR(end, scan.run(log_.first_base()));
  report_.interrupted = end.stopped;
  if (end.stopped) return std::move(report_);
  check_end(end);
  check_checkpoints();
  // Sums of a checkpoint that another broker has left behind prove nothing.
  const OwnCheckpoint* sums = own_fits() && !own_later_ ? &*report_.own : nullptr;
  auto exists = [](void* helper, std::string_view topic) {
    return static_cast<CheckHelper*>(helper)->topic_exists(topic);
  };
  TRY(queues_.finish(report_.log_end, sums, topics_known_ ? +exists : nullptr, &helper_));
  TRY(index_.finish());
  TRY_VAR(compaction, check_compaction(o_.root, report_.stopped, report_.findings));
  report_.compaction = compaction;
  report_.queues = queues_.stats();
  report_.index = index_.stats();
  helper_.on_progress(log_.end_base() - log_.first_base(), log_.end_base() - log_.first_base());
  return std::move(report_);
}

}  // namespace

Result<CheckReport> check_store(const CheckOptions& options, CheckHelper& helper) {
  StoreCheck check(options, helper);
  return check.run();
}

}  // namespace rmq::store::offline
