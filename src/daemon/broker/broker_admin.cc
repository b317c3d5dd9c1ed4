// The broker itself: what it is doing (keys of admin.md 4).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "daemon/broker/handlers.h"
#include "proto/bodies_admin.h"
#include "proto/codes.h"
#include "proto/record.h"

namespace rmq::broker {

using proto::ResponseCode;

namespace {

std::string run_time_text(int64_t ms) {
  int64_t s = ms / 1000;
  return fmt::format("[ {} days, {} hours, {} minutes, {} seconds ]", s / 86'400, s / 3'600 % 24, s / 60 % 60,
                     s % 60);
}

// Microseconds below which `share` of the values lie, from the histogram's powers of two.
double percentile_ms(const store::LatencyHistogram& h, double share) {
  uint64_t wanted = static_cast<uint64_t>(std::ceil(static_cast<double>(h.count) * share)), seen = 0;
  for (size_t i = 0; i < h.buckets.size(); i++) {
    seen += h.buckets[i];
    if (seen >= wanted && h.count != 0) return static_cast<double>(uint64_t{1} << i) / 1000.0;
  }
  return 0;
}

void add_disk(std::map<std::string, std::string, std::less<>>& t, const BrokerConfig& c, const DiskSpace& d) {
  double ratio =
      d.total_bytes == 0 ? 0 : 1.0 - static_cast<double>(d.free_bytes) / static_cast<double>(d.total_bytes);
  std::string path = c.storePathCommitLog.empty() ? c.storePathRootDir + "/commitlog" : c.storePathCommitLog;
  t["commitLogDiskRatio"] = t["consumeQueueDiskRatio"] = t["commitLogDiskRatio_" + path] =
      fmt::format("{:.4f}", ratio);
  constexpr double gib = 1024.0 * 1024 * 1024;
  t["commitLogDirCapacity"] =
      fmt::format("Total : {:.1f} GiB, Free : {:.1f} GiB.", static_cast<double>(d.total_bytes) / gib,
                  static_cast<double>(d.free_bytes) / gib);
  t["diskTotalBytes"] = std::to_string(d.total_bytes);
  t["diskFreeBytes"] = std::to_string(d.free_bytes);
}

void add_store(std::map<std::string, std::string, std::less<>>& t, Broker& b) {
  const store::StoreStats& s = b.store.stats();
  t["putMessageTimesTotal"] = std::to_string(std::max<uint64_t>(1, s.puts));
  t["putMessageFailedTimes"] = std::to_string(s.put_failures);
  t["putMessageSizeTotal"] = std::to_string(s.put_bytes);
  t["putMessageAverageSize"] = fmt::format(
      "{:.1f}", s.puts == 0 ? 0.0 : static_cast<double>(s.put_bytes) / static_cast<double>(s.puts));
  const store::LatencyHistogram flush = b.stats.flush.of_the_last_minute(s.log_write);
  t["putLatency99"] = fmt::format("{:.2f}", percentile_ms(flush, 0.99));
  t["putLatency999"] = fmt::format("{:.2f}", percentile_ms(flush, 0.999));
  t["commitLogMinOffset"] = std::to_string(b.store.min_physical_offset());
  t["commitLogMaxOffset"] = std::to_string(b.store.max_physical_offset());
  t["dispatchBehindBytes"] = std::to_string(b.store.max_physical_offset() - b.store.confirm_offset());
  t["remainHowManyDataToFlush"] =
      fmt::format("{} B", b.store.max_physical_offset() - b.store.flushed_offset());
  for (const auto& [group, count] : b.discard.lost_by_group())
    t["unconsumedDeleted_" + group] = std::to_string(count);
  t["storeNotWritableReason"] = b.store.not_writable_reason();
  t["dispatchMaxBuffer"] = t["pageCacheLockTimeMills"] = "0";
}

void add_timers(std::map<std::string, std::string, std::less<>>& t, const Broker& b) {
  const TimerService::Stats s = b.timers.stats();
  t["timersInMemory"] = std::to_string(s.in_memory);
  t["timerMemoryBytes"] = std::to_string(s.memory_bytes);
  t["timersDeliveredTotal"] = std::to_string(s.delivered);
  t["timersRecalledTotal"] = std::to_string(s.recalled);
  t["timersStoredAgainTotal"] = std::to_string(s.rolled);
  // As mqadmin's clusterList and exporters read them.
  t["timerReadBehind"] = std::to_string(s.late_ms / 1000);
  t["timerOffsetBehind"] = std::to_string(s.unread);
  t["timerCongestNum"] = std::to_string(s.in_memory);
  t["timerEnqueueTps"] = fmt::format("{:.2f}", b.stats.rate_10s(&Counters::timers_taken));
  t["timerDequeueTps"] = fmt::format("{:.2f}", b.stats.rate_10s(&Counters::timers_delivered));
}

}  // namespace

Task<void> get_broker_runtime_info(Broker& b, Request& r, proto::EmptyHeader) {
  proto::KVTable body;
  auto& t = body.table;
  const Counters& c = b.stats.now;
  t["bootTimestamp"] = t["startAcceptSendRequestTimeStamp"] = std::to_string(b.boot_wall_ms);
  t["runtime"] = run_time_text(b.wall_ms() - b.boot_wall_ms);
  t["brokerVersionDesc"] = proto::version_name(proto::mq_version::ours);
  t["brokerVersion"] = std::to_string(proto::mq_version::ours);
  t["rmqdVersion"] = RMQD_VERSION;
  t["currentTimeMillis"] = std::to_string(b.wall_ms());
  t["brokerActive"] = "true";
  t["putTps"] = b.stats.rates(&Counters::put_messages);
  t["getFoundTps"] = b.stats.rates(&Counters::get_found);
  t["getMissTps"] = b.stats.rates(&Counters::get_missed);
  t["getTotalTps"] = b.stats.total_get_rates();
  // The tools of 4.x look for the misspelt key.
  t["getTransferredTps"] = t["getTransferedTps"] = b.stats.rates(&Counters::get_transferred);
  t["msgPutTotalTodayNow"] = std::to_string(c.put_messages);
  t["msgGetTotalTodayNow"] = std::to_string(c.get_transferred);
  for (const char* key : {"msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning",
                          "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning"})
    t[key] = "0";
  // Requests do not wait for threads here; clusterList shows these.
  for (const char* pool : {"send", "pull", "litePull", "query", "ack"})
    for (const char* key : {"ThreadPoolQueueSize", "ThreadPoolQueueHeadWaitTimeMills"})
      t[std::string(pool) + key] = "0";
  add_store(t, b);
  t["dedupKnownKeys"] = std::to_string(b.dedup.known());
  t["dedupAnsweredTotal"] = std::to_string(b.dedup.answered());
  t["dedupForgottenTotal"] = std::to_string(b.dedup.forgotten());
  t["transactionsOpen"] = std::to_string(b.transactions.open());
  t["transactionChecksTotal"] = std::to_string(b.transactions.checks());
  t["transactionsGivenUpTotal"] = std::to_string(b.transactions.given_up());
  add_timers(t, b);
  auto first = co_await b.store.record_at(b.store.min_physical_offset());
  t["earliestMessageTimeStamp"] =
      std::to_string(first ? proto::record_store_timestamp(first->bytes()) : int64_t{-1});
  for (int level = 1; level <= b.delay_levels.count(); level++)
    t[fmt::format("scheduleMessageOffset_{}", level)] =
        fmt::format("{},{}", b.schedule.offset_of(level),
                    b.store.max_offset(proto::names::SCHEDULE_TOPIC_XXXX, level - 1));
  auto space = co_await b.disk.space(b.config.storePathRootDir);
  if (space) add_disk(t, b.config, *space);
  r.reply(ResponseCode::SUCCESS, {}, body.to_json());
}

// Of a master without replicas, which every rmqd is.
void get_broker_ha_status(Broker& b, Request& r, proto::EmptyHeader) {
  r.reply(ResponseCode::SUCCESS, {}, proto::HARuntimeInfo{b.store.max_physical_offset()}.to_json());
}

void view_broker_stats_data(Broker& b, Request& r, proto::ViewBrokerStatsDataRequestHeader h) {
  auto data = b.stats_items.find(h.stats_name, h.stats_key, b.now_ns());
  if (!data)
    return r.reply(ResponseCode::SYSTEM_ERROR,
                   fmt::format("The stats <{}> <{}> not exist", h.stats_name, h.stats_key));
  r.reply(ResponseCode::SUCCESS, {}, data->to_json());
}

}  // namespace rmq::broker
