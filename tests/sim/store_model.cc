#include "sim/store_model.h"

#include <algorithm>
#include <map>

#include "proto/record.h"

namespace rmq::sim {

namespace {

constexpr const char* topics[] = {"Orders", "a-very-busy-topic", "%RETRY%group", "rare"};
constexpr size_t id_bytes = 8;

std::string long_retry_topic() {
  return "%RETRY%" + std::string(140, 'g');
}

Address host(SimRandom& r) {
  Address a;
  a.port = static_cast<uint16_t>(1 + r.below(65535));
  a.v6 = r.below(8) == 0;
  for (size_t i = 0; i < (a.v6 ? 16u : 4u); i++) a.ip[i] = static_cast<unsigned char>(1 + r.below(250));
  return a;
}

size_t body_bytes(SimRandom& r, size_t max) {
  size_t n = 0;
  switch (r.below(10)) {
    case 0:
      n = 0;
      break;
    case 1:
      n = r.below(max + 1);
      break;
    case 2:
    case 3:
      n = r.below(5000);
      break;
    default:
      n = r.below(300);
      break;
  }
  return std::clamp(n, id_bytes, std::max(max, id_bytes));
}

std::string body_of(SimRandom& r, uint64_t id, size_t bytes) {
  std::string b;
  append_be(b, id);
  switch (r.below(4)) {
    case 0:
      b.append(bytes - id_bytes, '\0');
      break;  // looks like unwritten log
    case 1:   // looks like records
      while (b.size() < bytes) append_be(b, r.below(2) == 0 ? proto::record_magic_v1 : uint32_t{100});
      break;
    default:
      while (b.size() < bytes) append_be(b, r.next());
  }
  b.resize(bytes);
  return b;
}

std::string at(int64_t physical) {
  return " at physical offset " + std::to_string(physical);
}

}  // namespace

bool Message::has_unit() const {
  int32_t t = proto::sys_flag::transaction_of(sys_flag);
  return t == proto::sys_flag::transaction_none || t == proto::sys_flag::transaction_commit;
}

store::MessageIn Message::in() const {
  store::MessageIn m;
  m.topic = topic;
  m.queue_id = queue_id;
  m.flag = flag;
  m.sys_flag = sys_flag;
  m.born_timestamp_ms = born_timestamp_ms;
  m.born_host = born_host;
  m.store_host = store_host;
  m.reconsume_times = reconsume_times;
  m.prepared_transaction_offset = prepared_transaction_offset;
  m.body = as_bytes(body);
  m.properties = properties;
  return m;
}

Message& Model::make(size_t body_bytes_max) {
  SimRandom& r = random;
  Message& m = messages.emplace_back();
  m.id = messages.size() - 1;
  m.topic = r.below(40) == 0 ? long_retry_topic() : topics[r.below(std::size(topics))];
  m.queue_id = static_cast<int32_t>(r.below(model_queues_per_topic));
  m.flag = static_cast<int32_t>(r.next());
  if (r.below(8) == 0) m.sys_flag = static_cast<int32_t>(4 * (1 + r.below(3)));  // of transactions
  m.reconsume_times = static_cast<int32_t>(r.below(17));
  m.prepared_transaction_offset = static_cast<int64_t>(r.below(1000));
  m.born_timestamp_ms = 1'700'000'000'000 + static_cast<int64_t>(r.below(1'000'000));
  m.born_host = host(r);
  m.store_host = host(r);
  m.body = body_of(r, m.id, body_bytes(r, body_bytes_max));
  m.properties = "UNIQ_KEY\x01" + std::to_string(m.id) + "\x02";
  if (r.below(2) == 0) m.properties += "KEYS\x01key" + std::to_string(m.id) + " shared\x02";
  if (r.below(2) == 0) m.properties += "TAGS\x01tag" + std::to_string(r.below(5)) + "\x02";
  if (r.below(8) == 0) m.properties += std::string("zeros\x01 \0\0\0 \x02", 12);
  return m;
}

// ---- dumps -------------------------------------------------------------------------------------------

namespace {

Task<void> read_log(store::MessageStore& s, Dump& out, Errors& errors) {
  out.min_physical = s.min_physical_offset();
  out.max_physical = s.max_physical_offset();
  if (s.confirm_offset() != out.max_physical) errors.push_back("an idle store has unconfirmed messages");
  out.log.assign(static_cast<size_t>(out.max_physical - out.min_physical), '\0');
  size_t done = 0;
  while (done < out.log.size()) {
    MutableBytes into(reinterpret_cast<std::byte*>(out.log.data()) + done, out.log.size() - done);
    auto n = co_await s.read_log(out.min_physical + static_cast<int64_t>(done), into);
    if (!n || *n == 0) {
      errors.push_back("read_log: " + (n ? "ends early" : to_string(n.error())));
      co_return;
    }
    done += *n;
  }
}

Task<void> pull_all(store::MessageStore& s, QueueDump& q, Errors& errors) {
  int64_t offset = q.min_offset;
  while (offset < q.max_offset) {
    auto r = co_await s.get(q.topic, q.queue_id, offset, 32, nullptr);
    bool found = r.status == store::GetMessageStatus::FOUND && r.next_begin_offset > offset;
    if (!found) {
      errors.push_back("get " + q.topic + " " + std::to_string(q.queue_id) + " from " +
                       std::to_string(offset) + ": " + name_of(r.status) + ", next " +
                       std::to_string(r.next_begin_offset));
      co_return;
    }
    for (const store::LogExtent& e : r.extents) q.pulled += as_text(e.bytes());
    offset = r.next_begin_offset;
  }
}

Task<void> read_queue(store::MessageStore& s, QueueDump& q, Errors& errors) {
  for (int64_t i = q.min_offset; i < q.max_offset; i++) {
    auto u = co_await s.queue_unit(q.topic, q.queue_id, i);
    if (u) {
      q.units.emplace_back(u->physical_offset, u->bytes, u->tags_code);
      continue;
    }
    errors.push_back("no unit " + std::to_string(i) + " in " + q.topic + " " + std::to_string(q.queue_id));
    co_return;
  }
  co_await pull_all(s, q, errors);
}

}  // namespace

Task<void> take_dump(store::MessageStore& s, Dump& out, Errors& errors) {
  co_await read_log(s, out, errors);
  for (const std::string& topic : s.topics_with_queues()) {
    for (int32_t id = 0; id < model_queues_per_topic; id++) {
      int64_t max = s.max_offset(topic, id);
      if (max == 0) continue;
      QueueDump& q = out.queues.emplace_back();
      q.topic = topic;
      q.queue_id = id;
      q.min_offset = s.min_offset(topic, id);
      q.max_offset = max;
      co_await read_queue(s, q, errors);
    }
  }
}

// ---- the oracle --------------------------------------------------------------------------------------

namespace {

bool promises_hold(const Model& model) {
  return model.sync_flush || model.since != Since::power_cut;
}

void compare(const Model& model, const Message& m, const proto::RecordView& v, Errors& errors) {
  auto differs = [&](const char* what) {
    errors.push_back("message " + std::to_string(m.id) + at(v.physical_offset) + " differs in " + what);
  };
  int32_t v6_bits = (m.born_host.v6 ? proto::sys_flag::bornhost_v6 : 0) |
                    (m.store_host.v6 ? proto::sys_flag::storehost_v6 : 0);
  if (v.topic != m.topic) differs("topic");
  if (v.queue_id != m.queue_id) differs("queue id");
  if (v.flag != m.flag) differs("flag");
  if (v.sys_flag != (m.sys_flag | v6_bits)) differs("sysFlag");
  if (v.born_timestamp_ms != m.born_timestamp_ms) differs("born timestamp");
  if (v.born_host.to_string() != m.born_host.text()) differs("born host");
  if (v.store_host.to_string() != m.store_host.text()) differs("store host");
  if (v.reconsume_times != m.reconsume_times) differs("reconsume times");
  if (v.prepared_transaction_offset != m.prepared_transaction_offset) differs("transaction offset");
  if (as_text(v.body) != m.body) differs("body");
  bool promised = !model.garbage || model.property_crc || v.physical_offset < model.flushed_floor ||
                  ((m.acknowledged || m.seen) && promises_hold(model));
  if (v.properties != m.properties && (promised || v.properties.size() != m.properties.size()))
    differs("properties");
  if (m.physical_offset >= 0 && v.physical_offset != m.physical_offset)
    differs("physical offset as answered");
  if (m.queue_offset >= 0 && v.queue_offset != m.queue_offset) differs("queue offset as answered");
}

const Message* find_message(const Model& model, const proto::RecordView& v, Errors& errors) {
  uint64_t id = v.body.size() < id_bytes ? UINT64_MAX : load_be<uint64_t>(v.body.data());
  if (id >= model.messages.size()) {
    errors.push_back("a message that was never put" + at(v.physical_offset));
    return nullptr;
  }
  const Message& m = model.messages[id];
  compare(model, m, v, errors);
  return &m;
}

// Walks the log and collects what the queues must hold.
class LogWalk {
 public:
  LogWalk(const Model& model, const Dump& dump, Errors& errors)
      : model_(model), dump_(dump), errors_(errors), found_(model.messages.size(), false) {}

