#include "store/consume_queue.h"

#include <algorithm>

#include "base/check.h"
#include "store/light_queues.h"

namespace rmq::store {

namespace {
constexpr int32_t near_queue_ids = 65'536;

void release_topic(Topic* t) {
  if (--t->refs == 0) delete t;
}
}  // namespace

QueueRef::~QueueRef() {
  if (q_ == nullptr || --q_->refs != 0) return;
  release_topic(q_->topic);
  delete q_;
}

QueueTable::~QueueTable() {
  while (!topics_.empty()) detach(topics_.begin()->first);
}

Topic* QueueTable::find_topic(std::string_view name) const {
  if (last_topic_ != nullptr && last_topic_->name == name) return last_topic_;
  auto it = topics_.find(name);
  if (it == topics_.end()) return nullptr;
  return last_topic_ = it->second;
}

Topic& QueueTable::topic_of(std::string_view name) {
  Topic* t = find_topic(name);
  if (t != nullptr) return *t;
  t = new Topic;
  t->name = name;
  t->refs = 1;
  topics_.emplace(t->name, t);
  return *t;
}

ConsumeQueue* QueueTable::find(std::string_view topic, int32_t id) const {
  Topic* t = find_topic(topic);
  if (t == nullptr || id < 0) return nullptr;
  if (static_cast<size_t>(id) < t->queues.size()) return t->queues[static_cast<size_t>(id)];
  if (id < near_queue_ids) return nullptr;
  auto it = t->far_queues.find(id);
  return it == t->far_queues.end() ? nullptr : it->second;
}

ConsumeQueue& QueueTable::get_or_create(std::string_view topic, int32_t id) {
  if (ConsumeQueue* q = find(topic, id)) return *q;
  check(id >= 0);
  Topic& t = topic_of(topic);
  auto* q = new ConsumeQueue;
  q->topic = &t;
  q->id = id;
  q->uid = next_uid_++;
  q->weight = queue_weight(t.name, id);
  q->refs = 1;  // the table's
  if (!batch_topics_.empty() && is_batch_topic(topic)) q->batch = std::make_unique<BatchTail>();
  t.refs++;
  if (id < near_queue_ids) {
    if (t.queues.size() <= static_cast<size_t>(id)) t.queues.resize(static_cast<size_t>(id) + 1);
    t.queues[static_cast<size_t>(id)] = q;
  } else {
    t.far_queues[id] = q;
  }
  queue_count_++;
  if (is_light_queue(t.name)) light_count_++;
  return *q;
}

bool QueueTable::push(ConsumeQueue& q, const QueueUnit& u, int64_t count) {
  size_t before = q.tail.capacity();
  size_t at = q.tail.size();
  q.tail.resize(at + static_cast<size_t>(count) * unit_bytes);
  for (; at < q.tail.size(); at += unit_bytes) encode_unit(q.tail.data() + at, u);
  q.blank_end = is_blank(u);
  if (!q.blank_end) q.last_physical_end = u.physical_offset + u.bytes;
  bool was_clean = q.unwritten() == 0;
  const bool was_unused = q.max_offset == 0;
  q.max_offset += count;
  if (q.deleted) return false;
  const auto units = static_cast<uint64_t>(count);
  tail_bytes_ += q.tail.capacity() - before;
  unwritten_ += units;
  units_total_ += units;
  weighted_sum_ += q.weight * units;
  if (was_unused) used_count_++;
  return was_clean;
}

void QueueTable::add_waiting(BatchTail& t, std::span<const std::byte> unit) {
  t.waiting.insert(t.waiting.end(), unit.begin(), unit.end());
  batch_waiting_ += unit.size();
}

void QueueTable::drop_waiting(ConsumeQueue& q, size_t bytes) {
  std::vector<std::byte>& w = q.batch->waiting;
  w = std::vector<std::byte>(w.begin() + static_cast<int64_t>(bytes), w.end());
  if (!q.deleted) batch_waiting_ -= bytes;
}

void QueueTable::remove_batch_topic(std::string_view name) {
  auto it = batch_topics_.find(name);
  if (it != batch_topics_.end()) batch_topics_.erase(it);
}

void QueueTable::start_at(ConsumeQueue& q, int64_t offset) {
  check(!q.deleted);
  if (q.max_offset > 0) used_count_--;
  if (offset > 0) used_count_++;
  units_total_ += static_cast<uint64_t>(offset - q.max_offset);
  weighted_sum_ += q.weight * static_cast<uint64_t>(offset - q.max_offset);
  unwritten_ -= static_cast<uint64_t>(q.unwritten());
  tail_bytes_ -= q.tail.capacity();
  q.tail = {};
  q.next_offset = q.max_offset = q.min_offset = q.written = q.synced = q.tail_first = offset;
  q.last_physical_end = 0;
}

void QueueTable::trim(ConsumeQueue& q, int64_t keep) {
  int64_t first = std::min(q.written, std::max(q.max_offset - keep, q.tail_first));
  if (first == q.tail_first) return;
  size_t before = q.tail.capacity();
  q.tail = std::vector<std::byte>(q.tail.begin() + (first - q.tail_first) * static_cast<int64_t>(unit_bytes),
                                  q.tail.end());
  q.tail_first = first;
  if (!q.deleted) tail_bytes_ = tail_bytes_ - before + q.tail.capacity();
}

void QueueTable::was_written(ConsumeQueue& q, int64_t below) {
  if (!q.deleted) unwritten_ -= static_cast<uint64_t>(below - q.written);
  q.written = below;
}

void QueueTable::loaded(ConsumeQueue& q) {
  q.next_offset = q.written = q.synced = q.tail_first = q.max_offset;
  units_total_ += static_cast<uint64_t>(q.max_offset);
  weighted_sum_ += q.weight * static_cast<uint64_t>(q.max_offset);
  if (q.max_offset > 0) used_count_++;
}

void QueueTable::forget(ConsumeQueue& q) {
  q.deleted = true;
  queue_count_--;
  if (is_light_queue(q.topic->name)) light_count_--;
  if (q.max_offset > 0) used_count_--;
  units_total_ -= static_cast<uint64_t>(q.max_offset);
  weighted_sum_ -= q.weight * static_cast<uint64_t>(q.max_offset);
  unwritten_ -= static_cast<uint64_t>(q.unwritten());
  tail_bytes_ -= q.tail.capacity();
  if (q.batch) batch_waiting_ -= q.batch->waiting.size();
}

void QueueTable::detach_queue(ConsumeQueue& q) {
  QueueRef keep(&q);
  Topic& t = *q.topic;
  if (q.id < near_queue_ids)
    t.queues[static_cast<size_t>(q.id)] = nullptr;
  else
    t.far_queues.erase(q.id);
  forget(q);
  q.refs--;  // the table's; `keep` ends it
}

std::vector<QueueRef> QueueTable::detach(std::string_view topic) {
  std::vector<QueueRef> out;
  auto it = topics_.find(topic);
  if (it == topics_.end()) return out;
  Topic* t = it->second;
  topics_.erase(it);
  if (last_topic_ == t) last_topic_ = nullptr;
  auto take = [&](ConsumeQueue* q) {
    if (q == nullptr) return;
    forget(*q);
    out.emplace_back(q);
    q->refs--;
  };
  for (ConsumeQueue* q : t->queues) take(q);
  for (auto& [id, q] : t->far_queues) take(q);
  t->queues.clear();
  t->far_queues.clear();
  release_topic(t);
  return out;
}

uint64_t QueueTable::sum_of_begins(int64_t log_min) const {
  uint64_t sum = 0;
  for (const QueueRef& q : all())
    if (!q->batch && q->files_begin >= 0 && q->max_offset > 0 && q->last_physical_end > log_min)
      sum += q->weight * static_cast<uint64_t>(q->files_begin + 1);
  return sum;
}

std::vector<QueueRef> QueueTable::all() const {
  std::vector<QueueRef> out;
  for (auto& [name, t] : topics_) {
    for (ConsumeQueue* q : t->queues)
      if (q != nullptr) out.emplace_back(q);
    for (auto& [id, q] : t->far_queues) out.emplace_back(q);
  }
  std::sort(out.begin(), out.end(), [](const QueueRef& a, const QueueRef& b) {
    int c = a->topic->name.compare(b->topic->name);
    return c != 0 ? c < 0 : a->id < b->id;
  });
  return out;
}

std::vector<int32_t> QueueTable::ids(std::string_view topic) const {
  std::vector<int32_t> out;
  Topic* t = find_topic(topic);
  if (t == nullptr) return out;
  for (ConsumeQueue* q : t->queues)
    if (q != nullptr) out.push_back(q->id);
  for (auto& [id, q] : t->far_queues) out.push_back(id);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> QueueTable::topics() const {
  std::vector<std::string> out;
  for (auto& [name, t] : topics_) out.emplace_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace rmq::store
