#include "daemon/broker/discard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/log.h"
#include "daemon/broker/attributes.h"
#include "daemon/broker/broker.h"
#include "proto/codes.h"

namespace rmq::broker {

namespace {

constexpr uint64_t bucket_bytes_min = 4096, buckets_of_limit = 64;
constexpr size_t units_at_once = 800;
constexpr int64_t settle_interval_ns = ns_per_s;

int64_t number_of(const std::string* text, int64_t otherwise) {
  int64_t n = 0;
  if (text == nullptr) return otherwise;
  auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), n);
  return ec == std::errc{} && end == text->data() + text->size() && n > 0 ? n : otherwise;
}

}  // namespace

DiscardService::DiscardService(Broker& broker, Disk& disk, std::string path)
    : PersistedTable(disk, std::move(path)), broker_(broker), started_ns_(broker.now_ns()) {}

// ---- what was discarded --------------------------------------------------------------------------------

std::string DiscardService::render() const {
  proto::KVTable t;
  for (const auto& [topic, physical] : below_) t.table[topic] = std::to_string(physical);
  return t.to_json();
}

Result<void> DiscardService::parse(std::string_view text) {
  TRY_VAR(t, proto::KVTable::parse(text));
  for (const auto& [topic, physical] : t.table)
    if (int64_t n = number_of(&physical, 0); n > 0) below_[topic] = n;
  return {};
}

Task<Result<void>> DiscardService::load() {
  CO_TRY(co_await PersistedTable::load());
  // With ASYNC_FLUSH a crash may have taken what was discarded, and more: new messages come there.
  const int64_t end = broker_.store.confirm_offset();
  bool beyond = false;
  for (auto& [topic, physical] : below_) {
    beyond = beyond || physical > end;
    physical = std::min(physical, end);
  }
  if (beyond) CO_TRY(co_await save());
  for (const auto& [topic, physical] : below_)
    for (int32_t id : broker_.store.queue_ids(topic))
      CO_TRY(co_await broker_.store.discard_below(topic, id, physical));
  broker_.store.set_reclaim(!below_.empty());
  co_return Result<void>{};
}

void DiscardService::start(Scope& scope) {
  started_ns_ = broker_.now_ns();
  broker_.store.set_queue_listener(this);
  scope.spawn(run());
  scope.spawn(count_lost());
}

// ---- policies ------------------------------------------------------------------------------------------

DiscardService::Policy DiscardService::policy_of(const proto::TopicConfig& c) const {
  auto attribute = [&c](const char* name) {
    auto it = c.attributes.find(name);
    return it == c.attributes.end() ? nullptr : &it->second;
  };
  Policy p;
  if (broker_.topics.is_system(c.topic_name)) return p;
  if (is_compaction_topic(c)) return p;
  const std::string* own = attribute("discard.policy");
  const bool of_groups = proto::is_retry_topic(c.topic_name) || proto::is_dlq_topic(c.topic_name);
  if (own == nullptr && of_groups) return p;
  const std::string& kind = own != nullptr ? *own : broker_.config.discardPolicy;
  p.age_ms = number_of(attribute("discard.age.ms"), broker_.config.discardAgeMills);
  const std::string* own_bytes = attribute("discard.bytes");
  p.bytes = static_cast<uint64_t>(number_of(own_bytes, broker_.config.discardBytes));
  if (kind == "age" && p.age_ms > 0) p.kind = Kind::age;
  // The broker's own fifo is for the log as a whole.
  if (kind == "fifo" && own != nullptr && p.bytes > 0) p.kind = Kind::fifo;
  if (kind == "lru" && broker_.config.discardBytes > 0) p.kind = Kind::lru;
  return p;
}

// A clock that is set forward makes nothing old.
int64_t DiscardService::sure_wall_ms() const {
  const int64_t run_ms = (broker_.now_ns() - started_ns_) / ns_per_ms;
  return std::min(broker_.wall_ms(), broker_.boot_wall_ms + run_ms);
}

Task<void> DiscardService::run() {
  for (;;) {
    bool stop = co_await broker_.stopping.wait_for(broker_.config.cleanResourceInterval * ns_per_ms);
    if (stop) co_return;
    co_await round();
  }
}

