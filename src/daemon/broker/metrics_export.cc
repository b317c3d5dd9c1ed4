#include "daemon/broker/metrics_export.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "daemon/broker/broker.h"
#include "proto/record.h"

namespace rmq::broker {

namespace {

constexpr size_t due_counted_max = 100'000;
constexpr std::string_view remoting = "remoting";
constexpr MetricLabel storage_type{"storage_type", "local"}, storage_medium{"storage_medium", "disk"};

std::string_view text_of(bool b) {
  return b ? "true" : "false";
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 32);
  return out;
}

// The tables may change while a page is being sent, so it is made of a copy; sorted, so that the same series
// are shown each time.
template <class V>
std::vector<std::pair<std::string, V>> sorted_copy(const TextMap<V>& table) {
  std::vector<std::pair<std::string, V>> out(table.begin(), table.end());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace

std::string BrokerExport::labels(const BrokerConfig& c) {
  std::string out = MetricsPage::labels_text(
      {{"cluster", c.brokerClusterName}, {"node_id", c.brokerName}, {"node_type", "broker"}});
  for (const auto& [name, value] : metric_labels_of(c.metricsLabel).value_or(LabelList{}))
    out += ',' + MetricsPage::labels_text({{name, value}});
  return out;
}

// ---- topics and groups -------------------------------------------------------------------------------

Task<void> BrokerExport::write_traffic(MetricsPage& page) {
  const auto topics = sorted_copy(broker_.metrics.topics());
  enum class What : uint8_t { messages, bytes, size };
  static constexpr std::array all{What::messages, What::bytes, What::size};
  for (What what : all) {
    page.family(what == What::messages ? metric::messages_in
                : what == What::bytes  ? metric::throughput_in
                                       : metric::message_size);
    for (const auto& [topic, t] : topics) {
      const std::string_view system = text_of(proto::is_system_topic(topic));
      for (size_t i = 0; i < message_types; i++) {
        if (t.in[i].messages == 0) continue;
        const std::string_view type = name_of(static_cast<MessageType>(i));
        const MetricLabels labels{{"topic", topic}, {"message_type", type}, {"is_system", system}};
        if (what == What::size)
          page.histogram(labels, BrokerMetrics::size_bounds, t.sizes[i]);
        else
          page.sample(labels, what == What::messages ? t.in[i].messages : t.in[i].bytes);
      }
      if (page.is_full()) co_await page.flush();
    }
  }
}

static void write_out(MetricsPage& page, std::string_view pair, const BrokerMetrics::OfPair& p,
                      uint64_t Traffic::* what) {
  const std::string_view topic = BrokerMetrics::topic_of(pair), group = BrokerMetrics::group_of(pair);
  const std::string_view system = text_of(proto::is_system_topic(topic) || proto::is_system_group(group));
  const MetricLabel of_topic{"topic", topic}, of_group{"consumer_group", group},
      is_system{"is_system", system};
  if (p.pulled.messages != 0) page.sample({of_topic, of_group, is_system}, p.pulled.*what);
  for (size_t retry = 0; retry < p.popped.size(); retry++)
    if (p.popped[retry].messages != 0)
      page.sample({of_topic, of_group, is_system, {"is_retry", text_of(retry == 1)}}, p.popped[retry].*what);
}

Task<void> BrokerExport::write_pairs(MetricsPage& page) {
  const auto pairs = sorted_copy(broker_.metrics.pairs());
  static constexpr std::array<uint64_t Traffic::*, 2> both{&Traffic::messages, &Traffic::bytes};
  for (auto what : both) {
    page.family(what == &Traffic::messages ? metric::messages_out : metric::throughput_out);
    for (const auto& [pair, p] : pairs) {
      write_out(page, pair, p, what);
      if (page.is_full()) co_await page.flush();
    }
  }
  page.family(metric::send_to_dlq);
  for (const auto& [pair, p] : pairs) {
    const std::string_view topic = BrokerMetrics::topic_of(pair), group = BrokerMetrics::group_of(pair);
    const bool system = proto::is_system_topic(topic) || proto::is_system_group(group);
    if (p.dead_letters != 0)
      page.sample({{"consumer_group", group}, {"topic", topic}, {"is_system", text_of(system)}},
                  p.dead_letters);
    if (page.is_full()) co_await page.flush();
  }
  page.family(metric::pop_revive_retry);
  for (const auto& [pair, p] : pairs) {
    if (p.revived != 0)
      page.sample({{"consumer_group", BrokerMetrics::group_of(pair)},
                   {"topic", BrokerMetrics::topic_of(pair)},
                   {"put_status", "PUT_OK"}},
                  p.revived);
    if (page.is_full()) co_await page.flush();
  }
}

Task<void> BrokerExport::write_transactions(MetricsPage& page) {
  const auto topics = sorted_copy(broker_.metrics.topics());
  page.family(metric::commit_messages);
  for (const auto& [topic, t] : topics)
    if (t.commits != 0) page.sample({{"topic", topic}}, t.commits);
  page.family(metric::rollback_messages);
  for (const auto& [topic, t] : topics)
    if (t.rollbacks != 0) page.sample({{"topic", topic}}, t.rollbacks);
  page.family(metric::finish_latency);
  for (const auto& [topic, t] : topics)
    if (t.commits != 0) page.histogram({{"topic", topic}}, BrokerMetrics::finish_bounds_s, t.finish);
  if (page.is_full()) co_await page.flush();
  page.family(metric::half_messages);
  for (const auto& [topic, open] : sorted_copy(broker_.transactions.open_by_topic()))
    if (broker_.topics.find(topic) != nullptr) page.sample({{"topic", topic}}, open);
  if (page.is_full()) co_await page.flush();
}

Task<void> BrokerExport::write_timers(MetricsPage& page) {
  const TimerService::Stats s = broker_.timers.stats();
  const MetricLabels labels{storage_type, storage_medium};
  const std::pair<const MetricFamily*, int64_t> gauges[] = {
      {&metric::timer_enqueue_lag, s.unread},
      {&metric::timer_enqueue_latency, 0},
      {&metric::timer_dequeue_lag, static_cast<int64_t>(s.due)},
      {&metric::timer_dequeue_latency, s.late_ms}};
  for (const auto& [family, value] : gauges) {
    page.family(*family);
    page.sample(labels, value);
  }
  page.family(metric::timing_messages);
  for (const auto& [topic, count] : broker_.timers.counted_by_topic().timing_count)
    if (broker_.topics.find(topic) != nullptr)
      page.sample({storage_type, storage_medium, {"topic", topic}}, count.count);
  const auto topics = sorted_copy(broker_.metrics.topics());
  page.family(metric::timer_enqueue);
  for (const auto& [topic, t] : topics)
    if (t.timers_taken != 0) page.sample({storage_type, storage_medium, {"topic", topic}}, t.timers_taken);
  page.family(metric::timer_dequeue);
  for (const auto& [topic, t] : topics)
    if (t.timers_delivered != 0)
      page.sample({storage_type, storage_medium, {"topic", topic}}, t.timers_delivered);
  page.family(metric::delay_latency);
  for (const auto& [topic, t] : topics)
    if (t.timers_taken != 0)
      page.histogram({storage_type, storage_medium, {"topic", topic}}, BrokerMetrics::delay_bounds_s,
                     t.delays);
  page.only(metric::timers_in_memory, uint64_t{s.in_memory});
  page.only(metric::timers_recalled, s.recalled);
  if (page.is_full()) co_await page.flush();
}

Task<void> BrokerExport::write_lag(MetricsPage& page) {
  const std::vector<ConsumerLag> all = co_await lag_.all();
  const std::pair<const MetricFamily*, int64_t ConsumerLag::*> families[] = {
      {&metric::lag_messages, &ConsumerLag::lag},
      {&metric::lag_latency, &ConsumerLag::latency_ms},
      {&metric::inflight_messages, &ConsumerLag::inflight},
      {&metric::queueing_latency, &ConsumerLag::queueing_ms},
      {&metric::ready_messages, &ConsumerLag::ready}};
  for (const auto& [family, value] : families) {
    page.family(*family);
    for (const ConsumerLag& l : all) {
      const bool system = proto::is_system_topic(l.topic) || proto::is_system_group(l.group);
      if (l.*value < 0)
        page.leave_out();
      else
        page.sample({{"consumer_group", l.group},
                     {"topic", l.topic},
                     {"is_retry", text_of(l.retry)},
                     {"is_system", text_of(system)}},
                    l.*value);
      if (page.is_full()) co_await page.flush();
    }
  }
  page.only(metric::offline_lags_left_out, uint64_t{lag_.offline_left_out()});
}

// Connections by language and version; numbers, since there may be very many of them.
using Clients = std::map<std::pair<proto::LanguageCode, int32_t>, uint64_t>;

static void count_clients(Clients& into, const std::map<Connection*, ClientChannel>& channels) {
  for (const auto& [connection, channel] : channels) into[{channel.language, channel.version}]++;
}

Task<void> BrokerExport::write_connections(MetricsPage& page) {
  Clients producers;
  for (const auto& [group, channels] : broker_.clients.all_producers()) count_clients(producers, channels);
  page.family(metric::producer_connections);
  for (const auto& [client, count] : producers)
    page.sample({{"language", lower(proto::name_of(client.first))},
                 {"version", lower(proto::version_name(client.second))},
                 {"protocol_type", remoting}},
                count);
  struct Group {
    size_t mode = 0;
    Clients clients;
  };
  std::map<std::string, Group> groups;  // sorted, and a copy: it may change while the page is sent
  for (const auto& [name, info] : broker_.clients.all_consumers()) {
    Group& g = groups[name];
    g.mode = std::min<size_t>(static_cast<size_t>(info.consume_type), 2);
    count_clients(g.clients, info.channels);
  }
  static constexpr std::array<std::string_view, 3> modes{"pull", "push", "pop"};
  page.family(metric::consumer_connections);
  for (const auto& [name, group] : groups) {
    for (const auto& [client, count] : group.clients)
      page.sample({{"consumer_group", name},
                   {"language", lower(proto::name_of(client.first))},
                   {"version", lower(proto::version_name(client.second))},
                   {"consume_mode", modes[group.mode]},
                   {"protocol_type", remoting},
                   {"is_system", text_of(proto::is_system_group(name))}},
                  count);
    if (page.is_full()) co_await page.flush();
  }
}

// ---- requests ----------------------------------------------------------------------------------------

static std::string code_name(int32_t code, std::string_view name) {
  return !name.empty() ? lower(name) : code < 0 ? "unknown" : std::to_string(code);
}

Task<void> BrokerExport::write_rpc(MetricsPage& page) {
  std::vector<Rpc> rpcs;
  for (const auto& [key, rpc] : broker_.metrics.rpcs()) rpcs.push_back(rpc);
  const auto key_of = [](const Rpc& r) {
    return std::tuple(r.request_code, r.response_code, r.held, r.oneway, r.unwritten);
  };
  std::sort(rpcs.begin(), rpcs.end(), [&](const Rpc& a, const Rpc& b) { return key_of(a) < key_of(b); });
  std::map<std::string, uint64_t> refused;
  page.family(metric::rpc_latency);
  for (const Rpc& r : rpcs) {
    const auto request = static_cast<proto::RequestCode>(r.request_code);
    const auto response = static_cast<proto::ResponseCode>(r.response_code);
    const std::string response_name = code_name(r.response_code, proto::name_of(response));
    if (is_refusal(response)) refused[response_name] += r.ms.count();
    page.histogram({{"request_code", code_name(r.request_code, proto::name_of(request))},
                    {"response_code", response_name},
                    {"is_long_polling", text_of(r.held)},
                    {"result", r.oneway      ? "oneway"
                               : r.unwritten ? "write_channel_failed"
                                             : "success"},
                    {"protocol_type", remoting}},
                   BrokerMetrics::rpc_bounds_ms, r.ms);
    if (page.is_full()) co_await page.flush();
  }
  page.family(metric::refused);
  for (const auto& [reason, count] : refused) page.sample({{"reason", reason}}, count);
}

// ---- the broker and its store ------------------------------------------------------------------------

void BrokerExport::write_broker(MetricsPage& page) const {
  const Broker& b = broker_;
  page.family(metric::processor_watermark);
  for (size_t i = 0; i < processors; i++) {
    const auto p = static_cast<Processor>(i);
    page.sample({{"processor", name_of(p)}}, b.metrics.at_work(p));
  }
  page.only(metric::broker_permission, b.config.brokerPermission);
  page.only(metric::topic_number, uint64_t{b.topics.all().size()});
  page.only(metric::group_number, uint64_t{b.groups.all().size()});
  const BrokerMetrics::Creation& c = b.metrics.creation();
  page.family(metric::topic_create);
  for (size_t success : {0, 1})
    for (size_t system : {0, 1})
      if (c.topic[success][system].count() != 0)
        page.histogram({{"invocation_status", success == 1 ? "success" : "failure"},
                        {"is_system", text_of(system == 1)}},
                       BrokerMetrics::create_bounds_ms, c.topic[success][system]);
  page.family(metric::group_create);
  for (size_t success : {0, 1})
    if (c.group[success].count() != 0)
      page.histogram({{"invocation_status", success == 1 ? "success" : "failure"}},
                     BrokerMetrics::create_bounds_ms, c.group[success]);
}

void BrokerExport::write_pop(MetricsPage& page) const {
  const PopTable& table = broker_.pop.table;
  const int64_t now_ms = broker_.due_clock.wall_ms();
  const PopCheckpoint* first = table.first_due();
  page.only(metric::pop_offset_buffer, uint64_t{table.queues()});
  page.only(metric::pop_checkpoint_buffer, uint64_t{table.checkpoints()});
  page.family(metric::pop_revive_lag);
  page.sample({{"queue_id", "0"}}, uint64_t{table.due_count(now_ms, due_counted_max)});
  page.family(metric::pop_revive_latency);
  page.sample({{"queue_id", "0"}}, first == nullptr ? 0 : std::max<int64_t>(0, now_ms - first->visible_ms));
}

// Of buckets by powers of two those from 2^first to 2^last; what is larger is in the last one.
template <size_t N>
static void write_powers(MetricsPage& page, const MetricFamily& family,
                         const std::array<uint64_t, N>& buckets, int first, int last, double unit,
                         double sum) {
  std::vector<double> bounds;
  std::vector<uint64_t> counts(1);
  for (int i = 0; i < static_cast<int>(N); i++) {
    counts.back() += buckets[static_cast<size_t>(i)];
    if (i < first || i > last) continue;
    bounds.push_back(static_cast<double>(uint64_t{1} << i) * unit);
    counts.push_back(0);
  }
  page.family(family);
  page.histogram({}, bounds, counts, sum);
}

void BrokerExport::write_log(MetricsPage& page) const {
  constexpr double us = 1e-6;
  const store::StoreStats& s = broker_.store.stats();
  write_powers(page, metric::flush_latency, s.log_write.buckets, 5, 24, us,
               static_cast<double>(s.log_write.sum_us) * us);
  write_powers(page, metric::batch_messages, s.batch_messages.buckets, 0, 14, 1,
               static_cast<double>(s.batch_messages.sum));
  write_powers(page, metric::batch_bytes, s.batch_bytes.buckets, 8, 24, 1,
               static_cast<double>(s.batch_bytes.sum));
  page.only(metric::log_syncs, s.log_syncs);
  page.only(metric::log_write_bytes, s.log_write_bytes);
  page.only(metric::log_reads, s.log_reads);
  page.only(metric::log_read_bytes, s.log_read_bytes);
  page.only(metric::cache_hits, s.records_in_memory);
  page.only(metric::cache_misses, s.records_read);
  page.only(metric::puts_waited, s.puts_waited);
  page.only(metric::log_bytes, broker_.store.max_physical_offset() - broker_.store.min_physical_offset());
  page.only(metric::store_queues, s.queues);
  page.only(metric::unwritten_units, s.unwritten_units);
  page.only(metric::index_behind, s.index_behind_bytes);
  page.family(metric::files_deleted);
  page.sample({{"kind", "commitlog"}}, s.log_files_deleted);
  page.sample({{"kind", "consumequeue"}}, s.queue_files_deleted);
  page.sample({{"kind", "index"}}, s.index_files_deleted);
  page.family(metric::store_failures);
  page.sample({{"what", "index"}}, s.index_failures);
  page.sample({{"what", "delete"}}, s.delete_failures);
  page.sample({{"what", "compaction"}}, s.compaction_failures);
  page.only(metric::compaction_copied, s.compaction_copied_messages);
  page.only(metric::compaction_removed, s.compaction_removed_messages);
  page.only(metric::recovery_duration, static_cast<double>(s.recovery.duration_ms) / 1000);
  page.only(metric::recovered_records, s.recovery.records);
}

void BrokerExport::write_memory(MetricsPage& page) const {
  const BrokerConfig& c = broker_.config;
  const NetMemory& net = broker_.net_memory;
  page.family(metric::memory_limit);
  page.sample({{"part", "process"}}, c.memoryLimit);
  page.sample({{"part", "log"}}, broker_.store.options().memory_bytes);
  page.sample({{"part", "requests"}}, net.limit() / 2);
  page.sample({{"part", "answers"}}, net.limit() / 2);
  page.sample({{"part", "deduplication"}}, c.dedupMemoryBytes);
  page.family(metric::memory_used);
  page.sample({{"part", "log"}}, broker_.store.stats().memory_bytes);
  page.sample({{"part", "requests"}}, net.request_bytes());
  page.sample({{"part", "answers"}}, net.unsent_bytes());
  page.sample({{"part", "timers"}}, uint64_t{broker_.timers.stats().memory_bytes});
  page.sample({{"part", "deduplication"}}, uint64_t{broker_.dedup.known() * Deduplication::bytes_per_key});
}

Task<void> BrokerExport::write_store(MetricsPage& page) {
  const store::MessageStore& s = broker_.store;
  const MetricLabels labels{storage_type, storage_medium};
  page.family(metric::flush_behind);
  page.sample(labels, s.max_physical_offset() - s.flushed_offset());
  page.family(metric::dispatch_behind);
  page.sample(labels, s.max_physical_offset() - s.confirm_offset());
  auto first = co_await broker_.store.record_at(s.min_physical_offset());
  if (first) {
    page.family(metric::reserve_time);
    page.sample({storage_type, storage_medium},
                std::max<int64_t>(0, broker_.wall_ms() - proto::record_store_timestamp(first->bytes())));
  }
  std::set<std::string> directories{broker_.config.storePathRootDir};
  if (!broker_.config.storePathCommitLog.empty()) directories.insert(broker_.config.storePathCommitLog);
  std::map<std::string, DiskSpace> spaces;
  for (const std::string& d : directories) {
    auto space = co_await broker_.disk.space(d);
    if (space) spaces[d] = *space;
  }
  if (auto root = spaces.find(broker_.config.storePathRootDir); root != spaces.end()) {
    page.family(metric::storage_size);
    page.sample({storage_type, storage_medium}, root->second.total_bytes - root->second.free_bytes);
  }
  page.family(metric::disk_total);
  for (const auto& [d, space] : spaces) page.sample({{"directory", d}}, space.total_bytes);
  page.family(metric::disk_free);
  for (const auto& [d, space] : spaces) page.sample({{"directory", d}}, space.free_bytes);
  page.only(metric::disk_reserved, broker_.config.diskReservedBytes);
  page.only(metric::takes_messages, s.writable() && !s.disk_full() ? 1 : 0);
}

void BrokerExport::write_services(MetricsPage& page) const {
  const Broker& b = broker_;
  page.only(metric::waiting_pulls, uint64_t{b.long_polling.waiting()});
  page.only(metric::waiting_pops, uint64_t{b.pop.polling.waiting()} + b.pop.notifications.waiting());
  page.family(metric::unconsumed_deleted);
  for (const auto& [group, count] : b.discard.lost_by_group())
    page.sample({{"consumer_group", group}}, count);
  page.only(metric::dedup_known, uint64_t{b.dedup.known()});
  page.only(metric::dedup_repeated, b.dedup.answered());
  page.only(metric::dedup_forgotten, b.dedup.forgotten());
  page.only(metric::transaction_checks, b.transactions.checks());
  page.only(metric::transactions_given_up, b.transactions.given_up());
  page.family(metric::name_servers);
  page.sample({{"state", "reached"}}, uint64_t{b.registration.reached()});
  page.sample({{"state", "unreachable"}}, uint64_t{b.registration.servers() - b.registration.reached()});
}

Task<void> BrokerExport::write(MetricsPage& page) {
  write_broker(page);
  co_await write_traffic(page);
  co_await write_pairs(page);
  co_await write_connections(page);
  co_await write_lag(page);
  co_await write_transactions(page);
  co_await write_timers(page);
  co_await write_rpc(page);
  co_await write_store(page);
  write_pop(page);
  write_log(page);
  write_memory(page);
  write_services(page);
}

}  // namespace rmq::broker
