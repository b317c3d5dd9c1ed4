#include "daemon/broker/pop/pop_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>

#include "proto/bodies_config.h"
#include "uring/loop.h"

namespace rmq::broker {

using Key = PopCheckpoint::Key;

namespace {

constexpr size_t log_bytes_min = 1u << 20;  // shorter logs are not folded
constexpr std::string_view file_mark = "J ";

std::string key_text(std::string_view group, std::string_view topic) {
  std::string key;
  key.reserve(topic.size() + 1 + group.size());
  key += topic;
  key += '@';
  key += group;
  return key;
}

// The numbers of a change, one after the other, and what text follows them.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : rest_(text) {}
  template <class T = int64_t>
  T next() {
    T out{};
    auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    const auto used = static_cast<size_t>(end - rest_.data());
    good_ = good_ && ec == std::errc{} && (used == rest_.size() || rest_[used] == ' ');
    rest_ = used < rest_.size() ? rest_.substr(used + 1) : std::string_view{};
    return out;
  }
  bool more() const { return good_ && !rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

uint32_t all_bits(size_t count) {
  return count >= 32 ? UINT32_MAX : (1u << count) - 1;
}

// ---- changes as text -----------------------------------------------------------------------------------

std::string queue_line(const PopQueue& q) {
  return fmt::format("N {} {} {} {}@{}", q.id, q.queue_id, q.next, q.topic, q.group);
}

std::string checkpoint_line(const PopQueue& q, Key key, const PopCheckpoint& c) {
  std::string out = fmt::format("P {} {} {} {} {} {} {} {}", q.id, q.next, key.first, key.second,
                                c.visible_ms, c.reviving ? c.revive_from : -1, c.pending, c.count);
  if (c.places)
    for (size_t i = 0; i < c.count; i++) fmt::format_to(std::back_inserter(out), " {}", c.places[i]);
  return out;
}

std::string order_line(const PopQueue& q) {
  if (!q.order) return fmt::format("X {} {}", q.id, q.next);
  const OrderInfo& o = *q.order;
  std::string out = fmt::format("O {} {} {} {} {} {}", q.id, q.next, o.end, o.pop_time_ms, o.acknowledged,
                                o.messages.size());
  for (const OrderInfo::Message& m : o.messages)
    fmt::format_to(std::back_inserter(out), " {} {} {}", m.offset, m.visible_ms, m.consumed);
  return out += ' ' + o.attempt_id;
}

}  // namespace

// ---- checkpoints, queues -------------------------------------------------------------------------------

uint32_t PopCheckpoint::bit_of(int64_t wanted) const {
  for (size_t i = 0; i < count; i++)
    if (place(i) == wanted) return 1u << i;
  return 0;
}

int64_t OrderInfo::next_offset() const {
  for (size_t i = 0; i < messages.size(); i++)
    if (!is_acknowledged(i)) return messages[i].offset;
  return end;
}

std::vector<OrderInfo::Message> OrderInfo::acknowledged_from(int64_t start) const {
  std::vector<Message> out;
  for (size_t i = 0; i < messages.size(); i++)
    if (is_acknowledged(i) && messages[i].offset >= start) out.push_back(messages[i]);
  return out;
}

void OrderInfo::drop_before(int64_t offset) {
  const auto first = std::ranges::lower_bound(messages, offset, {}, &Message::offset);
  const auto dropped = static_cast<size_t>(first - messages.begin());
  messages.erase(messages.begin(), first);
  acknowledged = dropped < messages_max ? acknowledged >> dropped : 0;
  end = std::max(end, offset);
  for (const Message& m : messages)
    if (m.offset == end) end++;  // acknowledged, as all from the end on
}

void OrderInfo::drop_from(int64_t offset) {
  const auto first = std::ranges::lower_bound(messages, offset, {}, &Message::offset);
  const auto kept = static_cast<size_t>(first - messages.begin());
  messages.erase(first, messages.end());
  if (kept < messages_max) acknowledged &= (uint64_t{1} << kept) - 1;
  end = std::min(end, offset);
}

bool OrderInfo::is_over() const {
  return next_offset() == end && (messages.empty() || messages.back().offset < end);
}

int64_t OrderInfo::blocked_until_ms() const {
  int64_t until = INT64_MIN;
  for (size_t i = 0; i < messages.size(); i++)
    if (!is_acknowledged(i)) until = std::max(until, messages[i].visible_ms);
  return until;
}

int64_t PopQueue::first_unacknowledged() const {
  int64_t first = next;
  for (const auto& [key, c] : checkpoints) {  // in the order of their starts
    if (key.first >= first) break;
    if (c.pending == 0) continue;
    first = std::min(first, key.first + c.place(static_cast<size_t>(std::countr_zero(c.pending))));
  }
  return first;
}

size_t PopQueue::outstanding() const {
  size_t n = 0;
  for (const auto& [key, c] : checkpoints) n += static_cast<size_t>(std::popcount(c.pending));
  return n;
}

PopTable::PopTable(Disk& disk, std::string path, Durability durability, OffsetManager& offsets)
    : LoggedTable(disk, std::move(path), durability), offsets_(offsets) {
  offsets_.set_follower(this);
}

PopTable::QueuePointer PopTable::find(std::string_view group, std::string_view topic,
                                      int32_t queue_id) const {
  auto g = groups_.find(key_text(group, topic));
  if (g == groups_.end()) return nullptr;
  auto q = g->second.find(queue_id);
  return q == g->second.end() ? nullptr : q->second;
}

PopTable::QueuePointer PopTable::insert(std::string_view key, int32_t queue_id, uint32_t id, int64_t next) {
  auto old = by_id_.find(id);
  if (old != by_id_.end()) remove(*old->second);  // a line that is applied again
  const size_t at = key.find('@');
  QueuePointer q = std::make_shared<PopQueue>();
  q->topic = key.substr(0, at);
  q->group = key.substr(at + 1);
  q->queue_id = queue_id;
  q->id = id;
  q->next = next;
  last_id_ = std::max(last_id_, id);
  by_id_[id] = q;
  groups_[std::string(key)][queue_id] = q;
  return q;
}

PopTable::QueuePointer PopTable::add(std::string_view group, std::string_view topic, int32_t queue_id,
                                     int64_t next) {
  if (by_id_.empty()) note_files(offsets_.file_line(), offsets_.file_line());
  QueuePointer q = insert(key_text(group, topic), queue_id, last_id_ + 1, next);
  note(queue_line(*q));
  follow(*q);
  return q;
}

void PopTable::remove(PopQueue& q) {
  const QueuePointer alive = by_id_.at(q.id);
  clear(q, q.next);
  by_id_.erase(q.id);
  auto g = groups_.find(key_text(q.group, q.topic));
  g->second.erase(q.queue_id);
  if (g->second.empty()) groups_.erase(g);
}

void PopTable::clear(PopQueue& q, int64_t next) {
  for (auto& [key, c] : q.checkpoints) {
    heap_remove(c);
    outstanding_ -= static_cast<size_t>(std::popcount(c.pending));
  }
  checkpoints_ -= q.checkpoints.size();
  q.checkpoints.clear();
  q.order.reset();
  q.next = next;
  q.epoch++;
}

PopCheckpoint& PopTable::insert_checkpoint(PopQueue& q, Key key, PopCheckpoint c) {
  auto old = q.checkpoints.find(key);
  if (old != q.checkpoints.end()) clear_bits(q, key, UINT32_MAX);  // a line that is applied again
  c.queue = &q;
  auto it = q.checkpoints.emplace(key, std::move(c)).first;
  it->second.key = &it->first;
  checkpoints_++;
  outstanding_ += static_cast<size_t>(std::popcount(it->second.pending));
  if (!it->second.reviving) heap_add(it->second);
  return it->second;
}

void PopTable::clear_bits(PopQueue& q, Key key, uint32_t bits) {
  auto it = q.checkpoints.find(key);
  if (it == q.checkpoints.end()) return;
  PopCheckpoint& c = it->second;
  outstanding_ -= static_cast<size_t>(std::popcount(c.pending & bits));
  c.pending &= ~bits;
  if (c.pending != 0) return;
  heap_remove(c);
  q.checkpoints.erase(it);
  checkpoints_--;
}

void PopTable::follow(const PopQueue& q) {
  offsets_.follow(q.group, q.topic, q.queue_id, q.first_unacknowledged());
}

// ---- what the broker does ------------------------------------------------------------------------------

void PopTable::move_to(PopQueue& q, int64_t next) {
  if (q.next == next) return;
  q.next = next;
  note(fmt::format("C {} {}", q.id, next));
  follow(q);
}

PopCheckpoint& PopTable::popped(PopQueue& q, int64_t start, int64_t next, int64_t pop_time_ms,
                                int64_t visible_ms, std::span<const int64_t> offsets) {
  check(!offsets.empty() && offsets.size() <= PopCheckpoint::messages_max);
  PopCheckpoint c;
  c.visible_ms = visible_ms;
  c.count = static_cast<uint8_t>(offsets.size());
  c.pending = all_bits(offsets.size());
  bool dense = true;
  for (size_t i = 0; i < offsets.size(); i++) dense &= offsets[i] == start + static_cast<int64_t>(i);
  if (!dense) {
    c.places = std::make_unique<uint32_t[]>(offsets.size());
    for (size_t i = 0; i < offsets.size(); i++) c.places[i] = static_cast<uint32_t>(offsets[i] - start);
  }
  q.next = next;
  note(checkpoint_line(q, {start, pop_time_ms}, c));
  PopCheckpoint& placed = insert_checkpoint(q, {start, pop_time_ms}, std::move(c));
  follow(q);
  return placed;
}

bool PopTable::acknowledge(PopQueue& q, Key key, uint32_t bits) {
  auto it = q.checkpoints.find(key);
  if (it == q.checkpoints.end() || (it->second.pending & bits) == 0) return false;
  note(fmt::format("A {} {} {} {}", q.id, key.first, key.second, it->second.pending & bits));
  clear_bits(q, key, bits);
  follow(q);
  return true;
}

void PopTable::change_invisible(PopQueue& q, Key key, int64_t offset, int64_t pop_time_ms,
                                int64_t visible_ms) {
  auto it = q.checkpoints.find(key);
  check(it != q.checkpoints.end());
  const uint32_t bit = it->second.bit_of(offset - key.first);
  check((it->second.pending & bit) != 0);
  note(fmt::format("I {} {} {} {} {} {}", q.id, key.first, key.second, offset, pop_time_ms, visible_ms));
  PopCheckpoint c;
  c.visible_ms = visible_ms;
  c.count = 1;
  c.pending = 1;
  insert_checkpoint(q, {offset, pop_time_ms}, std::move(c));
  clear_bits(q, key, bit);
}

void PopTable::mark_reviving(PopCheckpoint& c, int64_t retry_offset) {
  heap_remove(c);
  c.reviving = true;
  c.revive_from = retry_offset;
}

void PopTable::begin_revive(PopQueue& q, Key key, int64_t retry_offset) {
  auto it = q.checkpoints.find(key);
  check(it != q.checkpoints.end());
  mark_reviving(it->second, retry_offset);
  note(fmt::format("V {} {} {} {}", q.id, key.first, key.second, retry_offset));
}

void PopTable::put_off(PopQueue& q, Key key, int64_t visible_ms) {
  auto it = q.checkpoints.find(key);
  if (it == q.checkpoints.end()) return;
  PopCheckpoint& c = it->second;
  heap_remove(c);
  c.reviving = false;
  c.visible_ms = visible_ms;
  heap_add(c);
}

void PopTable::order_changed(PopQueue& q) {
  if (q.order && q.order->is_over()) q.order.reset();
  note(order_line(q));
  follow(q);
}

std::vector<std::pair<PopTable::QueuePointer, Key>> PopTable::interrupted() const {
  std::vector<std::pair<QueuePointer, Key>> out;
  for (const auto& [id, q] : by_id_)
    for (const auto& [key, c] : q->checkpoints)
      if (c.reviving) out.emplace_back(q, key);
  return out;
}

Task<void> PopTable::fold_if_long() {
  const uint64_t last = last_change();
  [[maybe_unused]] auto written = co_await kept(last);
  // What could not be written comes to disk with the file, and the log begins anew.
  const bool failed = !is_kept(last);
  if (failed || log_bytes() > std::max(log_bytes_min, 2 * file_bytes_)) co_await fold();
}

// ---- consumer offsets ------------------------------------------------------------------------------------

void PopTable::note_files(std::string there, std::string next) {
  note(fmt::format("F {} {}", std::string_view(there).substr(file_mark.size()),
                   std::string_view(next).substr(file_mark.size())));
  offset_files_ = {std::move(there), std::move(next)};
}

// Offsets that another broker has written count more than what is known here. Where they are the same as
// ours, nobody has taken anything from that queue.
void PopTable::offsets_read(const std::string& file) {
  const bool ours = file == offset_files_.first || file == offset_files_.second;
  for (auto it = by_id_.begin(); it != by_id_.end();) {
    const QueuePointer q = (it++)->second;
    auto offset = offsets_.query(q->group, q->topic, q->queue_id);
    if (ours || (offset && *offset == q->first_unacknowledged())) {
      follow(*q);
      continue;
    }
    note(fmt::format("D {}", q->id));
    remove(*q);
  }
  if (!ours && !by_id_.empty()) note_files(file, file);
}

Task<void> PopTable::offsets_to_be_written(std::string file) {
  if (by_id_.empty()) co_return;
  note_files(offsets_.file_line(), std::move(file));
  // When it cannot be kept, the journal has it, and at worst messages come again.
  [[maybe_unused]] auto noted = co_await kept(last_change());
}

void PopTable::offset_set(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset) {
  if (by_id_.empty()) return;
  QueuePointer q = find(group, topic, queue_id);
  if (!q) return;
  note(fmt::format("R {} {}", q->id, offset));
  last_set_ = last_change();
  clear(*q, offset);
}

void PopTable::offsets_removed(std::string_view key) {
  auto g = groups_.find(key);
  if (g == groups_.end()) return;
  const Queues queues = g->second;
  for (const auto& [queue_id, q] : queues) {
    note(fmt::format("D {}", q->id));
    remove(*q);
  }
  last_set_ = last_change();
}

// ---- file and log
// ------------------------------------------------------------------------------------------

std::string PopTable::render() const {
  proto::ChangeList list;
  if (!offset_files_.first.empty())
    list.changes.push_back(fmt::format("F {} {}", offset_files_.first.substr(file_mark.size()),
                                       offset_files_.second.substr(file_mark.size())));
  for (const auto& [id, q] : by_id_) {
    list.changes.push_back(queue_line(*q));
    for (const auto& [key, c] : q->checkpoints) list.changes.push_back(checkpoint_line(*q, key, c));
    if (q->order) list.changes.push_back(order_line(*q));
  }
  std::string text = list.to_json();
  file_bytes_ = text.size();
  return text;
}

Result<void> PopTable::parse(std::string_view text) {
  TRY_VAR(list, proto::ChangeList::parse(text));
  for (const std::string& change : list.changes)
    if (!apply(change)) return fail(Errc::corrupt, "a line of the file of popped messages cannot be read");
  file_bytes_ = text.size();
  return {};
}

// Id of the queue, then by kind. A change of something that is not there (any more) says nothing.
bool PopTable::apply(std::string_view change) {
  if (change.size() < 3 || change[1] != ' ') return false;
  const char what = change[0];
  Numbers n(change.substr(2));
  if (what == 'F') {
    std::string_view text = n.rest();
    const size_t second = text.find(' ', text.find(' ') + 1);
    if (second == std::string_view::npos) return false;
    offset_files_ = {std::string(file_mark) + std::string(text.substr(0, second)),
                     std::string(file_mark) + std::string(text.substr(second + 1))};
    return true;
  }
  const auto id = n.next<uint32_t>();
  if (what == 'N') {
    const auto queue_id = n.next<int32_t>();
    const auto next = n.next();
    if (!n.good() || n.rest().find('@') == std::string_view::npos) return false;
    insert(n.rest(), queue_id, id, next);
    return true;
  }
  if (!n.good()) return false;
  auto it = by_id_.find(id);
  return it == by_id_.end() || apply_to(*it->second, what, n.rest());
}

bool PopTable::apply_to(PopQueue& q, char what, std::string_view rest) {
  if (what == 'P') return apply_checkpoint(q, rest);
  if (what == 'O' || what == 'X') return apply_order(q, rest);
  if (what == 'D') {
    remove(q);
    return true;
  }
  Numbers n(rest);
  const int64_t first = n.next();
  if (what == 'C' || what == 'R') {
    if (what == 'R') clear(q, first);
    q.next = first;
    return n.good();
  }
  const Key key{first, n.next()};
  if (what == 'A') {
    const auto bits = n.next<uint32_t>();
    clear_bits(q, key, bits);
    return n.good();
  }
  if (what == 'V') {
    const auto from = n.next();
    auto it = q.checkpoints.find(key);
    if (it != q.checkpoints.end()) mark_reviving(it->second, from);
    return n.good();
  }
  return what == 'I' && apply_change(q, key, n.rest());
}

bool PopTable::apply_change(PopQueue& q, Key key, std::string_view rest) {
  Numbers n(rest);
  const int64_t offset = n.next();
  const Key changed{offset, n.next()};
  PopCheckpoint c;
  c.visible_ms = n.next();
  c.count = 1;
  c.pending = 1;
  auto it = q.checkpoints.find(key);
  const uint32_t bit = it == q.checkpoints.end() ? 0 : it->second.bit_of(offset - key.first);
  if (!n.good() || bit == 0 || (it->second.pending & bit) == 0) return n.good();
  insert_checkpoint(q, changed, std::move(c));
  clear_bits(q, key, bit);
  return true;
}

bool PopTable::apply_checkpoint(PopQueue& q, std::string_view rest) {
  Numbers n(rest);
  const int64_t next = n.next();
  const int64_t start = n.next();
  const Key key{start, n.next()};
  PopCheckpoint c;
  c.visible_ms = n.next();
  c.revive_from = n.next();
  c.reviving = c.revive_from >= 0;
  c.pending = n.next<uint32_t>();
  const auto count = n.next<uint32_t>();
  if (!n.good() || count == 0 || count > PopCheckpoint::messages_max || (c.pending & ~all_bits(count)) != 0)
    return false;
  c.count = static_cast<uint8_t>(count);
  if (n.more()) {
    c.places = std::make_unique<uint32_t[]>(count);
    for (uint32_t i = 0; i < count; i++) c.places[i] = n.next<uint32_t>();
  }
  if (!n.good()) return false;
  q.next = next;
  if (c.pending != 0) insert_checkpoint(q, key, std::move(c));
  return true;
}

bool PopTable::apply_order(PopQueue& q, std::string_view rest) {
  Numbers n(rest);
  const int64_t next = n.next();
  if (!n.more()) {
    q.order.reset();
    q.next = next;
    return n.good();
  }
  auto o = std::make_unique<OrderInfo>();
  o->end = n.next();
  o->pop_time_ms = n.next();
  o->acknowledged = n.next<uint64_t>();
  const auto count = n.next<uint32_t>();
  if (!n.good() || count > OrderInfo::messages_max) return false;
  for (uint32_t i = 0; i < count; i++) {
    OrderInfo::Message& m = o->messages.emplace_back();
    m.offset = n.next();
    m.visible_ms = n.next();
    m.consumed = n.next<int32_t>();
  }
  if (!n.good()) return false;
  o->attempt_id = std::string(n.rest());
  q.next = next;
  q.order = std::move(o);
  return true;
}

// ---- the order in which checkpoints are due: a binary heap that knows its places -------------------------

void PopTable::heap_place(size_t i, PopCheckpoint* c) {
  heap_[i] = c;
  c->heap_index = static_cast<uint32_t>(i);
}

void PopTable::heap_up(size_t i) {
  PopCheckpoint* c = heap_[i];
  for (; i > 0 && c->visible_ms < heap_[(i - 1) / 2]->visible_ms; i = (i - 1) / 2)
    heap_place(i, heap_[(i - 1) / 2]);
  heap_place(i, c);
}

void PopTable::heap_down(size_t i) {
  PopCheckpoint* c = heap_[i];
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->visible_ms < heap_[child]->visible_ms) child++;
    if (heap_[child]->visible_ms >= c->visible_ms) break;
    heap_place(i, heap_[child]);
    i = child;
  }
  heap_place(i, c);
}

size_t PopTable::due_count(int64_t wall_ms, size_t most) const {
  std::vector<size_t> to_look_at;
  if (!heap_.empty()) to_look_at.push_back(0);
  size_t due = 0;
  while (!to_look_at.empty() && due < most) {
    const size_t i = to_look_at.back();
    to_look_at.pop_back();
    if (heap_[i]->visible_ms > wall_ms) continue;
    due++;
    for (size_t c : {2 * i + 1, 2 * i + 2})
      if (c < heap_.size()) to_look_at.push_back(c);
  }
  return due;
}

void PopTable::heap_add(PopCheckpoint& c) {
  heap_.push_back(&c);
  heap_place(heap_.size() - 1, &c);
  heap_up(heap_.size() - 1);
}

void PopTable::heap_remove(PopCheckpoint& c) {
  if (c.heap_index == PopCheckpoint::not_due) return;
  const size_t i = c.heap_index;
  c.heap_index = PopCheckpoint::not_due;
  PopCheckpoint* last = heap_.back();
  heap_.pop_back();
  if (last == &c) return;
  heap_place(i, last);
  heap_up(i);
  heap_down(last->heap_index);
}

}  // namespace rmq::broker