  void walk() {
    std::string_view log = dump_.log;
    size_t pos = 0;
    while (pos < log.size()) {
      auto front = proto::record_front(as_bytes(log.substr(pos)));
      if (front && front->is_blank() && front->size != 0) {
        pos += front->size;
        continue;
      }
      auto v = proto::parse_record(as_bytes(log.substr(pos)), proto::CrcCheck::verify);
      if (!v) {
        errors_.push_back("no record" + at(dump_.min_physical + static_cast<int64_t>(pos)) + ": " +
                          to_string(v.error()));
        return;
      }
      record(*v, dump_.min_physical + static_cast<int64_t>(pos), log.substr(pos, v->size));
      pos += v->size;
    }
  }

  void check_queues() {
    for (const QueueDump& q : dump_.queues) {
      auto it = queues_.find({q.topic, q.queue_id});
      std::string name = q.topic + " " + std::to_string(q.queue_id);
      // Of some nothing is in the log any more.
      if (it == queues_.end() && dump_.min_physical > 0 && q.min_offset == q.max_offset) continue;
      if (it == queues_.end()) {
        errors_.push_back("queue " + name + " has units from " + std::to_string(q.min_offset) + " to " +
                          std::to_string(q.max_offset) + ", the log has no message for it");
        continue;
      }
      if (q.min_offset != it->second.first)
        errors_.push_back("queue " + name + " starts at " + std::to_string(q.min_offset) +
                          ", its messages at " + std::to_string(it->second.first));
      if (q.max_offset - q.min_offset != static_cast<int64_t>(it->second.units.size()))
        errors_.push_back("queue " + name + " ends at " + std::to_string(q.max_offset) + ", the log has " +
                          std::to_string(it->second.units.size()) + " messages for it");
      if (q.units != it->second.units) errors_.push_back("units of queue " + name + " do not fit the log");
      if (q.pulled != it->second.records) errors_.push_back("a pull of queue " + name + " gives other bytes");
      queues_.erase(it);
    }
    for (const auto& [key, q] : queues_)
      errors_.push_back("no queue for " + key.first + " " + std::to_string(key.second));
  }

