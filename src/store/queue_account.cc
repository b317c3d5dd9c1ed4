// Does every byte of the log belong to a record that a queue knows? RocketMQ has a unit for each record, so
// in a directory that it stopped in order the records of all units fill each file of the log, up to the blank
// record at its end. Where they do not, units or whole queues are missing: nothing else tells of a queue
// whose directory is not there.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "proto/record.h"
#include "store/light_queues.h"
#include "store/log_walker.h"
#include "store/queue_files.h"
#include "store/recovery.h"

namespace rmq::store {

namespace {
constexpr int64_t units_at_once = 12'800;
constexpr size_t account_workers = 16;
}  // namespace

struct QueueFiles::Account {
  int64_t log_min;
  uint64_t file_bytes;
  std::map<uint64_t, uint64_t> sums;
  bool in_order = true;

  // `end`: of the queue's record before.
  void add(const QueueUnit& u, int64_t& end) {
    if (is_blank(u)) return;
    in_order = in_order && u.bytes > 0 && u.physical_offset >= end;
    if (!in_order) return;
    end = u.physical_offset + u.bytes;
    if (u.physical_offset < log_min) return;
    const auto at = static_cast<uint64_t>(u.physical_offset);
    sums[at - at % file_bytes] += static_cast<uint64_t>(u.bytes);
  }
};

Task<Result<void>> QueueFiles::account_queue(ConsumeQueue& q, Account& a) {
  QueueUnit last;
  int64_t end = 0;
  std::vector<std::byte> buf;
  for (int64_t at = q.min_offset; at < q.max_offset && a.in_order;) {
    const int64_t file_first = at - at % file_units_;
    const int64_t file_end = std::min(file_first + file_units_, q.max_offset);
    int64_t to = std::min(file_end, at + units_at_once);
    if (at < q.written) to = std::min(to, q.written);
    buf.resize(static_cast<size_t>(to - at) * unit_bytes);
    if (at < q.written) {
      CO_TRY_VAR(file, co_await file_of(q, file_first, false));
      std::shared_ptr<File> f = file;
      auto n = co_await f->read(static_cast<uint64_t>(at - file_first) * unit_bytes, buf);
      if (!n) co_return std::unexpected(n.error());
      if (*n != buf.size()) co_return fail(Errc::corrupt, "a consumequeue file ends too early");
    } else {
      std::copy_n(q.tail_unit(at), buf.size(), buf.data());
    }
    for (size_t i = 0; i < buf.size(); i += unit_bytes) {
      const QueueUnit u = decode_unit(buf.data() + i);
      const bool again = q.batch && u == last;  // the next message of the same record
      if (!again) a.add(u, end);
      last = u;
    }
    at = to;
  }
  co_return Result<void>();
}

Task<void> QueueFiles::account_worker(const std::vector<QueueRef>& all, size_t& next, Account& a,
                                      Result<void>& result) {
  while (result && next < all.size()) {
    const QueueRef q = all[next++];
    // The units of light queues are further ones, of records that have theirs.
    if (is_light_queue(q->topic->name)) continue;
    auto r = co_await account_queue(*q, a);
    if (!r) result = r;
  }
}

Task<Result<std::map<uint64_t, uint64_t>>> QueueFiles::record_bytes(int64_t log_min, uint64_t file_bytes) {
  Account a{log_min, file_bytes, {}};
  const std::vector<QueueRef> all = table_.all();
  Result<void> result;
  size_t next = 0;
  Scope workers;
  for (size_t i = 0; i < account_workers; i++) workers.spawn(account_worker(all, next, a, result));
  co_await workers.join();
  if (!result) co_return std::unexpected(result.error());
  if (!a.in_order) a.sums.clear();
  co_return std::move(a.sums);
}

Task<Result<bool>> Recovery::all_accounted(uint64_t end) {
  SegmentSet& segments = log_.segments();
  CO_TRY_VAR(
      sums, co_await files_.record_bytes(static_cast<int64_t>(segments.first_base()), segments.file_bytes()));
  for (size_t i = 0; i < segments.count(); i++) {
    const std::shared_ptr<Segment> s = segments.at(i);
    const uint64_t file_end = s->base + segments.file_bytes();
    if (end <= s->base) break;  // what lies there gets its units from the walk
    const uint64_t at = s->base + sums[s->base];
    if (at == std::min(end, file_end)) continue;
    if (end <= file_end || at + proto::blank_record_bytes > file_end) co_return false;
    std::array<std::byte, proto::blank_record_bytes> want{};
    proto::encode_blank_record(want, static_cast<uint32_t>(file_end - at));
    LogWalker w(segments, stats_, log_.memory_counter());
    CO_TRY_VAR(there, co_await w.view(at, want.size()));
    if (!std::ranges::equal(there.first(want.size()), want)) co_return false;
  }
  co_return true;
}

}  // namespace rmq::store
