#include "daemon/broker/offset_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "store/blocks.h"
#include "store/light_queues.h"
#include "uring/loop.h"

namespace rmq::broker {

namespace {
constexpr char separator = '@';
constexpr uint64_t commits_per_version = 500;  // consumerOffsetUpdateVersionStep
// RocketMQ's clients, told of a reset, wait 10 s until they pull from there, and commit what they had before
// each 5 s meanwhile. Whoever gets the queue then must not begin there.
constexpr int64_t overtaken_ns = 15 * ns_per_s;
// Those that are told by a request commit the target after 10 s.
constexpr int64_t told_ns = 30 * ns_per_s;

// "topic@group" in memory that stays: looked up on every pull, so no allocation.
std::string_view key_of(std::string_view group, std::string_view topic) {
  thread_local std::string key;
  key.assign(topic);
  key += separator;
  key += group;
  return key;
}
bool splits_to(std::string_view key, std::string_view* topic, std::string_view* group) {
  size_t at = key.find(separator);
  if (at == std::string_view::npos) return false;
  *topic = key.substr(0, at);
  *group = key.substr(at + 1);
  return true;
}

// "<number> " for each of them, off the front of the text.
bool take_numbers(std::string_view& text, std::initializer_list<int64_t*> numbers) {
  for (int64_t* number : numbers) {
    const char* end = text.data() + text.size();
    const auto [behind, wrong] = std::from_chars(text.data(), end, *number);
    if (wrong != std::errc{} || behind == end || *behind != ' ') return false;
    text.remove_prefix(static_cast<size_t>(behind - text.data()) + 1);
  }
  return true;
}
}  // namespace

const OffsetManager::Queues* OffsetManager::find(const Table& t, std::string_view group,
                                                 std::string_view topic) {
  auto it = t.find(key_of(group, topic));
  return it == t.end() ? nullptr : &it->second;
}

OffsetManager::Queues& OffsetManager::make(Table& t, std::string_view group, std::string_view topic) {
  std::string_view key = key_of(group, topic);
  auto it = t.find(key);
  if (it == t.end()) {
    it = t.emplace(std::string(key), Queues{}).first;
    index_.add(topic, group);
  }
  return it->second;
}

OffsetManager::Queues& OffsetManager::make_committed(const std::string& key) {
  auto [it, is_new] = offsets_.try_emplace(key);
  std::string_view topic, group;
  if (is_new && splits_to(key, &topic, &group)) index_.add(topic, group);
  return it->second;
}

bool OffsetManager::commit(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset) {
  if (!resets_.empty()) {
    const Queues* r = find(resets_, group, topic);
    if (r != nullptr && r->contains(queue_id)) return false;
  }
  const bool told = !told_.empty() && is_told(group, topic, queue_id, offset);
  if (!told && !overtaken_.empty() && is_overtaken(group, topic, queue_id, offset)) return false;
  set(group, topic, queue_id, offset);
  return true;
}

bool OffsetManager::is_kept(uint64_t change) const {
  return LoggedTable::is_kept(change) && (follower_ == nullptr || follower_->sets_are_kept());
}

Task<Result<void>> OffsetManager::kept(uint64_t change) {
  if (follower_ != nullptr && !follower_->sets_are_kept()) CO_TRY(co_await follower_->sets_kept());
  auto r = co_await LoggedTable::kept(change);
  co_return r;
}

void OffsetManager::follow(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset) {
  int64_t& stored = make(offsets_, group, topic).try_emplace(queue_id, -1).first->second;
  if (stored == offset) return;
  stored = offset;
  touch();
  if (++commits_ % commits_per_version == 0) version_.next(Loop::current().wall_ms());
}

void OffsetManager::after_read() {
  if (follower_ != nullptr) follower_->offsets_read(file_line());
}

Task<void> OffsetManager::before_write(std::string line) {
  if (follower_ != nullptr) co_await follower_->offsets_to_be_written(std::move(line));
}

bool OffsetManager::is_overtaken(std::string_view group, std::string_view topic, int32_t queue_id,
                                 int64_t offset) {
  auto it = overtaken_.find(key_of(group, topic));
  if (it == overtaken_.end()) return false;
  auto q = it->second.find(queue_id);
  if (q == it->second.end()) return false;
  const Overtaken& o = q->second;
  return Loop::current().now_ns() < o.until_ns && offset >= o.low && offset <= o.high && offset != o.target;
}

void OffsetManager::note_told(std::string_view group, std::string_view topic, int32_t queue_id,
                              int64_t target) {
  const int64_t now_ns = Loop::current().now_ns();
  for (auto& [key, queues] : told_)
    std::erase_if(queues, [&](const auto& q) { return q.second.until_ns <= now_ns; });
  std::erase_if(told_, [](const auto& e) { return e.second.empty(); });
  const int64_t committed = committed_or_0(group, topic, queue_id);
  told_[std::string(key_of(group, topic))][queue_id] = {committed, committed, now_ns + told_ns, target};
}

// True: it is the commit that follows from note_told().
bool OffsetManager::is_told(std::string_view group, std::string_view topic, int32_t queue_id,
                            int64_t offset) {
  auto it = told_.find(key_of(group, topic));
  if (it == told_.end()) return false;
  auto q = it->second.find(queue_id);
  if (q == it->second.end()) return false;
  Overtaken told = q->second;
  const bool is_late = told.until_ns <= Loop::current().now_ns();
  if (!is_late && offset != told.target) {
    q->second.low = std::min(told.low, offset);
    q->second.high = std::max(told.high, offset);
    return false;
  }
  const std::string key = it->first;
  it->second.erase(q);
  if (it->second.empty()) told_.erase(it);
  if (is_late) return false;
  told.high = std::max(told.high, pulled(group, topic, queue_id));
  begin_at_told(key, queue_id, committed_or_0(group, topic, queue_id), told);
  return true;
}

// Between what it had committed and what it had pulled the group may have come to the target by itself.
void OffsetManager::begin_at_told(const std::string& key, int32_t queue_id, int64_t committed,
                                  Overtaken told) {
  auto& queues = overtaken_[key];
  auto earlier = queues.find(queue_id);
  if (told.target < committed || told.target > told.high) {
    if (earlier != queues.end()) {
      told.low = std::min(told.low, earlier->second.low);
      told.high = std::max(told.high, earlier->second.high);
    }
    told.until_ns = Loop::current().now_ns() + overtaken_ns;
    note(change_of(key, queue_id, told));
    queues[queue_id] = told;
  } else if (earlier != queues.end()) {
    note(fmt::format("E {} {}", queue_id, key));
    queues.erase(earlier);
  }
  if (queues.empty()) overtaken_.erase(key);
}

void OffsetManager::note_pull(std::string_view group, std::string_view topic, int32_t queue_id,
                              int64_t offset) {
  if (overtaken_.empty()) return;
  auto it = overtaken_.find(key_of(group, topic));
  if (it == overtaken_.end()) return;
  auto q = it->second.find(queue_id);
  if (q == it->second.end() || q->second.target != offset) return;
  if (Loop::current().now_ns() < q->second.until_ns) note(fmt::format("E {} {}", queue_id, it->first));
  it->second.erase(q);
  if (it->second.empty()) overtaken_.erase(it);
}

void OffsetManager::forget_overtaken(int64_t now_ns) {
  for (auto& [key, queues] : overtaken_)
    std::erase_if(queues, [&](const auto& q) { return q.second.until_ns <= now_ns; });
  std::erase_if(overtaken_, [](const auto& e) { return e.second.empty(); });
}

void OffsetManager::set(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset) {
  int64_t& stored = make(offsets_, group, topic).try_emplace(queue_id, -1).first->second;
  if (stored == offset) return;
  if (follower_ != nullptr) follower_->offset_set(group, topic, queue_id, offset);
  stored = offset;
  note(fmt::format("C {} {} {}", queue_id, offset, key_of(group, topic)));
  if (++commits_ % commits_per_version == 0) version_.next(Loop::current().wall_ms());
}

std::optional<int64_t> OffsetManager::query(std::string_view group, std::string_view topic,
                                            int32_t queue_id) const {
  for (const Table* t : {&resets_, &offsets_}) {
    const Queues* q = find(*t, group, topic);
    if (q == nullptr) continue;
    auto it = q->find(queue_id);
    if (it != q->end()) return it->second;
  }
  return std::nullopt;
}

const OffsetManager::Queues* OffsetManager::queues(std::string_view group, std::string_view topic) const {
  return find(offsets_, group, topic);
}

int64_t OffsetManager::committed_or_0(std::string_view group, std::string_view topic,
                                      int32_t queue_id) const {
  const Queues* known = find(offsets_, group, topic);
  if (known == nullptr) return 0;
  auto queue = known->find(queue_id);
  return queue == known->end() ? 0 : queue->second;
}

void OffsetManager::set_reset(std::string_view group, std::string_view topic, int32_t queue_id,
                              int64_t offset) {
  forget_overtaken(Loop::current().now_ns());
  const int64_t committed = committed_or_0(group, topic, queue_id);
  auto& queues = overtaken_.try_emplace(std::string(key_of(group, topic))).first->second;
  auto [o, added] = queues.try_emplace(queue_id, Overtaken{committed, committed});
  if (!added) o->second = {std::min(o->second.low, committed), std::max(o->second.high, committed)};
  o->second.high = std::max(o->second.high, pulled(group, topic, queue_id));
  o->second.target = offset;
  make(resets_, group, topic)[queue_id] = offset;
  // Also to the same offset: what is behind it begins anew.
  if (follower_ != nullptr) follower_->offset_set(group, topic, queue_id, offset);
  set(group, topic, queue_id, offset);
  note(change_of(key_of(group, topic), queue_id, o->second));
}

void OffsetManager::cut(std::string_view group, std::string_view topic, int32_t queue_id, int64_t end) {
  const Queues* r = find(resets_, group, topic);
  if (r != nullptr && r->contains(queue_id)) return set_reset(group, topic, queue_id, end);
  set(group, topic, queue_id, end);
}

std::optional<int64_t> OffsetManager::take_reset(std::string_view group, std::string_view topic,
                                                 int32_t queue_id, int64_t wanted) {
  if (resets_.empty()) return std::nullopt;
  auto it = resets_.find(key_of(group, topic));
  if (it == resets_.end()) return std::nullopt;
  auto q = it->second.find(queue_id);
  if (q == it->second.end()) return std::nullopt;
  int64_t offset = q->second;
  auto known = overtaken_.find(key_of(group, topic));
  if (known != overtaken_.end()) {
    if (auto o = known->second.find(queue_id); o != known->second.end()) {
      o->second.high = std::max({o->second.high, pulled(group, topic, queue_id), wanted});
      o->second.until_ns = Loop::current().now_ns() + overtaken_ns;
      note(change_of(known->first, queue_id, o->second));
    }
  }
  it->second.erase(q);
  if (it->second.empty()) resets_.erase(it);
  return offset;
}

void OffsetManager::note_pulled(std::string_view group, std::string_view topic, int32_t queue_id,
                                int64_t next_offset) {
  make(pulled_, group, topic)[queue_id] = next_offset;
}

int64_t OffsetManager::pulled(std::string_view group, std::string_view topic, int32_t queue_id) const {
  const Queues* q = find(pulled_, group, topic);
  if (q == nullptr) return -1;
  auto it = q->find(queue_id);
  return it == q->end() ? -1 : it->second;
}

std::vector<std::string> OffsetManager::topics_of(std::string_view group) const {
  std::vector<std::string> out = index_.topics_of(group);
  looked_at_ += out.size();
  std::erase_if(out, [&](const std::string& topic) { return find(offsets_, group, topic) == nullptr; });
  return out;
}

std::vector<std::string> OffsetManager::groups_of(std::string_view topic) const {
  std::vector<std::string> out = index_.groups_of(topic);
  looked_at_ += out.size();
  std::erase_if(out, [&](const std::string& group) { return find(offsets_, group, topic) == nullptr; });
  return out;
}

void OffsetManager::remove(std::string_view group, std::string_view topic) {
  const std::string key(key_of(group, topic));
  looked_at_++;
  if (offsets_.contains(key)) {
    note("D " + key);
    if (follower_ != nullptr) follower_->offsets_removed(key);
  }
  for (Table* table : {&offsets_, &resets_, &pulled_}) table->erase(key);
  overtaken_.erase(key);
  told_.erase(key);
  index_.remove(topic, group);
}

void OffsetManager::remove_topic(std::string_view topic) {
  for (const std::string& group : index_.groups_of(topic)) remove(group, topic);
}

void OffsetManager::remove_group(std::string_view group) {
  for (const std::string& topic : index_.topics_of(group)) remove(group, topic);
}

bool OffsetManager::is_reset(std::string_view group, std::string_view topic, int32_t queue_id) const {
  auto it = overtaken_.find(key_of(group, topic));  // has those that are pending, too
  if (it == overtaken_.end()) return false;
  auto q = it->second.find(queue_id);
  return q != it->second.end() && q->second.until_ns > Loop::current().now_ns();
}

void OffsetManager::copy(std::string_view from_group, std::string_view to_group, std::string_view topic,
                         bool as_reset) {
  const Queues* from = find(offsets_, from_group, topic);
  if (from == nullptr) return;
  const Queues copied = *from;
  for (const auto& [queue_id, offset] : copied) {
    if (query(to_group, topic, queue_id) == offset) continue;
    if (as_reset || is_reset(to_group, topic, queue_id))
      set_reset(to_group, topic, queue_id, offset);
    else
      set(to_group, topic, queue_id, offset);
  }
}

// Of files that end in a directory the one without anything behind its name goes last: it says that all went.
Task<Result<void>> OffsetManager::take_over(Disk& disk, std::string other) {
  for (const std::string& own : {path(), path() + ".bak"}) {
    auto there = co_await disk.open(own, {});
    if (there) {
      co_await (*there)->close();
      co_return Result<void>();
    }
    if (there.error().code != Errc::not_found) co_return std::unexpected(there.error());
  }
  for (const char* suffix : {".log", ".bak", ""}) {
    auto moved = co_await disk.rename(other + suffix, path() + suffix);
    if (!moved && moved.error().code != Errc::not_found) co_return moved;
  }
  auto synced = co_await disk.sync_dir(store::parent_of(path()));
  if (!synced && synced.error().code == Errc::not_found) co_return Result<void>();  // a new store
  co_return synced;
}

proto::ConsumerOffsetWrapper OffsetManager::snapshot() const {
  proto::ConsumerOffsetWrapper w;
  w.data_version = version_;
  if (light_) w.lmq_offset_table.emplace();
  for (const auto& [key, q] : offsets_) {
    std::string_view topic, group;
    const bool of_light_group = light_ && splits_to(key, &topic, &group) && store::is_light_queue(group);
    auto only = of_light_group ? q.find(store::light_queue_id) : q.end();
    if (only != q.end())
      w.lmq_offset_table->emplace(key, only->second);
    else
      w.offset_table.emplace(key, q);
  }
  return w;
}

std::string OffsetManager::render() const {
  return snapshot().to_json(proto::JsonStyle::pretty);
}

Result<void> OffsetManager::parse(std::string_view text) {
  TRY_VAR(w, proto::ConsumerOffsetWrapper::parse(text));
  version_ = w.data_version;
  for (auto& [key, q] : w.offset_table) make_committed(key) = std::move(q);
  if (w.lmq_offset_table)
    for (const auto& [key, offset] : *w.lmq_offset_table) make_committed(key)[store::light_queue_id] = offset;
  return {};
}

bool OffsetManager::apply(std::string_view change) {
  constexpr size_t letter_bytes = 2;
  if (change.size() < letter_bytes || change[1] != ' ') return false;
  std::string_view rest = change.substr(letter_bytes);
  int64_t queue = 0, until_ms = 0;
  Overtaken o;
  switch (change.front()) {
    case 'C':
      if (!take_numbers(rest, {&queue, &o.target})) return false;
      make_committed(std::string(rest))[static_cast<int32_t>(queue)] = o.target;
      return true;
    case 'D':
      apply_removal(rest);
      return true;
    case 'R':
      if (!take_numbers(rest, {&queue, &o.target, &o.low, &o.high, &until_ms})) return false;
      apply_reset(static_cast<int32_t>(queue), o, until_ms, std::string(rest));
      return true;
    case 'E':
      if (!take_numbers(rest, {&queue})) return false;
      apply_notice(static_cast<int32_t>(queue), rest);
      return true;
    default:
      return false;
  }
}

void OffsetManager::apply_removal(std::string_view key) {
  for (Table* table : {&offsets_, &resets_})
    if (auto it = table->find(key); it != table->end()) table->erase(it);
  if (auto it = overtaken_.find(key); it != overtaken_.end()) overtaken_.erase(it);
  std::string_view topic, group;
  if (splits_to(key, &topic, &group)) index_.remove(topic, group);
}

// 0 for `until_ms`: it is pending.
void OffsetManager::apply_reset(int32_t queue_id, Overtaken o, int64_t until_ms, const std::string& key) {
  apply_notice(queue_id, key);
  if (until_ms > 0) {
    // The wall clock may have been set meanwhile.
    const int64_t left_ms = until_ms - Loop::current().wall_ms();
    if (left_ms <= 0) return;
    o.until_ns = Loop::current().now_ns() + std::min(left_ms * ns_per_ms, overtaken_ns);
  } else {
    std::string_view topic, group;
    if (splits_to(key, &topic, &group)) make(resets_, group, topic)[queue_id] = o.target;
  }
  overtaken_[key][queue_id] = o;
}

void OffsetManager::apply_notice(int32_t queue_id, std::string_view key) {
  const auto forget = [&](auto& table) {
    auto it = table.find(key);
    if (it == table.end()) return;
    it->second.erase(queue_id);
    if (it->second.empty()) table.erase(it);
  };
  forget(resets_);
  forget(overtaken_);
}

std::string OffsetManager::change_of(std::string_view key, int32_t queue_id, const Overtaken& o) {
  int64_t until_ms = 0;
  if (o.until_ns != Overtaken::pending)
    until_ms = Loop::current().wall_ms() + (o.until_ns - Loop::current().now_ns()) / ns_per_ms;
  return fmt::format("R {} {} {} {} {} {}", queue_id, o.target, o.low, o.high, until_ms, key);
}

std::vector<std::string> OffsetManager::beside_file() {
  forget_overtaken(Loop::current().now_ns());
  std::vector<std::string> changes;
  for (const auto& [key, queues] : overtaken_)
    for (const auto& [queue_id, o] : queues) changes.push_back(change_of(key, queue_id, o));
  return changes;
}

}  // namespace rmq::broker
