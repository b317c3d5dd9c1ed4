#include "daemon/broker/deduplication.h"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/log.h"
#include "daemon/broker/broker.h"
#include "proto/codes.h"
#include "proto/properties.h"

namespace rmq::broker {

namespace names = proto::names;
namespace prop = proto::prop;

namespace {

constexpr size_t units_at_once = 512;
constexpr size_t readers = 16;  // reads of records at a time, at a start

std::string random_salt() {
  std::string out(16, '\0');
  for (size_t i = 0; i < out.size(); i += 8) {
    uint64_t word = Loop::current().random().next();
    std::memcpy(out.data() + i, &word, sizeof word);
  }
  return out;
}

}  // namespace

std::optional<DedupRule> DedupRule::of(const proto::TopicConfig& topic) {
  auto key = topic.attributes.find("dedup.key");
  if (key == topic.attributes.end() || key->second == "NONE") return std::nullopt;
  DedupRule rule;
  rule.key = key->second == "KEYS" ? Key::KEYS : Key::UNIQ_KEY;
  rule.window_ms = dedup_window_ms_usual;
  if (auto w = topic.attributes.find("dedup.window.ms"); w != topic.attributes.end())
    std::from_chars(w->second.data(), w->second.data() + w->second.size(), rule.window_ms);
  return rule;
}

std::string DedupRule::text_of(std::string_view properties) const {
  std::string text(
      proto::find_property(properties, key == Key::KEYS ? prop::KEYS : prop::UNIQ_KEY).value_or(""));
  auto dead = proto::find_property(properties, prop::DLQ_ORIGIN_MESSAGE_ID);
  if (!text.empty() && dead) (text += proto::property_separator) += *dead;
  return text;
}

Deduplication::Deduplication(Broker& b) : broker_(b), salt_(random_salt()) {}

void Deduplication::start(Scope& scope) {
  scope.spawn(load());
}
void Deduplication::stop() {
  stopping_ = true;
  settled_.notify();
}

Deduplication::Key Deduplication::key_of(std::string_view topic, std::string_view text) const {
  auto generation = generations_.find(topic);
  std::string all = salt_ + std::string(topic) + '\0' +
                    std::to_string(generation == generations_.end() ? 0 : generation->second) + '\0';
  all += text;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  check(EVP_Digest(all.data(), all.size(), digest, &bytes, EVP_sha256(), nullptr) == 1);
  Key key;
  std::memcpy(key.words.data(), digest, sizeof key.words);
  return key;
}

Task<Deduplication::Claim> Deduplication::claim(std::string_view topic, const DedupRule& rule,
                                                std::string_view text) {
  Claim out;
  for (;;) {
    if (stopping_) co_return out;  // the store takes nothing any more
    out.key = key_of(topic, text);
    auto it = loaded_ ? known_.find(out.key) : known_.end();
    const int64_t now_ns = broker_.now_ns();
    if (!loaded_ || (it != known_.end() && !it->second.settled)) {
      co_await settled_.wait();
      continue;
    }
    if (it != known_.end() && it->second.until_ns > now_ns) {
      answered_++;
      out.first = it->second.first;
      co_return out;
    }
    insert(out.key, {}, now_ns + rule.window_ms * ns_per_ms);
    known_[out.key].settled = false;
    co_return out;
  }
}

void Deduplication::settle(const Key& key, const FirstMessage* first) {
  auto it = known_.find(key);
  if (it != known_.end()) {
    if (first == nullptr) {
      known_.erase(it);
    } else {
      it->second.first = *first;
      it->second.settled = true;
    }
  }
  settled_.notify();
}

void Deduplication::topic_deleted(std::string_view topic) {
  if (loaded_ && known_.empty()) return;
  auto it = generations_.find(topic);
  if (it == generations_.end()) it = generations_.emplace(std::string(topic), 0).first;
  it->second++;
  settled_.notify();
}

void Deduplication::insert(const Key& key, const FirstMessage& first, int64_t until_ns) {
  forget_old();
  known_[key] = {first, until_ns, true};
  ages_.push_back({key, until_ns});
  if (!loaded_) std::push_heap(ages_.begin(), ages_.end(), ends_later);
}

void Deduplication::drop_oldest_age() {
  if (loaded_) return ages_.pop_front();
  std::pop_heap(ages_.begin(), ages_.end(), ends_later);
  ages_.pop_back();
}

// What its window has passed for, and the oldest when there are too many. An age whose key came again since
// is older than its entry says.
void Deduplication::forget_old() {
  const size_t most = static_cast<size_t>(broker_.config.dedupMemoryBytes) / bytes_per_key;
  const int64_t now_ns = broker_.now_ns();
  while (!ages_.empty() && (ages_.front().until_ns <= now_ns || ages_.size() >= most)) {
    auto it = known_.find(ages_.front().key);
    if (it != known_.end() && it->second.until_ns == ages_.front().until_ns) {
      if (!it->second.settled) return;  // it is being stored
      if (it->second.until_ns > now_ns && forgotten_++ == 0)
        log(LogLevel::warning, ids::dedup_full,
            "more messages came within the windows of de-duplication than dedupMemoryBytes can know: the "
            "oldest "
            "are forgotten",
            {{"KNOWN", std::to_string(known_.size())}});
      known_.erase(it);
    }
    drop_oldest_age();
  }
}

// ---- at a start --------------------------------------------------------------------------------------

Task<void> Deduplication::load() {
  int64_t longest_ms = 0;
  std::vector<std::pair<std::string, int32_t>> queues;
  for (const auto& [name, topic] : broker_.topics.all()) {
    auto rule = DedupRule::of(topic);
    if (!rule) continue;
    longest_ms = std::max(longest_ms, rule->window_ms);
    for (int32_t q = 0; q < std::max(topic.read_queue_nums, topic.write_queue_nums); q++)
      queues.emplace_back(name, q);
  }
  if (longest_ms > 0) {
    // Messages that wait to be delivered to such a topic.
    for (int32_t level = 0; level < broker_.delay_levels.count(); level++)
      queues.emplace_back(names::SCHEDULE_TOPIC_XXXX, level);
    queues.emplace_back(names::rmq_sys_wheel_timer, 0);
  }
  for (const auto& [topic, queue_id] : queues) co_await load_queue(topic, queue_id, longest_ms);
  std::sort_heap(ages_.begin(), ages_.end(), ends_later);
  std::reverse(ages_.begin(), ages_.end());
  loaded_ = true;
  settled_.notify();
}

Task<void> Deduplication::load_queue(std::string_view topic, int32_t queue_id, int64_t longest_ms) {
  const int64_t most = broker_.config.dedupMemoryBytes / static_cast<int64_t>(bytes_per_key);
  const int64_t end = broker_.store.max_offset(topic, queue_id);
  int64_t at = co_await broker_.store.search_offset(topic, queue_id, broker_.wall_ms() - longest_ms,
                                                    store::MessageStore::Boundary::LOWER);
  std::vector<store::QueueUnit> units(units_at_once);
  for (at = std::max(at, end - most); at < end && !stopping_;) {
    auto n = co_await broker_.store.queue_units(topic, queue_id, at, units);
    if (!n || *n == 0) {  // cannot be read: those behind it may
      at++;
      continue;
    }
    const auto count = static_cast<size_t>(std::min(static_cast<int64_t>(*n), end - at));
    Loading loading{std::span(units).first(count), 0};
    Scope scope;
    for (size_t i = 0; i < std::min(readers, count); i++) scope.spawn(load_some(loading));
    co_await scope.join();
    at += static_cast<int64_t>(count);
  }
}

Task<void> Deduplication::load_some(Loading& loading) {
  while (loading.next < loading.units.size() && !stopping_) {
    const store::QueueUnit unit = loading.units[loading.next++];
    if (!store::is_blank(unit)) co_await load_unit(unit);
  }
}

Task<void> Deduplication::load_unit(const store::QueueUnit& unit) {
  auto extent = co_await broker_.store.record_at(unit.physical_offset);
  auto record = extent ? proto::parse_record(extent->bytes()) : std::unexpected(extent.error());
  if (!record) co_return;
  bool waits = record->topic == names::SCHEDULE_TOPIC_XXXX || record->topic == names::rmq_sys_wheel_timer;
  std::string_view topic = waits ? record->property(prop::REAL_TOPIC).value_or("") : record->topic;
  const proto::TopicConfig* config = broker_.topics.find(topic);
  auto rule = config == nullptr ? std::nullopt : DedupRule::of(*config);
  if (!rule) co_return;
  const std::string text = rule->text_of(record->properties);
  const int64_t left_ms = record->store_timestamp_ms + rule->window_ms - broker_.wall_ms();
  if (text.empty() || left_ms <= 0) co_return;
  const Key key = key_of(topic, text);
  // A delayed message and its delivered copy: what the producer was told of counts.
  if (auto it = known_.find(key);
      it != known_.end() && it->second.first.store_timestamp_ms <= record->store_timestamp_ms)
    co_return;
  FirstMessage first;
  first.physical_offset = record->physical_offset;
  first.queue_offset = record->queue_offset;
  first.queue_id = record->queue_id;
  first.total_bytes = static_cast<int32_t>(record->size);
  first.store_timestamp_ms = record->store_timestamp_ms;
  insert(key, first, broker_.now_ns() + std::min(left_ms, rule->window_ms) * ns_per_ms);
}

}  // namespace rmq::broker
