#include "daemon/namesrv/route_table.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/time.h"
#include "proto/codes.h"

namespace rmq::namesrv {

using proto::DataVersion;

namespace {
constexpr size_t brokers_max = 20'000;
constexpr size_t topics_max = 2'000'000;
constexpr size_t answers_bytes_max = 64u << 20;      // of encoded answers that are kept
constexpr size_t deleted_per_broker_max = 65'536;    // then the record of deletions starts anew
constexpr int64_t deleted_kept_ns = 600 * ns_per_s;  // longer than a registration can be under way
}  // namespace

bool is_older(const DataVersion& a, const DataVersion& b) {
  if (a == b) return false;
  if (a.state_version != b.state_version) return a.state_version < b.state_version;
  return a.counter <= b.counter && a.timestamp_ms <= b.timestamp_ms;
}

// ---- finding -----------------------------------------------------------------------------------------

std::string RouteTable::live_key(std::string_view cluster, std::string_view addr) {
  std::string key(cluster);
  key += '\n';
  key += addr;
  return key;
}

RouteTable::Live* RouteTable::find_live(std::string_view cluster, std::string_view addr) {
  auto it = live_.find(live_key(cluster, addr));
  return it == live_.end() ? nullptr : &it->second;
}
const RouteTable::Live* RouteTable::find_live(std::string_view cluster, std::string_view addr) const {
  return const_cast<RouteTable*>(this)->find_live(cluster, addr);
}

RouteTable::BrokerSet* RouteTable::find_set(std::string_view broker_name) const {
  auto it = sets_.find(broker_name);
  return it == sets_.end() ? nullptr : it->second.get();
}

RouteTable::Topic* RouteTable::find_topic(std::string_view name) const {
  auto it = topics_.find(name);
  return it == topics_.end() ? nullptr : it->second.get();
}

static auto entry_position(auto& queues, std::string_view broker_name) {
  return std::lower_bound(
      queues.begin(), queues.end(), broker_name,
      [](const auto& e, std::string_view name) { return e.set->data.broker_name < name; });
}

RouteTable::QueueEntry* RouteTable::find_entry(Topic& t, const BrokerSet& set) {
  auto it = entry_position(t.queues, set.data.broker_name);
  return it != t.queues.end() && it->set == &set ? &*it : nullptr;
}

// ---- topics and entries ------------------------------------------------------------------------------

RouteTable::Topic& RouteTable::make_topic(std::string_view name) {
  if (Topic* t = find_topic(name)) return *t;
  auto topic = std::make_unique<Topic>();
  topic->name = std::string(name);
  Topic& t = *topic;
  topics_.emplace(t.name, std::move(topic));
  return t;
}

RouteTable::QueueEntry& RouteTable::make_entry(Topic& t, BrokerSet& set) {
  if (QueueEntry* e = find_entry(t, set)) return *e;
  set.topics.insert(&t);
  return *t.queues.insert(entry_position(t.queues, set.data.broker_name),
                          QueueEntry{&set, 0, 0, 0, 0, set.round, {}, {}});
}

void RouteTable::remove_entry(Topic& t, BrokerSet& set) {
  changed(t);
  std::erase_if(t.queues, [&](const QueueEntry& e) { return e.set == &set; });
  set.topics.erase(&t);
  if (!t.queues.empty()) return;
  topics_.erase(topics_.find(t.name));
}

void RouteTable::remove_set(BrokerSet& set) {
  std::vector<Topic*> of_set(set.topics.begin(), set.topics.end());
  for (Topic* t : of_set) remove_entry(*t, set);
  for (auto it = clusters_.begin(); it != clusters_.end();) {
    it->second.erase(set.data.broker_name);
    it = it->second.empty() ? clusters_.erase(it) : std::next(it);
  }
  sets_.erase(sets_.find(set.data.broker_name));
}

void RouteTable::changed(Topic& t) {
  if (!t.is_cached) return;
  for (std::string& a : t.answers) {
    cached_bytes_ -= a.size();
    std::string().swap(a);
  }
  cached_.erase(t.cached_at);
  t.is_cached = false;
}

void RouteTable::changed(BrokerSet& set) {
  for (Topic* t : set.topics) changed(*t);
}

void RouteTable::remember_answer(Topic& t, size_t added_bytes) {
  cached_bytes_ += added_bytes;
  if (!t.is_cached) t.cached_at = cached_.insert(cached_.end(), &t);
  t.is_cached = true;
  while (cached_bytes_ > answers_bytes_max && cached_.front() != &t) changed(*cached_.front());
}

void RouteTable::forget_answers() {
  while (!cached_.empty()) changed(*cached_.front());
}

void RouteTable::forget_answer(std::string_view topic) {
  if (Topic* t = find_topic(topic)) changed(*t);
}

void RouteTable::set_options(RouteOptions o) {
  options_ = o;
  forget_answers();
}

// ---- registration ------------------------------------------------------------------------------------

// Another address holds the id, and its broker was promoted later than the one that registers.
bool RouteTable::id_is_taken(const BrokerSet& set, const Registration& r, const DataVersion& version) const {
  auto holder = set.data.broker_addrs.find(r.broker_id);
  if (holder == set.data.broker_addrs.end() || holder->second == r.broker_addr) return false;
  const Live* live = find_live(r.cluster, holder->second);
  return live != nullptr && live->version.state_version > version.state_version;
}

// It builds upon something that is not here.
bool RouteTable::is_incomplete(const Registration& r, const Live* live, const BrokerSet* set) const {
  if (r.extent == Extent::whole || r.extent == Extent::first_part) return false;
  if (live == nullptr || set == nullptr) return true;
  const auto id = set->data.broker_addrs.find(r.broker_id);
  if (id == set->data.broker_addrs.end() || id->second != r.broker_addr) return true;
  if (r.extent == Extent::difference) return live->in_parts || live->version != r.base;
  return !live->in_parts;
}

RouteTable::Registered RouteTable::register_broker(const Registration& r,
                                                   const proto::RegisterBrokerBody& body, int64_t now_ns) {
  const proto::TopicConfigSerializeWrapper& topics = body.topic_config_wrapper;
  const DataVersion& version = topics.data_version;
  Registered out;
  const Live* live = find_live(r.cluster, r.broker_addr);
  if (live != nullptr && live->broker_name != r.broker_name) {  // it was given another name
    unregister_broker(r.cluster, std::string(live->broker_name), r.broker_addr);
    live = nullptr;
  }
  BrokerSet* set = find_set(r.broker_name);
  if (set != nullptr && id_is_taken(*set, r, version)) {
    forget_live(r.cluster, r.broker_addr);
    out.outcome = Registered::Outcome::ignored;
    return out;
  }
  if (is_incomplete(r, live, set)) {
    out.outcome = Registered::Outcome::incomplete;
    return out;
  }
  const bool has_id = set != nullptr && set->data.broker_addrs.contains(r.broker_id);
  if ((!has_id && topics.topic_config_table.size() == 1) ||
      (live == nullptr && live_.size() >= brokers_max)) {
    out.outcome = Registered::Outcome::refused;
    return out;
  }
  if (set == nullptr) {
    auto made = std::make_unique<BrokerSet>();
    made->data.cluster = r.cluster;
    made->data.broker_name = r.broker_name;
    set = made.get();
    sets_.emplace(set->data.broker_name, std::move(made));
  }
  clusters_[std::string(r.cluster)].emplace(r.broker_name);

  auto& addrs = set->data.broker_addrs;
  const int64_t min_before = addrs.empty() ? 0 : addrs.begin()->first;
  const proto::BrokerData before = set->data;
  std::erase_if(addrs, [&](const auto& a) { return a.second == r.broker_addr && a.first != r.broker_id; });
  addrs[r.broker_id] = r.broker_addr;
  set->data.enable_acting_master = r.enable_acting_master.value_or(false);
  set->data.zone_name.reset();
  if (r.zone_name) set->data.zone_name = std::string(*r.zone_name);
  if (!(set->data == before)) changed(*set);

  out.is_new = !has_id || live == nullptr;
  out.min_id_changed = r.broker_id < min_before;
  const bool is_prime_slave =
      r.enable_acting_master && r.broker_id != 0 && r.broker_id == addrs.begin()->first;
  const bool is_new = out.is_new || (r.extent != Extent::difference && live != nullptr && live->is_new);
  if (r.broker_id == 0 || is_prime_slave) take_topics(r, *set, is_new, body);

  Live& l = live_[live_key(r.cluster, r.broker_addr)];
  l.in_parts = r.extent == Extent::first_part || r.extent == Extent::next_part;
  l.is_new = is_new && l.in_parts;
  if (out.is_new || !is_older(version, l.version)) l.version = version;
  take_header(l, r, now_ns);
  if (body.filter_server_list) {
    std::optional<std::vector<std::string>> list = body.filter_server_list;
    if (list->empty()) list.reset();
    filter_server_lists_ += (list ? 1 : 0) - (l.filter_servers ? 1 : 0);
    if (l.filter_servers != list) changed(*set);
    l.filter_servers = std::move(list);
  }
  fill_master(r, *set, out);
  return out;
}

void RouteTable::take_header(Live& l, const Registration& r, int64_t now_ns) {
  l.cluster = r.cluster;
  l.broker_name = r.broker_name;
  l.broker_addr = r.broker_addr;
  l.ha_server_addr = r.ha_server_addr;
  l.broker_id = r.broker_id;
  l.last_update_ns = now_ns;
  l.timeout_ns = r.timeout_ns;
  l.channel = r.channel;
  l.fingerprint = 0;
}

void RouteTable::fill_master(const Registration& r, const BrokerSet& set, Registered& out) const {
  if (r.broker_id == 0) return;
  auto master = set.data.broker_addrs.find(0);
  if (master == set.data.broker_addrs.end()) return;
  const Live* live = find_live(r.cluster, master->second);
  if (live == nullptr) return;
  out.master_addr = master->second;
  out.ha_server_addr = live->ha_server_addr;
}

void RouteTable::take_topics(const Registration& r, BrokerSet& set, bool force,
                             const proto::RegisterBrokerBody& body) {
  const proto::TopicConfigSerializeWrapper& topics = body.topic_config_wrapper;
  const DataVersion& version = topics.data_version;
  const bool is_stale = !force && is_older(version, set.newest);
  const bool has_mappings = topics.topic_queue_mapping_info_map.size() > 2;
  if (r.extent == Extent::whole || r.extent == Extent::first_part) set.round++;
  const bool read_only = r.broker_id != 0 && set.data.enable_acting_master;
  for (const auto& [name, config] : topics.topic_config_table)
    take_topic(config, read_only ? config.perm & ~proto::perm::write : config.perm, set, force, version);
  if (options_.delete_missing_topics && !has_mappings && !is_stale) remove_missing_topics(r, set, body);
  if (is_stale) return;
  if (has_mappings) take_mappings(set, topics.topic_queue_mapping_info_map);
  set.newest = version;
}

void RouteTable::take_topic(const proto::TopicConfig& c, int32_t perm, BrokerSet& set, bool force,
                            const DataVersion& version) {
  if (c.topic_name.empty()) return;
  Topic* t = find_topic(c.topic_name);
  QueueEntry* e = t == nullptr ? nullptr : find_entry(*t, set);
  if (e != nullptr) e->round = set.round;
  if (e != nullptr && !force && (version == e->version || is_older(version, e->version))) return;
  const bool is_new = e == nullptr;
  if (is_new) {
    if (auto gone = set.deleted.find(c.topic_name); gone != set.deleted.end()) {
      const DataVersion& at = gone->second.version;
      if (!force && (version == at || is_older(version, at))) return;  // a snapshot from before the deletion
      set.deleted.erase(gone);
    }
    if (t == nullptr && topics_.size() >= topics_max) return;
    if (t == nullptr) t = &make_topic(c.topic_name);
    e = &make_entry(*t, set);
  }
  e->version = version;
  auto now = std::tuple(c.read_queue_nums, c.write_queue_nums, perm, c.topic_sys_flag);
  auto held = std::tie(e->read_queue_nums, e->write_queue_nums, e->perm, e->topic_sys_flag);
  if (!is_new && held == now) return;
  held = now;
  changed(*t);
}

void RouteTable::take_mappings(BrokerSet& set, std::string_view mappings) {
  auto json = proto::normalise_fastjson(mappings);
  if (!json) return;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(*json).get(object) != simdjson::SUCCESS) return;
  for (auto [name, info] : object) {
    Topic* t = find_topic(name);
    QueueEntry* e = t == nullptr ? nullptr : find_entry(*t, set);
    if (e == nullptr) continue;
    std::string text = simdjson::minify(info);
    if (e->mapping && *e->mapping == text) continue;
    e->mapping = std::make_unique<std::string>(std::move(text));
    changed(*t);
  }
}