  bool has(const Message& m) const { return found_[m.id]; }

 private:
  struct Queue {
    int64_t first = 0;
    std::vector<std::tuple<int64_t, int32_t, int64_t>> units;
    std::string records;
  };

  void record(const proto::RecordView& v, int64_t physical, std::string_view bytes) {
    if (v.physical_offset != physical) errors_.push_back("wrong physical offset" + at(physical));
    if (v.store_timestamp_ms < last_store_timestamp_ms_)
      errors_.push_back("store timestamp goes back" + at(physical));
    last_store_timestamp_ms_ = v.store_timestamp_ms;
    const Message* m = find_message(model_, v, errors_);
    if (m == nullptr) return;
    if (m->gone)
      errors_.push_back("message " + std::to_string(m->id) + " has risen from the dead" + at(physical));
    if (last_ != nullptr && m->id <= last_->id)
      errors_.push_back("message " + std::to_string(m->id) + " is behind " + std::to_string(last_->id));
    last_ = m;
    found_[m->id] = true;
    if (!m->has_unit()) return;
    Queue& q = queues_[{m->topic, m->queue_id}];
    if (q.units.empty() && dump_.min_physical > 0) q.first = v.queue_offset;
    if (v.queue_offset != q.first + static_cast<int64_t>(q.units.size()))
      errors_.push_back("message " + std::to_string(m->id) + " has queue offset " +
                        std::to_string(v.queue_offset) + ", but is number " + std::to_string(q.units.size()) +
                        " from " + std::to_string(q.first));
    q.units.emplace_back(physical, static_cast<int32_t>(v.size), v.tags_code());
    q.records += bytes;
  }

