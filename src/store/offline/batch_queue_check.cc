#include "store/offline/batch_queue_check.h"

#include <algorithm>

#include "store/format.h"
#include "store/offline/queue_check.h"

namespace rmq::store::offline {

namespace {
constexpr size_t window_units = 128;

std::string name_of_queue(std::string_view topic, int32_t id) {
  return std::string(batch_queue_dir) + "/" + std::string(topic) + "/" + std::to_string(id);
}
}  // namespace

// ---- reading -----------------------------------------------------------------------------------------

Result<BatchQueueReader> BatchQueueReader::open(const std::string& root, std::string_view topic, int32_t id) {
  BatchQueueReader q;
  q.dir_ = root + "/" + name_of_queue(topic, id);
  TRY_VAR(entries, list_dir(q.dir_));
  uint64_t at = 0;
  for (Entry& e : entries)
    if (!e.is_dir && parse_file_name_20(e.name, at)) q.files_.push_back(std::move(e));
  return q;
}

const char* BatchQueueReader::why_odd() const {
  uint64_t expected = 0;
  for (const Entry& e : files_) {
    uint64_t at = 0;
    parse_file_name_20(e.name, at);
    const bool last = &e == &files_.back();
    const uint64_t bytes = files_.front().bytes;
    if (e.bytes != bytes && !(last && e.bytes < bytes)) return "its files have different sizes";
    if (bytes == 0 || bytes % batch_unit_bytes != 0 || at % bytes != 0)
      return "the names and sizes of its files do not fit units of 46 bytes";
    if (&e != &files_.front() && at != expected) return "a file is missing between others";
    expected = at + bytes;
  }
  return nullptr;
}

Result<std::optional<BatchUnit>> BatchQueueReader::next() {
  for (; file_ < files_.size(); file_++, at_ = 0, window_.clear()) {
    if (at_ + batch_unit_bytes > files_[file_].bytes) continue;
    if (window_.empty() || at_ + batch_unit_bytes > window_at_ + window_.size()) {
      TRY_VAR(file, InFile::open(dir_ + "/" + files_[file_].name));
      window_.resize(window_units * batch_unit_bytes);
      TRY_VAR(n, file.read(at_, window_));
      window_.resize(n);
      window_at_ = at_;
      if (n < batch_unit_bytes) continue;
    }
    const BatchUnit u = decode_batch_unit(window_.data() + (at_ - window_at_));
    if (!u.is_message()) return std::optional<BatchUnit>();
    at_ += batch_unit_bytes;
    return std::optional<BatchUnit>(u);
  }
  return std::optional<BatchUnit>();
}

// ---- checking ----------------------------------------------------------------------------------------

struct BatchQueueChecker::Queue {
  std::string name;
  BatchQueueReader reader;
  std::optional<BatchUnit> front;
  int64_t next_offset = 0;  // behind the last unit
  uint64_t matched = 0;
  uint64_t missing = 0;  // records that must have a unit and have none
  int64_t first_missing = -1;
};

BatchQueueChecker::BatchQueueChecker(std::string root, Findings& findings, const QueueTruth& truth)
    : root_(std::move(root)), findings_(findings), truth_(truth) {}
BatchQueueChecker::~BatchQueueChecker() = default;

Result<void> BatchQueueChecker::advance(Queue& q) const {
  if (q.front) q.next_offset = q.front->base_offset + q.front->count;
  TRY_VAR(next, q.reader.next());
  q.front = next;
  return {};
}

Result<void> BatchQueueChecker::list() {
  auto topics = list_dir(root_ + "/" + std::string(batch_queue_dir));
  if (!topics && topics.error().code == Errc::not_found) return {};
  if (!topics) return std::unexpected(topics.error());
  for (const Entry& t : *topics) {
    if (!t.is_dir || !legal_topic(t.name)) continue;
    topics_.insert(t.name);
    TRY_VAR(ids, list_dir(root_ + "/" + std::string(batch_queue_dir) + "/" + t.name));
    for (const Entry& e : ids) {
      int32_t id = 0;
      if (!e.is_dir || !parse_queue_id(e.name, id)) continue;
      auto q = std::make_unique<Queue>();
      q->name = name_of_queue(t.name, id);
      TRY_VAR(reader, BatchQueueReader::open(root_, t.name, id));
      if (const char* why = reader.why_odd()) findings_.damage(Kind::queue_file, q->name, -1, why);
      q->reader = std::move(reader);
      TRY(advance(*q));
      queues_.emplace(std::pair(t.name, id), std::move(q));
    }
  }
  return {};
}

// The unit at the front has no record that the log still shows.
void BatchQueueChecker::orphan(const Queue& q) {
  const BatchUnit& u = *q.front;
  const auto at = static_cast<uint64_t>(u.physical_offset);
  const bool in_hole =
      std::ranges::any_of(holes_, [at](const auto& h) { return at >= h.first && at < h.second; });
  if (in_hole || u.physical_offset < truth_.log_min) return;
  const bool may_be = !truth_.stopped && u.physical_offset + u.bytes > truth_.units_below;
  findings_.add({may_be ? Severity::note : Severity::damage, Kind::unit_orphan, q.name, u.base_offset,
                 "the unit points at " + std::to_string(u.physical_offset) + " (" + std::to_string(u.bytes) +
                     " bytes), where the log has no such record" +
                     (may_be ? "; a broker that opens the store cuts it" : "")});
}

void BatchQueueChecker::compare(Queue& q, const proto::RecordView& r) {
  const BatchUnit& u = *q.front;
  units_++;
  q.matched++;
  const bool same = u.bytes == static_cast<int32_t>(r.size) && u.base_offset == r.queue_offset &&
                    u.count == inner_messages_of(r) && u.store_timestamp_ms == r.store_timestamp_ms &&
                    u.tags_code == r.tags_code();
  if (!same)
    findings_.damage(Kind::unit_wrong, q.name, u.base_offset,
                     "the unit of the record at " + std::to_string(r.physical_offset) +
                         " says something else than the record");
  else if (u.base_offset < q.next_offset)
    findings_.damage(Kind::queue_order, q.name, u.base_offset,
                     "the unit before it goes up to " + std::to_string(q.next_offset));
}

void BatchQueueChecker::missing(Queue& q, const proto::RecordView& r) {
  if (truth_.may_miss(r)) return;
  if (q.missing++ == 0) q.first_missing = r.physical_offset;
}

Result<void> BatchQueueChecker::on_record(const proto::RecordView& r) {
  if (!topics_.contains(r.topic)) return {};
  auto it = queues_.find(std::pair(std::string(r.topic), r.queue_id));
  if (it == queues_.end()) return {};  // our own files of it, if there are some, know more
  Queue& q = *it->second;
  if (r.queue_offset == 0 && q.matched == 0) q.missing = 0;  // the topic was deleted and made again
  while (q.front && q.front->physical_offset < r.physical_offset) {
    orphan(q);
    TRY(advance(q));
  }
  if (!q.front || q.front->physical_offset != r.physical_offset) {
    missing(q, r);
    return {};
  }
  compare(q, r);
  return advance(q);
}

Result<void> BatchQueueChecker::finish() {
  for (auto& [key, q] : queues_) {
    while (q->front) {
      orphan(*q);
      TRY(advance(*q));
    }
    if (q->missing != 0)
      findings_.damage(Kind::unit_missing, q->name, -1,
                       std::to_string(q->missing) + " records have no unit, the first at " +
                           std::to_string(q->first_missing) + " in the log");
  }
  return {};
}

}  // namespace rmq::store::offline
