// Looking up messages by key: candidates from the index files, newest first, each checked against its record,
// because different keys share a hash and a slot. Time is kept in the index in whole seconds from its file's
// first message: an entry is taken when that time or the record's own is in the range, so everything that
// RocketMQ would find is found, and what lies exactly in the range as well.
#include <algorithm>

#include "base/check.h"
#include "proto/record.h"
#include "store/index_query.h"
#include "store/store_impl.h"

namespace rmq::store {

namespace {
constexpr uint64_t answer_bytes_max = 12u << 20;  // a frame is 16 MiB at most; one message always fits
constexpr uint32_t candidates_max = 4096;         // records read for one look-up
constexpr int64_t grain_ms = 1000;
}  // namespace

struct MessageStore::Impl::KeyQuery {
  std::string_view topic, key;
  KeyKind kind = KeyKind::key;
  size_t max = 0;
  int64_t begin_ms = 0, end_ms = 0;
  int32_t hash = 0;
  uint32_t candidates = 0;
  uint64_t bytes = 0;
  bool full = false;
  std::vector<std::pair<int64_t, LogExtent>> found;  // by physical offset

  bool in_range(int64_t ms) const { return ms >= begin_ms && ms <= end_ms; }
  bool has(int64_t physical) const {
    return std::any_of(found.begin(), found.end(), [&](auto& f) { return f.first == physical; });
  }
};

// Takes the record if it is one of those that are looked for.
Task<void> MessageStore::Impl::check_candidate(KeyQuery& q, int64_t physical, int64_t entry_ms) {
  auto record = co_await record_at(physical);
  if (!record) co_return;  // deleted with its file of the log
  auto v = proto::parse_record(record->bytes());
  bool wanted = v && v->topic == q.topic && has_key(stored_properties(v->properties), q.kind, q.key) &&
                (q.in_range(entry_ms) || q.in_range(v->store_timestamp_ms));
  if (!wanted) co_return;
  if (!q.found.empty() && q.bytes + v->size > answer_bytes_max) {
    q.full = true;
    co_return;
  }
  q.bytes += v->size;
  q.found.emplace_back(physical, std::move(*record));
  q.full = q.found.size() >= q.max;
}

Task<Result<void>> MessageStore::Impl::look_into(IndexChain& chain, int64_t file_begin_ms, KeyQuery& q) {
  while (!q.full && q.candidates < candidates_max) {
    IndexEntry e;
    CO_TRY_VAR(more, co_await chain.next(e));
    int64_t ms = file_begin_ms + int64_t{e.seconds} * grain_ms;
    if (!more || ms + grain_ms <= q.begin_ms) break;  // those behind it are older
    if (ms > q.end_ms || q.has(e.physical)) continue;
    q.candidates++;
    co_await check_candidate(q, e.physical, ms);
  }
  co_return Result<void>();
}

Task<Result<void>> MessageStore::Impl::look_up(KeyQuery& q, QueryMessageResult& r) {
  co_await index_.caught_up();
  std::vector<std::shared_ptr<IndexFile>> files = index_.files();
  for (size_t i = files.size(); i-- > 0 && !q.full;) {
    const IndexHeader h = files[i]->header();
    if (i + 1 == files.size()) {
      r.index_last_update_timestamp_ms = h.end_timestamp_ms;
      r.index_last_update_physical = h.end_physical;
    }
    bool overlaps = h.count > 1 && h.begin_timestamp_ms <= q.end_ms && h.end_timestamp_ms >= q.begin_ms;
    if (overlaps && files[i]->readable()) {
      IndexChain chain(disk_, files[i], q.hash, stats_);
      auto looked = co_await look_into(chain, h.begin_timestamp_ms, q);
      co_await chain.close();
      if (!looked && looked.error().code == Errc::corrupt) index_.found_damaged(looked.error().where);
      bool gone = !looked && looked.error().code == Errc::not_found;
      if (!looked && !gone) co_return looked;
    }
    if (h.begin_timestamp_ms < q.begin_ms) break;
  }
  co_return Result<void>();
}

Task<Result<QueryMessageResult>> MessageStore::Impl::query_message(std::string_view topic,
                                                                   std::string_view key, int32_t max_messages,
                                                                   int64_t begin_ms, int64_t end_ms,
                                                                   KeyKind kind) {
  QueryMessageResult r;
  if (!index_.enabled() || max_messages <= 0 || key.empty() || end_ms < begin_ms) co_return r;
  KeyQuery q;
  q.topic = topic;
  q.key = key;
  q.max = static_cast<size_t>(max_messages);
  q.begin_ms = begin_ms;
  q.end_ms = end_ms;
  q.kind = kind;
  q.hash = hash_of_look_up(topic, kind, key);
  co_await key_queries_.acquire();
  auto looked = co_await look_up(q, r);
  key_queries_.release();
  if (!looked) co_return std::unexpected(looked.error());
  std::sort(q.found.begin(), q.found.end(), [](auto& a, auto& b) { return a.first < b.first; });
  r.byte_count = q.bytes;
  for (auto& [physical, record] : q.found) r.records.push_back(std::move(record));
  co_return std::move(r);
}

Task<Result<QueryMessageResult>> MessageStore::query_message(std::string_view topic, std::string_view key,
                                                             int32_t max_messages, int64_t begin_ms,
                                                             int64_t end_ms, KeyKind kind) {
  return impl_->query_message(topic, key, max_messages, begin_ms, end_ms, kind);
}

}  // namespace rmq::store