void RouteTable::remove_missing_topics(const Registration& r, BrokerSet& set,
                                       const proto::RegisterBrokerBody& body) {
  std::vector<Topic*> missing;
  if (r.extent == Extent::difference) {
    for (const std::string& name : body.deleted_topics)
      if (Topic* t = find_topic(name); t != nullptr && find_entry(*t, set) != nullptr) missing.push_back(t);
  } else if (r.extent == Extent::last_part ||
             // A table of one topic is news about that topic, not the whole.
             (r.extent == Extent::whole && body.topic_config_wrapper.topic_config_table.size() > 1)) {
    for (Topic* t : set.topics)
      if (find_entry(*t, set)->round != set.round) missing.push_back(t);
  }
  for (Topic* t : missing) remove_entry(*t, set);
}

std::optional<RouteTable::Registered> RouteTable::refresh_if_same(const Registration& r, uint64_t fingerprint,
                                                                  int64_t now_ns) {
  Live* l = find_live(r.cluster, r.broker_addr);
  if (l == nullptr || l->channel != r.channel || l->fingerprint != fingerprint) return std::nullopt;
  const BrokerSet* set = find_set(r.broker_name);
  if (set == nullptr) return std::nullopt;
  const auto& addrs = set->data.broker_addrs;
  auto id = addrs.find(r.broker_id);
  if (id == addrs.end() || id->second != r.broker_addr) return std::nullopt;
  // A slave whose turn it is now gives topics that were not taken from it before.
  if (r.broker_id != 0 && id == addrs.begin()) return std::nullopt;
  l->last_update_ns = now_ns;
  Registered out;
  fill_master(r, *set, out);
  return out;
}