Task<void> DiscardService::round() {
  std::vector<std::pair<std::string, Policy>> wanted;
  std::vector<std::string> by_reading;
  for (const auto& [name, topic] : broker_.topics.all()) {
    Policy p = policy_of(topic);
    if (p.kind == Kind::lru)
      by_reading.push_back(name);
    else if (p.kind != Kind::none)
      wanted.emplace_back(name, p);
  }
  lru_ = !by_reading.empty();
  Cuts cuts;
  for (const auto& [name, p] : wanted) {
    if (broker_.stopping.is_set()) co_return;
    int64_t cut = 0;
    if (p.kind == Kind::age)
      cut = co_await cut_by_age(name, p.age_ms);
    else
      cut = co_await cut_by_bytes(name, p.bytes);
    if (cut > 0) cuts[name] = cut;
  }
  if (lru_) co_await cut_by_reading(std::move(by_reading), cuts);
  if (!cuts.empty()) co_await apply(std::move(cuts));
}

// Below it everything of the topic is too old; 0: nothing is.
Task<int64_t> DiscardService::cut_by_age(std::string topic, int64_t age_ms) {
  store::MessageStore& s = broker_.store;
  const int64_t before_ms = sure_wall_ms() - age_ms;
  int64_t cut = s.confirm_offset();
  bool any = false;
  for (int32_t id : s.queue_ids(topic)) {
    const int64_t keep = co_await s.search_offset(topic, id, before_ms, store::MessageStore::Boundary::LOWER);
    if (keep > s.min_offset(topic, id)) {
      const int64_t last_ms = co_await s.store_time(topic, id, keep - 1);
      if (last_ms < 0 || last_ms >= before_ms) co_return 0;  // it could not be read: not now
      any = true;
    }
    if (keep >= s.max_offset(topic, id)) continue;
    auto unit = co_await s.queue_unit(topic, id, keep);
    if (!unit) co_return 0;
    cut = std::min(cut, unit->physical_offset);
  }
  co_return any ? cut : 0;
}

// False: it could not be read.
Task<bool> DiscardService::count(std::string topic, Counted& c) {
  store::MessageStore& s = broker_.store;
  std::vector<store::QueueUnit> units(units_at_once);
  const std::vector<int32_t> ids = s.queue_ids(topic);
  for (int32_t id : ids)
    if (c.next[id] > s.max_offset(topic, id)) c = Counted{.bucket_bytes = c.bucket_bytes};  // made anew
  for (int32_t id : ids) {
    int64_t& next = c.next[id];
    next = std::max(next, s.min_offset(topic, id));
    int64_t last = -1;  // a record may be of several messages
    while (next < s.max_offset(topic, id)) {
      auto n = co_await s.queue_units(topic, id, next, units);
      if (!n) co_return false;
      if (*n == 0) break;
      for (size_t i = 0; i < *n; i++) {
        if (store::is_blank(units[i]) || units[i].bytes <= 0 || units[i].physical_offset == last) continue;
        last = units[i].physical_offset;
        c.buckets[static_cast<uint64_t>(units[i].physical_offset) / c.bucket_bytes] +=
            static_cast<uint64_t>(units[i].bytes);
        c.total += static_cast<uint64_t>(units[i].bytes);
      }
      next += static_cast<int64_t>(*n);
      co_await Yield{};
    }
  }
  forget_below(c, s.min_physical_offset());
  co_return true;
}

void DiscardService::forget_below(Counted& c, int64_t physical) {
  while (!c.buckets.empty() &&
         (c.buckets.begin()->first + 1) * c.bucket_bytes <= static_cast<uint64_t>(physical)) {
    c.total -= c.buckets.begin()->second;
    c.buckets.erase(c.buckets.begin());
  }
}

// What lies below it is more than `bytes` before the topic's end; 0: there is not so much.
Task<int64_t> DiscardService::cut_by_bytes(std::string topic, uint64_t bytes) {
  const uint64_t bucket = std::max(bucket_bytes_min, bytes / buckets_of_limit);
  Counted& c = counted_[topic];
  if (c.bucket_bytes != bucket) c = Counted{.bucket_bytes = bucket};
  bool counted = co_await count(topic, c);
  if (!counted || c.total <= bytes) co_return 0;
  uint64_t kept = c.total, cut = 0;
  for (const auto& [at, n] : c.buckets) {
    if (kept <= bytes) break;
    kept -= n;
    cut = (at + 1) * c.bucket_bytes;
  }
  co_return static_cast<int64_t>(cut);
}

