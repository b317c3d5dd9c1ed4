#include "sim/store_keys.h"

#include "proto/record.h"
#include "store/index_keys.h"

namespace rmq::sim {

namespace {

constexpr size_t sample = 24;

Task<void> check_key(store::MessageStore& s, const proto::RecordView& v, std::string_view key,
                     Errors& errors) {
  auto r = co_await s.query_message(v.topic, key, 64, 0, INT64_MAX);
  bool found = false;
  if (r)
    for (const store::LogExtent& e : r->records)
      found = found || proto::record_physical_offset(e.bytes()) == v.physical_offset;
  if (found) co_return;
  errors.push_back("the message at physical offset " + std::to_string(v.physical_offset) +
                   " is not found by its key " + std::string(key) + (r ? "" : ": " + to_string(r.error())));
}

std::vector<proto::RecordView> indexed_records(const Dump& dump) {
  std::vector<proto::RecordView> out;
  Bytes log = as_bytes(dump.log);
  while (!log.empty()) {
    auto front = proto::record_front(log);
    if (front && front->is_blank() && front->size != 0 && front->size <= log.size()) {
      log = log.subspan(front->size);
      continue;
    }
    auto v = proto::parse_record(log);
    if (!v) break;  // check_recovered() says it
    log = log.subspan(v->size);
    if (store::is_indexed(v->sys_flag)) out.push_back(*v);
  }
  return out;
}

}  // namespace

Task<void> check_keys(store::MessageStore& s, const Dump& dump, Errors& errors) {
  // A look-up waits two seconds; an index that was lost may take longer.
  for (int i = 0; i < 3000 && s.stats().index_behind_bytes != 0; i++) co_await sleep_for(10 * ns_per_ms);
  const std::vector<proto::RecordView> all = indexed_records(dump);
  const size_t step = all.size() / sample + 1;
  for (size_t i = static_cast<size_t>(dump.max_physical) % step; i < all.size() && errors.empty();
       i += step) {
    store::StoredProperties p = store::stored_properties(all[i].properties);
    if (!p.unique_key.empty()) co_await check_key(s, all[i], p.unique_key, errors);
    if (!p.keys.empty()) co_await check_key(s, all[i], p.keys.substr(0, p.keys.find(' ')), errors);
  }
}

}  // namespace rmq::sim