void RouteTable::set_fingerprint(std::string_view cluster, std::string_view addr, uint64_t fingerprint) {
  if (Live* l = find_live(cluster, addr)) l->fingerprint = fingerprint;
}

void RouteTable::forget_live(std::string_view cluster, std::string_view addr) {
  auto it = live_.find(live_key(cluster, addr));
  if (it == live_.end()) return;
  if (it->second.filter_servers) filter_server_lists_--;
  live_.erase(it);
}

// ---- leaving -----------------------------------------------------------------------------------------

std::optional<RouteTable::Gone> RouteTable::unregister_broker(std::string_view cluster,
                                                              std::string_view broker_name,
                                                              std::string_view broker_addr) {
  Gone gone{std::string(cluster), std::string(broker_name), std::string(broker_addr)};
  bool was_known = false;
  if (const Live* l = find_live(cluster, broker_addr)) {
    gone.channel = l->channel;
    gone.broker_id = l->broker_id;
    forget_live(cluster, broker_addr);
    was_known = true;
  }
  BrokerSet* set = find_set(gone.broker_name);
  if (set == nullptr) return was_known ? std::optional(gone) : std::nullopt;
  auto& addrs = set->data.broker_addrs;
  const int64_t min_before = addrs.empty() ? 0 : addrs.begin()->first;
  if (std::erase_if(addrs, [&](const auto& a) { return a.second == gone.broker_addr; }) == 0)
    return was_known ? std::optional(gone) : std::nullopt;
  if (addrs.empty()) {
    remove_set(*set);
    return gone;
  }
  gone.min_id_changed = addrs.begin()->first != min_before;
  gone.enable_acting_master = set->data.enable_acting_master;
  if (set->data.enable_acting_master && !addrs.contains(0)) clear_write_bit(*set);
  changed(*set);
  return gone;
}