  const Model& model_;
  const Dump& dump_;
  Errors& errors_;
  std::vector<bool> found_;
  const Message* last_ = nullptr;
  int64_t last_store_timestamp_ms_ = INT64_MIN;
  std::map<std::pair<std::string, int32_t>, Queue> queues_;
};

}  // namespace

namespace {
void check_ends(const Model& model, const Dump& dump, Errors& errors) {
  auto ends = model.ends;
  for (const Message& m : model.messages) {
    if (m.gone || !m.acknowledged || m.queue_offset < 0 || !m.has_unit() || !promises_hold(model)) continue;
    int64_t& end = ends[{m.topic, m.queue_id}];
    end = std::max(end, m.queue_offset + 1);
  }
  for (const QueueDump& q : dump.queues) {
    auto it = ends.find({q.topic, q.queue_id});
    if (it != ends.end() && it->second <= q.max_offset) ends.erase(it);
  }
  for (const auto& [queue, end] : ends)
    errors.push_back("offsets of queue " + queue.first + " " + std::to_string(queue.second) +
                     " go back: it ended at " + std::to_string(end));
}
}  // namespace

void check_recovered(const Model& model, const Dump& dump, Errors& errors) {
  LogWalk walk(model, dump, errors);
  walk.walk();
  walk.check_queues();
  check_ends(model, dump, errors);
  if (dump.max_physical < model.flushed_floor)
    errors.push_back("the log ends at " + std::to_string(dump.max_physical) + ", flushed was up to " +
                     std::to_string(model.flushed_floor));
  const Message* first_lost = nullptr;
  for (const Message& m : model.messages) {
    if (m.gone) continue;
    if (walk.has(m)) {
      if (first_lost != nullptr)
        errors.push_back("message " + std::to_string(m.id) + " survived, the earlier " +
                         std::to_string(first_lost->id) + " did not");
      continue;
    }
    if (m.old && m.physical_offset >= 0 && m.physical_offset < dump.min_physical) continue;
    if (promises_hold(model) && m.acknowledged)
      errors.push_back("acknowledged message " + std::to_string(m.id) + " is lost");
    if (promises_hold(model) && m.seen)
      errors.push_back("message " + std::to_string(m.id) + " was consumed and is lost");
    if (first_lost == nullptr && m.physical_offset >= 0) first_lost = &m;
  }
}

namespace {
std::string text_of(const QueueDump& q) {
  return q.topic + " " + std::to_string(q.queue_id) + " from " + std::to_string(q.min_offset) + " to " +
         std::to_string(q.max_offset);
}
}  // namespace

std::string difference(const Dump& is, const Dump& was) {
  if (is.min_physical != was.min_physical || is.max_physical != was.max_physical)
    return "the log is from " + std::to_string(is.min_physical) + " to " + std::to_string(is.max_physical) +
           ", was from " + std::to_string(was.min_physical) + " to " + std::to_string(was.max_physical);
  if (is.log != was.log) return "the log has other bytes";
  for (const QueueDump& q : was.queues)
    if (std::find(is.queues.begin(), is.queues.end(), q) == is.queues.end()) return "there was " + text_of(q);
  for (const QueueDump& q : is.queues)
    if (std::find(was.queues.begin(), was.queues.end(), q) == was.queues.end())
      return "there was no " + text_of(q);
  return "nothing";
}

void Model::grow_old(int64_t now_ns, int64_t reserved_ms) {
  for (Message& m : messages) {
    if (m.put_ns < 0) continue;
    m.old = now_ns - m.put_ns >= (reserved_ms - 1) * ns_per_ms;
    m.put_ns = -1;
  }
}

void Model::settle(const Dump& dump) {
  for (Message& m : messages) {
    m.old = true;  // the clock may say anything until the next life
    m.gone = true;
  }
  std::string_view log = dump.log;
  for (size_t pos = 0; pos < log.size();) {
    auto front = proto::record_front(as_bytes(log.substr(pos)));
    if (front && front->is_blank() && front->size != 0) {
      pos += front->size;
      continue;
    }
    auto v = proto::parse_record(as_bytes(log.substr(pos)));
    if (!v) break;
    uint64_t id = v->body.size() < id_bytes ? UINT64_MAX : load_be<uint64_t>(v->body.data());
    if (id < messages.size()) {
      messages[id].gone = false;
      messages[id].acknowledged = true;
      messages[id].properties = v->properties;
      messages[id].physical_offset = v->physical_offset;
      messages[id].queue_offset = v->queue_offset;
    }
    pos += v->size;
  }
  ends.clear();
  for (const QueueDump& q : dump.queues) ends[{q.topic, q.queue_id}] = q.max_offset;
  flushed_floor = dump.max_physical;
  since = Since::nothing;
  garbage = false;
}

std::vector<const Message*> messages_in(const Model& model, std::string_view records, Errors& errors) {
  std::vector<const Message*> out;
  while (!records.empty()) {
    auto v = proto::parse_record(as_bytes(records), proto::CrcCheck::verify);
    if (!v) {
      errors.push_back("a consumer got bytes that are no record: " + to_string(v.error()));
      break;
    }
    const Message* m = find_message(model, *v, errors);
    if (m != nullptr) out.push_back(m);
    records.remove_prefix(v->size);
  }
  return out;
}

}  // namespace rmq::sim