// Of the topics that share discardBytes those go first that nobody has read for longest: all they have.
Task<void> DiscardService::cut_by_reading(std::vector<std::string> topics, Cuts& cuts) {
  const auto limit = static_cast<uint64_t>(broker_.config.discardBytes);
  const uint64_t bucket = std::max(bucket_bytes_min, limit / buckets_of_limit);
  const int64_t end = broker_.store.confirm_offset();
  uint64_t total = 0;
  for (const std::string& topic : topics) {
    Counted& c = counted_[topic];
    if (c.bucket_bytes != bucket) c = Counted{.bucket_bytes = bucket};
    bool counted = co_await count(topic, c);
    if (!counted) co_return;
    total += c.total;
  }
  auto read_ns = [this](const std::string& topic) {
    auto it = read_ns_.find(topic);
    return it == read_ns_.end() ? started_ns_ : it->second;
  };
  std::sort(topics.begin(), topics.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(read_ns(a), a) < std::pair(read_ns(b), b);
  });
  for (const std::string& topic : topics) {
    if (total <= limit) co_return;
    const uint64_t bytes = counted_[topic].total;
    if (bytes == 0) continue;
    cuts[topic] = end;
    total -= bytes;
  }
}

// On disk first: what a consumer cannot see any more must not come back.
Task<void> DiscardService::apply(Cuts cuts) {
  store::MessageStore& s = broker_.store;
  const int64_t end = s.confirm_offset();  // a bucket may go on behind it
  for (auto& [topic, cut] : cuts) {
    cut = std::min(cut, end);
    below_[topic] = std::max(below_[topic], cut);
  }
  const int64_t log_min = s.min_physical_offset();
  std::erase_if(below_, [log_min](const auto& e) { return e.second <= log_min; });
  auto saved = co_await save();
  if (!saved) co_return;
  s.set_reclaim(!below_.empty());
  for (const auto& [topic, cut] : cuts) {
    int64_t messages = 0;
    for (int32_t id : s.queue_ids(topic)) {
      const int64_t before = s.min_offset(topic, id);
      auto moved = co_await s.discard_below(topic, id, cut);
      if (moved) messages += std::max<int64_t>(0, s.min_offset(topic, id) - before);
    }
    if (auto it = counted_.find(topic); it != counted_.end()) {
      Counted& c = it->second;
      forget_below(c, cut);
      if (cut == end) {  // all that was counted, also in the bucket that is not full yet
        c.buckets.clear();
        c.total = 0;
      }
    }
    if (messages > 0)
      log(LogLevel::debug, ids::messages_discarded, "messages were discarded by the policy of their topic",
          {{"TOPIC", topic}, {"COUNT", std::to_string(messages)}});
  }
}

void DiscardService::read_now(std::string_view topic) {
  auto it = read_ns_.find(topic);
  if (it == read_ns_.end()) it = read_ns_.emplace(std::string(topic), 0).first;
  it->second = broker_.now_ns();
}

// ---- what nobody had consumed --------------------------------------------------------------------------

void DiscardService::on_min_moved(std::string_view topic, int32_t queue_id, int64_t from, int64_t to) {
  if (broker_.store.is_compacted(topic)) return;  // the latest of each key is there as before
  moves_.push_back({std::string(topic), queue_id, from, to});
}

Task<void> DiscardService::count_lost() {
  for (;;) {
    bool stop = co_await broker_.stopping.wait_for(settle_interval_ns);
    settle();
    if (stop) co_return;
  }
}

void DiscardService::settle() {
  if (moves_.empty()) return;
  std::map<std::string, std::vector<std::string>, std::less<>> groups;  // by topic
  std::map<std::pair<std::string, std::string>, uint64_t> lost;         // by topic and group
  for (const Move& m : std::exchange(moves_, {})) {
    auto [it, fresh] = groups.try_emplace(m.topic);
    if (fresh) it->second = broker_.offsets.groups_of(m.topic);
    for (const std::string& group : it->second) {
      const OffsetManager::Queues* queues = broker_.offsets.queues(group, m.topic);
      auto committed = queues->find(m.queue_id);
      if (committed == queues->end() || committed->second >= m.to) continue;
      lost[{m.topic, group}] += static_cast<uint64_t>(m.to - std::max(m.from, committed->second));
    }
  }
  for (const auto& [key, count] : lost) {
    lost_[key.second] += count;
    log(LogLevel::warning, ids::unconsumed_deleted, "messages were deleted that a group had not consumed",
        {{"TOPIC", key.first}, {"GROUP", key.second}, {"COUNT", std::to_string(count)}});
  }
}

}  // namespace rmq::broker