// The data came from a master that is gone: its slaves cannot be written.
void RouteTable::clear_write_bit(BrokerSet& set) {
  for (Topic* t : set.topics) find_entry(*t, set)->perm &= ~proto::perm::write;
}

std::vector<RouteTable::Gone> RouteTable::channel_closed(Channel channel) {
  std::vector<Gone> out;
  std::vector<std::array<std::string, 3>> found;
  for (const auto& [key, l] : live_)
    if (l.channel == channel) found.push_back({l.cluster, l.broker_name, l.broker_addr});
  for (const auto& [cluster, name, addr] : found)
    if (auto gone = unregister_broker(cluster, name, addr)) out.push_back(std::move(*gone));
  return out;
}

std::vector<RouteTable::Gone> RouteTable::expire(int64_t now_ns) {
  std::vector<Gone> out;
  std::vector<std::array<std::string, 3>> silent;
  for (const auto& [key, l] : live_)
    if (now_ns - l.last_update_ns > l.timeout_ns) silent.push_back({l.cluster, l.broker_name, l.broker_addr});
  for (const auto& [cluster, name, addr] : silent)
    if (auto gone = unregister_broker(cluster, name, addr)) out.push_back(std::move(*gone));
  for (auto& [name, set] : sets_)
    std::erase_if(set->deleted, [&](const auto& d) {
      return now_ns - d.second.at_ns > deleted_kept_ns && is_older(d.second.version, set->newest);
    });
  return out;
}

