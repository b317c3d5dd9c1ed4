#include "store/offline/queue_check.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "store/light_queues.h"

namespace rmq::store::offline {

namespace {
constexpr int64_t delay_ms_max = int64_t{400} * 86'400'000;
constexpr int64_t extension_address_max = -2'147'483'649;  // tags codes up to it point into consumequeue_ext
}  // namespace

struct QueueChecker::Queue {
  Topic* topic = nullptr;
  int32_t id = 0;
  bool directory = false;
  bool odd_files = false;   // told already: a missing file is no surprise
  int64_t files_begin = 0;  // first unit of the first file; files_end: behind the last one's
  int64_t files_end = 0;
  std::vector<Entry> files;       // while listing
  int64_t expect = -1;            // queue offset of the next record; -1: none came yet
  int64_t cursor = -1;            // units before it are judged; -1: none is
  int64_t below = 0;              // behind the last unit of a record that ends at or below the checkpoint
  bool below_blank = false;       // that unit is blank
  uint64_t matched = 0;           // of this generation
  uint64_t missing_old = 0;       // ... records that must have a unit and have none
  uint64_t missing_new = 0;       // ... that may
  int64_t first_missing = -1;     // physical offset
  int64_t first_missing_at = -1;  // queue offset
  std::unique_ptr<std::byte[]> window;
  int64_t window_first = 0, window_count = 0;
};

struct QueueChecker::Topic {
  std::string name;
  bool schedule = false;
  bool batch = false;                          // a record may have several units, in a directory of their own
  bool skip = false;                           // there are RocketMQ's files only
  std::vector<std::unique_ptr<Queue>> queues;  // by id
};

QueueChecker::QueueChecker(std::string root, Findings& findings)
    : root_(std::move(root)), findings_(findings), batch_(root_, findings, truth_) {}
QueueChecker::~QueueChecker() = default;

std::string QueueChecker::name_of_queue(const Queue& q) const {
  return (q.topic->batch ? std::string(own_batch_queue_dir) : "consumequeue") + "/" + q.topic->name + "/" +
         std::to_string(q.id);
}

QueueChecker::Topic& QueueChecker::topic_of(std::string_view name) {
  if (last_ != nullptr && last_->name == name) return *last_;
  auto it = topics_.find(name);
  if (it == topics_.end()) {
    auto t = std::make_unique<Topic>();
    t->name = name;
    t->schedule = name == schedule_topic;
    std::string_view key = t->name;
    it = topics_.emplace(key, std::move(t)).first;
  }
  return *(last_ = it->second.get());
}

QueueChecker::Queue& QueueChecker::queue_of(Topic& t, int32_t id) {
  auto at = static_cast<size_t>(id);
  if (at < t.queues.size() && t.queues[at]->id == id) return *t.queues[at];  // dense ids: the usual case
  auto it = std::lower_bound(t.queues.begin(), t.queues.end(), id,
                             [](const std::unique_ptr<Queue>& q, int32_t i) { return q->id < i; });
  if (it != t.queues.end() && (*it)->id == id) return **it;
  auto q = std::make_unique<Queue>();
  q->topic = &t;
  q->id = id;
  return **t.queues.insert(it, std::move(q));
}

// ---- the files ---------------------------------------------------------------------------------------

void QueueChecker::list_queue(Queue& q, const std::vector<Entry>& entries) {
  q.directory = true;
  stats_.queues++;
  uint64_t at = 0;
  for (const Entry& e : entries) {
    if (!e.is_dir && parse_file_name_20(e.name, at))
      q.files.push_back(e);
    else
      findings_.note(Kind::queue_file, name_of_queue(q) + "/" + e.name, -1, "not a file of a ConsumeQueue");
  }
  stats_.files += q.files.size();
}

Result<void> QueueChecker::list_topic(std::string_view below, const std::string& name) {
  const std::string relative = std::string(below) + "/" + name, dir = root_ + "/" + relative;
  TRY_VAR(ids, list_dir(dir));
  Topic& t = topic_of(name);
  t.batch = below == own_batch_queue_dir;
  stats_.topics++;
  for (const Entry& e : ids) {
    int32_t id = 0;
    if (!e.is_dir || !parse_queue_id(e.name, id)) {
      findings_.note(Kind::queue_file, relative + "/" + e.name, -1, "not a queue's directory");
      continue;
    }
    TRY_VAR(files, list_dir(dir + "/" + e.name));
    list_queue(queue_of(t, id), files);
  }
  return {};
}

Result<void> QueueChecker::list_topics(std::string_view dir) {
  auto names = list_dir(root_ + "/" + std::string(dir));
  if (!names && names.error().code == Errc::not_found) return {};
  if (!names) return std::unexpected(names.error());
  for (const Entry& e : *names) {
    if (e.is_dir && legal_topic(e.name))
      TRY(list_topic(dir, e.name));
    else
      findings_.note(Kind::queue_file, std::string(dir) + "/" + e.name, -1, "not a topic's directory");
  }
  return {};
}

Result<void> QueueChecker::list() {
  TRY(list_topics("consumequeue"));
  TRY(list_topics(own_batch_queue_dir));
  TRY(batch_.list());
  extended_ = list_dir(root_ + "/consumequeue_ext").has_value();
  find_file_size();
  for (auto& [name, t] : topics_)
    for (auto& q : t->queues) check_files(*q);
  auto queues = static_cast<int64_t>(std::max<uint64_t>(stats_.queues, 1));
  auto fair = static_cast<int64_t>(queue_windows_bytes_max / unit_bytes) / queues;
  window_units_ = std::clamp<int64_t>(fair, 32, queue_window_bytes_max / unit_bytes);
  return {};
}

// The size that most files have; of equally many the larger one.
void QueueChecker::find_file_size() {
  std::map<uint64_t, uint64_t> sizes;
  for (auto& [name, t] : topics_)
    for (auto& q : t->queues)
      for (const Entry& e : q->files) sizes[e.bytes]++;
  uint64_t best = 0, count = 0;
  for (auto [size, n] : sizes) {
    if (size < unit_bytes || n < count) continue;
    best = size;
    count = n;
  }
  file_units_ = static_cast<int64_t>(std::max<uint64_t>(best / unit_bytes, 1));
}

void QueueChecker::check_files(Queue& q) {
  uint64_t full = static_cast<uint64_t>(file_units_) * unit_bytes;
  uint64_t expected = 0;
  if (!q.files.empty() && q.files.back().bytes == 0) {
    findings_.note(Kind::queue_file, name_of_queue(q) + "/" + q.files.back().name, -1,
                   "it is empty: a broker was stopped while it made the file");
    q.files.pop_back();
  }
  for (size_t i = 0; i < q.files.size(); i++) {
    const Entry& e = q.files[i];
    uint64_t at = 0;
    parse_file_name_20(e.name, at);
    std::string path = name_of_queue(q) + "/" + e.name;
    auto told = [&](std::string text) {
      findings_.damage(Kind::queue_file, path, static_cast<int64_t>(at / unit_bytes), std::move(text));
      q.odd_files = true;
    };
    const bool cut_short = !truth_.stopped && i + 1 == q.files.size() && e.bytes < full;
    if (cut_short)
      findings_.note(
          Kind::queue_file, path, static_cast<int64_t>(at / unit_bytes),
          "it has " + std::to_string(e.bytes) + " bytes: a start was stopped while it cut the file");
    else if (e.bytes != full)
      told("it has " + std::to_string(e.bytes) + " bytes, the others " + std::to_string(full));
    if (at % full != 0)
      told("its name is not a multiple of the size of the files");
    else if (i > 0 && at != expected)
      told("files before it are missing");
    if (i == 0) q.files_begin = static_cast<int64_t>(at / unit_bytes);
    expected = at + full;
    q.files_end = static_cast<int64_t>(at / unit_bytes) + file_units_;
  }
  q.files = {};
}

std::string QueueChecker::path_of(const Queue& q, int64_t offset) const {
  auto at = static_cast<uint64_t>(offset - offset % file_units_) * unit_bytes;
  return root_ + "/" + name_of_queue(q) + "/" + file_name_20(at);
}

// Units that cannot be read are as not written: that files are missing was told before.
Result<void> QueueChecker::load_window(Queue& q, int64_t offset) {
  int64_t in_file = offset % file_units_;
  int64_t count = std::min(window_units_, file_units_ - in_file);
  if (!q.window) q.window = std::make_unique<std::byte[]>(static_cast<size_t>(window_units_) * unit_bytes);
  size_t bytes = static_cast<size_t>(count) * unit_bytes;
  std::memset(q.window.get(), 0, bytes);
  q.window_first = offset;
  q.window_count = count;
  auto file = InFile::open(path_of(q, offset));
  if (!file && file.error().code == Errc::not_found) return {};
  if (!file) return std::unexpected(file.error());
  const uint64_t at = static_cast<uint64_t>(in_file) * unit_bytes;
  TRY_VAR(n, file->read(at, {q.window.get(), bytes}));
  file->will_need(at + bytes, bytes);  // the next window
  if (n % unit_bytes != 0) std::memset(q.window.get() + n - n % unit_bytes, 0, n % unit_bytes);
  return {};
}

Result<QueueUnit> QueueChecker::unit_at(Queue& q, int64_t offset) {
  if (!q.directory || offset < q.files_begin || offset >= q.files_end) return QueueUnit{};
  if (offset < q.window_first || offset >= q.window_first + q.window_count) TRY(load_window(q, offset));
  return decode_unit(q.window.get() + static_cast<size_t>(offset - q.window_first) * unit_bytes);
}

// ---- record by record --------------------------------------------------------------------------------

bool QueueChecker::in_hole(int64_t physical) const {
  auto p = static_cast<uint64_t>(physical);
  return std::any_of(holes_.begin(), holes_.end(), [p](const Range& r) { return p >= r.begin && p < r.end; });
}

bool QueueChecker::may_miss(const proto::RecordView& r) {
  if (!truth_.may_miss(r)) return false;
  may_miss_from_ = std::min(may_miss_from_, r.physical_offset);
  return true;
}

// The tags code of a delayed message is the time to deliver it. Of a timer message it is ours (TimerTag), or
// RocketMQ's, a hash as of all others.
bool QueueChecker::same(const Queue& q, const proto::RecordView& r, const QueueUnit& u) const {
  if (u.physical_offset != r.physical_offset || u.bytes != static_cast<int32_t>(r.size)) return false;
  if (extended_ && u.tags_code <= extension_address_max) return true;
  if (!q.topic->schedule) return u.tags_code == r.tags_code() || u.tags_code == unit_tags_code(r, {});
  int64_t delay_ms = u.tags_code - r.store_timestamp_ms;
  return delay_ms >= -60'000 && delay_ms <= delay_ms_max;
}

void QueueChecker::missing(Queue& q, const proto::RecordView& r) {
  // RocketMQ does not write our own files of batch topics.
  const bool theirs = q.topic->batch && r.physical_offset + static_cast<int64_t>(r.size) > truth_.sums_below;
  if (may_miss(r) || theirs) {
    q.missing_new++;
    return;
  }
  if (q.missing_old++ != 0) return;
  q.first_missing = r.physical_offset;
  q.first_missing_at = r.queue_offset;
}

// A start with damagedLog=QUARANTINE has filled the places of lost records with blank units.
Result<bool> QueueChecker::is_filled(Queue& q, int64_t from, int64_t to) {
  for (int64_t n = from; n < to; n++) {
    TRY_VAR(u, unit_at(q, n));
    if (!is_blank(u)) return false;
  }
  stats_.set_aside += static_cast<uint64_t>(to - from);
  return true;
}

// Says what is wrong with the record's queue offset. False: the offset is one that was there before, so its
// unit is another record's.
Result<bool> QueueChecker::in_order(Queue& q, const proto::RecordView& r, int32_t messages) {
  int64_t expect = q.expect;
  q.expect = r.queue_offset + messages;
  if (expect < 0 || r.queue_offset == expect) return true;
  // Without a unit of its own the old generation was deleted.
  if (r.queue_offset == 0 && q.matched == 0) {
    stats_.restarts++;
    stats_.deleted_topic_records += q.missing_old + q.missing_new;
    q.missing_old = q.missing_new = 0;
    q.first_missing = -1;
    return true;
  }
  bool gap = r.queue_offset > expect;
  if (gap && !holes_.empty()) return true;  // the records between were in a hole, which was told
  if (gap) {
    TRY_VAR(aside, is_filled(q, expect, r.queue_offset));
    if (aside) return true;
  }
  findings_.add(Severity::damage, Kind::queue_order, [&] {
    return Finding{Severity::damage, Kind::queue_order, name_of_queue(q), r.queue_offset,
                   "the record at " + std::to_string(r.physical_offset) + " has queue offset " +
                       std::to_string(r.queue_offset) + ", the queue's next one is " +
                       std::to_string(expect)};
  });
  if (!gap) q.expect = std::max(expect, q.expect);
  return gap;
}

// The next offset behind `offset`, whose unit is zero, that may have another one. Files are sparse: of forty
// thousand queues nearly everything is a hole, which must not be read.
Result<int64_t> QueueChecker::skip_zeros(Queue& q, int64_t offset) const {
  int64_t end = q.window_first + q.window_count;
  const std::byte* from = q.window.get() + static_cast<size_t>(offset - q.window_first) * unit_bytes;
  if (!all_zero({from, static_cast<size_t>(end - offset) * unit_bytes})) return offset + 1;
  if (end % file_units_ == 0) return end;
  auto file = InFile::open(path_of(q, end));
  if (!file) return end;
  auto data = file->next_data(static_cast<uint64_t>(end % file_units_) * unit_bytes);
  if (!data) return end - end % file_units_ + file_units_;
  return std::max(end, end - end % file_units_ + static_cast<int64_t>(*data / unit_bytes));
}

Finding QueueChecker::orphan(const Queue& q, const QueueUnit& u, bool may_be) const {
  Finding f{Severity::damage, Kind::unit_orphan, name_of_queue(q), q.cursor, {}};
  if (may_be) {
    f.severity = Severity::note;
    f.text = "a unit behind the checkpoint has no record; a broker that opens the store cuts it";
  } else {
    f.text = "the unit points at " + std::to_string(u.physical_offset) + " (" + std::to_string(u.bytes) +
             " bytes), where the log has no such record";
  }
  return f;
}

// Units from the cursor up to `to` belong to no record that the log still shows.
Result<void> QueueChecker::pass_units(Queue& q, int64_t to) {
  if (q.cursor < 0) q.cursor = q.files_begin;
  const int64_t limit = std::min(to, q.files_end);
  while (q.cursor < limit) {
    TRY_VAR(u, unit_at(q, q.cursor));
    if (u == QueueUnit{}) {  // not written
      TRY_VAR(next, skip_zeros(q, q.cursor));
      q.cursor = std::min(next, limit);
      continue;
    }
    pass_unit(q, u);
    q.cursor++;
  }
  return {};
}

void QueueChecker::pass_unit(Queue& q, const QueueUnit& u) {
  int64_t end = u.physical_offset + u.bytes;
  if (is_blank(u) || (u.physical_offset >= 0 && end <= truth_.sums_below)) {
    q.below = q.cursor + 1;
    q.below_blank = is_blank(u);
  }
  if (is_blank(u)) return;
  if (u.physical_offset >= 0 && end <= truth_.log_min) {
    stats_.expired++;
    return;
  }
  if (in_hole(u.physical_offset)) return;
  bool may_be = !truth_.stopped && u.physical_offset >= may_miss_from_;
  Severity severity = may_be ? Severity::note : Severity::damage;
  findings_.add(severity, Kind::unit_orphan, [&] { return orphan(q, u, may_be); });
}

Finding QueueChecker::wrong(const Queue& q, const proto::RecordView& r, const QueueUnit& u) const {
  auto words = [](int64_t offset, int64_t bytes, int64_t code) {
    return std::to_string(offset) + ", " + std::to_string(bytes) + " bytes, tags code " +
           std::to_string(code);
  };
  std::string code = q.topic->schedule ? "the time to deliver it" : std::to_string(unit_tags_code(r, {}));
  return {Severity::damage, Kind::unit_wrong, name_of_queue(q), r.queue_offset,
          "the unit says offset " + words(u.physical_offset, u.bytes, u.tags_code) + "; its record is at " +
              std::to_string(r.physical_offset) + ", " + std::to_string(r.size) + " bytes, tags code " +
              code};
}

// The unit at the record's queue offset is the record's, well or badly.
Result<void> QueueChecker::take_unit(Queue& q, const proto::RecordView& r) {
  if (q.cursor != r.queue_offset) TRY(pass_units(q, r.queue_offset));
  q.cursor = r.queue_offset + 1;
  q.matched++;
  if (r.physical_offset + static_cast<int64_t>(r.size) > truth_.sums_below) return {};
  q.below = q.cursor;
  q.below_blank = false;
  return {};
}

Result<void> QueueChecker::on_record(const proto::RecordView& r) {
  if (!proto::sys_flag::is_visible(r.sys_flag)) return {};
  TRY(on_units_of(r));
  TRY(batch_.on_record(r));
  for (const LightPlace& p : light_places_of(r)) {
    proto::RecordView there = r;
    there.topic = p.queue;
    there.queue_id = light_queue_id;
    there.queue_offset = p.offset;
    there.sys_flag &= ~proto::sys_flag::inner_batch;
    TRY(on_units_of(there));
  }
  return {};
}

// The units that the record has, or should have, in the queue that it says.
Result<void> QueueChecker::on_units_of(const proto::RecordView& r) {
  Topic& t = topic_of(r.topic);
  t.skip = t.skip || (!t.batch && batch_.has_topic(t.name));
  if (t.skip) return {};
  Queue& q = queue_of(t, r.queue_id);
  const int32_t messages = inner_messages_of(r);
  TRY_VAR(ordered, in_order(q, r, messages));
  if (!ordered) return {};
  proto::RecordView one = r;
  for (int32_t i = 0; i < messages; i++, one.queue_offset++) TRY(on_unit_of(q, one));
  return {};
}

Result<void> QueueChecker::on_unit_of(Queue& q, const proto::RecordView& r) {
  int64_t n = r.queue_offset;
  TRY_VAR(u, unit_at(q, n));
  if (same(q, r, u)) {
    TRY(take_unit(q, r));
    stats_.units++;
    return {};
  }
  // Before anything fits, it may be a later generation's unit that stands where this record's was.
  bool later = q.matched == 0 && u.physical_offset > r.physical_offset;
  if (u.bytes <= 0 || is_blank(u) || later) {
    missing(q, r);
    return {};
  }
  TRY(take_unit(q, r));
  if (may_miss(r)) {
    findings_.note(Kind::unit_wrong, name_of_queue(q), n,
                   "a unit behind the checkpoint is not its record's; a broker that opens the store makes it "
                   "again");
    return {};
  }
  findings_.add(Severity::damage, Kind::unit_wrong, [&] { return wrong(q, r, u); });
  return {};
}

// ---- at the end --------------------------------------------------------------------------------------

Result<void> QueueChecker::finish_queue(Queue& q) {
  if (q.directory) TRY(pass_units(q, q.files_end));
  if (q.below_blank) q.below = 0;  // nothing but filling
  q.window.reset();
  return {};
}

void QueueChecker::judge_missing(Queue& q, bool forgiven) {
  stats_.pending += q.missing_new;
  if (q.missing_old == 0) return;
  if (forgiven && !q.directory) {
    stats_.deleted_topic_records += q.missing_old;
    return;
  }
  std::string what =
      q.missing_old == 1 ? "a record has no unit" : std::to_string(q.missing_old) + " records have no unit";
  what += ", the first at " + std::to_string(q.first_missing) + " in the log";
  if (!q.directory) what += "; the queue has no files (lost, or its topic was deleted and made again)";
  findings_.damage(Kind::unit_missing, name_of_queue(q), q.first_missing_at, what);
}

void QueueChecker::set_ends(const QueueEndsFile& ends) {
  if (ends.log_begin <= truth_.log_min) ends_ = ends.queues;
}

bool QueueChecker::sums_fit(const OwnCheckpoint& own) const {
  uint64_t count = 0, units = 0, sum = 0;
  auto add = [&](std::string_view topic, int32_t id, int64_t end) {
    if (end > 0) count++;
    units += static_cast<uint64_t>(end);
    sum += queue_weight(topic, id) * static_cast<uint64_t>(end);
  };
  for (auto& [name, t] : topics_)
    for (auto& q : t->queues) add(name, q->id, q->below);
  // Queues that have no files (any more).
  for (const QueueEnd& e : ends_) {
    auto it = topics_.find(e.topic);
    const bool in_files =
        it != topics_.end() && std::any_of(it->second->queues.begin(), it->second->queues.end(),
                                           [&](auto& q) { return q->id == e.queue_id && q->below > 0; });
    if (!in_files) add(e.topic, e.queue_id, e.offset);
  }
  const bool same_sum = own.queue_sum == 0 || sum == own.queue_sum;
  return count == own.queue_count && units == own.queue_units && same_sum;
}

Result<void> QueueChecker::finish(uint64_t log_end, const OwnCheckpoint* sums,
                                  bool (*exists)(void*, std::string_view), void* context) {
  may_miss_from_ = std::min(may_miss_from_, static_cast<int64_t>(log_end));
  TRY(batch_.finish());
  stats_.batch_queues = batch_.queues();
  stats_.batch_units = batch_.units();
  for (auto& [name, t] : topics_)
    for (auto& q : t->queues)
      if (!t->skip) TRY(finish_queue(*q));
  bool fit = sums != nullptr && sums_fit(*sums);
  for (auto& [name, t] : topics_) {
    bool gone = exists != nullptr && !exists(context, t->name);
    for (auto& q : t->queues) judge_missing(*q, fit || gone);
  }
  if (sums != nullptr && !fit)
    findings_.damage(
        Kind::checkpoint, "rmqd.checkpoint", -1,
        (sums->queue_count == OwnCheckpoint::queues_damaged
             ? "the broker found a queue file damaged"
             : "it knows " + std::to_string(sums->queue_count) + " queues with " +
                   std::to_string(sums->queue_units) + " units in total, the files hold others") +
            ": a broker that opens the store makes all queues again from the log");
  return {};
}

}  // namespace rmq::store::offline