void RouteTable::heartbeat(std::string_view cluster, std::string_view addr, int64_t now_ns) {
  if (Live* l = find_live(cluster, addr)) l->last_update_ns = now_ns;
}

// ---- changes by administrators -----------------------------------------------------------------------

void RouteTable::register_topic(std::string_view topic, const std::vector<proto::QueueData>& queues) {
  if (topic.empty() || queues.empty()) return;
  if (find_topic(topic) == nullptr) {
    for (const auto& q : queues)
      if (find_set(q.broker_name) == nullptr) return;
  }
  for (const auto& q : queues) {
    BrokerSet* set = find_set(q.broker_name);
    if (set == nullptr) return;
    Topic& t = make_topic(topic);
    QueueEntry& e = make_entry(t, *set);
    e.read_queue_nums = q.read_queue_nums;
    e.write_queue_nums = q.write_queue_nums;
    e.perm = q.perm;
    e.topic_sys_flag = q.topic_sys_flag;
    e.version = set->newest;
    if (auto gone = set->deleted.find(topic); gone != set->deleted.end()) set->deleted.erase(gone);
    changed(t);
  }
}

void RouteTable::delete_topic(std::string_view topic, std::optional<std::string_view> cluster,
                              int64_t now_ns) {
  Topic* t = find_topic(topic);
  if (t == nullptr) return;
  const std::string name(topic);  // `topic` may be the name of what dies here
  std::vector<BrokerSet*> of_topic;
  auto members = cluster && !cluster->empty() ? clusters_.find(*cluster) : clusters_.end();
  if (cluster && !cluster->empty() && members == clusters_.end()) return;
  for (const QueueEntry& e : t->queues)
    if (members == clusters_.end() || members->second.contains(e.set->data.broker_name))
      of_topic.push_back(e.set);
  for (BrokerSet* set : of_topic) {
    if (set->deleted.size() >= deleted_per_broker_max) set->deleted.clear();
    set->deleted.insert_or_assign(name, Deleted{set->newest, now_ns});
    remove_entry(*t, *set);
  }
}

int32_t RouteTable::wipe_write_perm(std::string_view broker_name) {
  BrokerSet* set = find_set(broker_name);
  if (set == nullptr) return 0;
  clear_write_bit(*set);
  changed(*set);
  return static_cast<int32_t>(set->topics.size());
}

int32_t RouteTable::add_write_perm(std::string_view broker_name) {
  BrokerSet* set = find_set(broker_name);
  if (set == nullptr) return 0;
  for (Topic* t : set->topics) find_entry(*t, *set)->perm = proto::perm::read | proto::perm::write;
  changed(*set);
  return static_cast<int32_t>(set->topics.size());
}

}  // namespace rmq::namesrv
