#include "sim/store_life.h"

#include <algorithm>

#include "sim/store_keys.h"
#include "uring/sync.h"

namespace rmq::sim {

namespace {

using store::MessageStore;
using store::PutMessageStatus;

class Progress final : public store::RecoveryProgress {
 public:
  explicit Progress(std::string& damage) : damage_(damage) {}
  void on_progress(int, int64_t) override {}
  void on_damage(int64_t physical_offset, int64_t next_valid_offset) override {
    damage_ = " (damage at " + std::to_string(physical_offset) + ", valid again from " +
              std::to_string(next_valid_offset) + ")";
  }
  void on_quarantine(int64_t, int64_t) override {}

 private:
  std::string& damage_;
};

struct Life {
  Model& model;
  const LifePlan& plan;
  SimLoop& loop;
  SimDisk& disk;
  LifeResult& result;
  SimRandom random;
  MessageStore* store = nullptr;
  bool producing = true;

  void error(std::string text) { result.errors.push_back(std::move(text)); }
  // What a frozen disk's program believes does not count.
  bool counts() const { return !disk.crashed(); }
};

void note_answer(Life& l, Message& m, PutMessageStatus status, int64_t physical, int64_t queue_offset,
                 bool waited) {
  l.loop.trace("answer", name_of(status), m.id, static_cast<uint64_t>(physical));
  l.model.flushed_floor = std::max(l.model.flushed_floor, l.store->flushed_offset());
  switch (status) {
    case PutMessageStatus::PUT_OK:
    case PutMessageStatus::FLUSH_DISK_TIMEOUT:
      m.physical_offset = physical;
      m.queue_offset = queue_offset;
      m.acknowledged = waited && status == PutMessageStatus::PUT_OK;
      return;
    case PutMessageStatus::CREATE_MAPPED_FILE_FAILED:
    case PutMessageStatus::SERVICE_NOT_AVAILABLE:
      if (!l.plan.may_fail) l.error(std::string("put refused: ") + name_of(status));
      // A put that waits when the log fails gets this too: whether its message is there is open.
      return;
    default:
      l.error(std::string("put of a good message: ") + name_of(status));
      return;
  }
}

Task<void> put_one(Life& l) {
  bool wait = l.random.below(5) != 0;
  Message& m = l.model.make(l.plan.body_bytes_max);
  m.put_ns = l.loop.now_ns();
  auto r = co_await l.store->put(m.in(), wait);
  if (l.counts()) note_answer(l, m, r.status, r.physical_offset, r.queue_offset, wait);
}

Task<void> put_several(Life& l) {
  bool wait = l.random.below(5) != 0;
  std::vector<Message*> batch;
  std::vector<store::MessageIn> in;
  const size_t count = 1 + l.random.below(6);
  for (size_t i = 0; i < count; i++) {
    Message& m = l.model.make(l.plan.body_bytes_max / 8);
    if (i != 0) {  // a batch is for one queue
      m.topic = batch[0]->topic;
      m.queue_id = batch[0]->queue_id;
    }
    m.sys_flag = 0;
    m.put_ns = l.loop.now_ns();
    batch.push_back(&m);
  }
  for (Message* m : batch) in.push_back(m->in());
  auto r = co_await l.store->put_batch(in, wait);
  if (!l.counts()) co_return;
  bool has_offsets = r.physical_offsets.size() == batch.size();
  if (r.status == PutMessageStatus::PUT_OK && !has_offsets)
    l.error("a batch without offsets of all its messages");
  for (size_t i = 0; i < batch.size(); i++) {
    int64_t physical = has_offsets ? r.physical_offsets[i] : -1;
    note_answer(l, *batch[i], r.status, physical, r.queue_offset + static_cast<int64_t>(i), wait);
  }
}

Task<void> produce(Life& l) {
  for (uint32_t i = 0; i < l.plan.calls_per_producer; i++) {
    if (!l.counts() || !l.store->writable()) co_return;
    if (l.random.below(4) == 0)
      co_await put_several(l);
    else
      co_await put_one(l);
    if (l.random.below(3) == 0) co_await sleep_for(l.random.between(0, l.plan.pause_ns_max));
  }
}

struct Position {
  std::string topic;
  int32_t queue_id = 0;
  int64_t offset = 0;
};

Task<void> consume_some(Life& l, Position& p) {
  auto r = co_await l.store->get(p.topic, p.queue_id, p.offset, 8, nullptr);
  if (!l.counts() || r.status != store::GetMessageStatus::FOUND) co_return;
  std::string records;
  for (const store::LogExtent& e : r.extents) records += as_text(e.bytes());
  Errors errors;
  for (const Message* m : messages_in(l.model, records, errors)) {
    if (m->topic != p.topic || m->queue_id != p.queue_id) l.error("a message in a queue that is not its own");
    l.model.messages[m->id].seen = true;
  }
  for (std::string& e : errors) l.error(std::move(e));
  if (r.next_begin_offset <= p.offset) l.error("a pull that found messages does not move on");
  p.offset = r.next_begin_offset;
}

Task<void> consume(Life& l) {
  std::vector<Position> positions;
  while (l.producing && l.counts()) {
    co_await sleep_for(l.random.between(10 * ns_per_us, 3 * ns_per_ms));
    const std::vector<std::string> topics = l.store->topics_with_queues();
    if (topics.empty()) continue;
    Position want{topics[l.random.below(topics.size())],
                  static_cast<int32_t>(l.random.below(model_queues_per_topic)), 0};
    auto it = std::find_if(positions.begin(), positions.end(), [&](const Position& p) {
      return p.topic == want.topic && p.queue_id == want.queue_id;
    });
    if (it == positions.end()) it = positions.insert(positions.end(), want);
    co_await consume_some(l, *it);
  }
}

Task<void> work(Life& l) {
  Scope consumers, producers;
  for (uint32_t i = 0; i < l.plan.consumers; i++) consumers.spawn(consume(l));
  for (uint32_t i = 0; i < l.plan.producers; i++) producers.spawn(produce(l));
  co_await producers.join();
  l.producing = false;
  co_await consumers.join();
}

// A store that has just opened, against the model; then what is there is the new truth.
Task<void> check_opened(Life& l) {
  Errors errors;
  co_await take_dump(*l.store, l.result.dump, errors);
  if (!l.counts()) co_return;
  if (l.plan.may_fail && !errors.empty()) co_return;  // reading met a planned fault
  check_recovered(l.model, l.result.dump, errors);
  if (errors.empty()) co_await check_keys(*l.store, l.result.dump, errors);
  if (!l.counts()) co_return;
  if (l.plan.may_fail && !errors.empty()) co_return;
  for (std::string& e : errors) l.error(std::move(e));
  l.model.settle(l.result.dump);
  l.model.sync_flush = l.plan.store.flush == store::FlushDiskType::SYNC_FLUSH;  // of what comes now
  l.model.property_crc = l.plan.store.append_property_crc;
  l.result.opened = true;
  l.result.open_points = l.disk.points();
}

Task<void> check_queue_files(Life& l, const std::string& topic, const std::string& id) {
  auto files = co_await l.disk.list(l.plan.store.root + "/consumequeue/" + topic + "/" + id);
  const std::string queue = topic + " " + id;
  if (!files || files->empty()) {
    l.error("no files of queue " + queue);
    co_return;
  }
  uint64_t first = 0;
  store::parse_file_name_20(files->front().name, first);
  const int64_t end = static_cast<int64_t>(first / store::unit_bytes) + l.plan.store.consume_queue_file_units;
  const int64_t min = l.store->min_offset(topic, std::stoi(id));
  if (min < 0) l.error("files of queue " + queue + ", which is not there");
  // A queue without messages keeps the file that ends where it ends.
  const bool keeps_end = end == min && min == l.store->max_offset(topic, std::stoi(id));
  if (files->size() > 1 && end <= min && !keeps_end)
    l.error("queue " + queue + " begins at " + std::to_string(min) + ", but has a file up to " +
            std::to_string(end) + " of " + std::to_string(files->size()) + ", and ends at " +
            std::to_string(l.store->max_offset(topic, std::stoi(id))));
}

// What was deleted before the last end, in part or whole, is gone some rounds later.
Task<void> check_leftovers(Life& l) {
  co_await sleep_for(ns_per_s);
  auto logs = co_await l.disk.list(l.plan.store.root + "/commitlog");
  auto topics = co_await l.disk.list(l.plan.store.root + "/consumequeue");
  if (!logs || !topics) co_return l.error("the store's directories cannot be listed");
  uint64_t at = static_cast<uint64_t>(l.store->min_physical_offset());
  for (const DirEntry& e : *logs) {
    if (e.name != store::file_name_20(at)) l.error("the log has a file " + e.name);
    at += l.plan.store.commit_log_file_bytes;
  }
  for (const DirEntry& t : *topics) {
    auto ids = co_await l.disk.list(l.plan.store.root + "/consumequeue/" + t.name);
    if (!ids || ids->empty()) {
      l.error("a directory without queues: " + t.name);
      continue;
    }
    for (const DirEntry& id : *ids) co_await check_queue_files(l, t.name, id.name);
  }
}

Task<void> whole_life(Life& l) {
  std::string damage;
  Progress progress(damage);
  store::StoreOptions options = l.plan.store;
  options.retention.delete_hours = 0;  // nothing goes while it is compared with the model
  auto opened = co_await MessageStore::open(l.disk, options, &progress);
  if (!opened) {
    if (l.counts() && !l.plan.may_fail) l.error("open: " + to_string(opened.error()) + damage);
    l.disk.crash_now();
    co_return;
  }
  l.store = opened->get();
  co_await check_opened(l);
  if (l.result.opened && l.plan.check_leftovers) co_await check_leftovers(l);
  l.store->set_retention(l.plan.store.retention);
  if (l.result.opened) co_await work(l);
  l.result.crashed = l.disk.crashed();
  l.result.log_files_deleted = l.store->stats().log_files_deleted;
  if (l.plan.end != LifePlan::End::shutdown) l.disk.crash_now();
  co_await l.store->shutdown();
  l.disk.crash_now();
}

}  // namespace

DiskImage new_machine() {
  DiskImage i = empty_image();
  auto data = empty_image().root;
  i.root->entries["data"] = data;
  i.root->durable_entries["data"] = data;
  return i;
}

LifeResult live(Model& model, Machine from, const LifePlan& plan) {
  LifeResult result;
  SimLoop loop(plan.seed, plan.loop);
  std::unique_ptr<SimDisk> disk;
  if (from.state)
    disk = std::make_unique<SimDisk>(loop, plan.disk, std::move(*from.state));
  else
    disk = std::make_unique<SimDisk>(loop, plan.disk, from.image);
  Life l{model, plan, loop, *disk, result, SimRandom(plan.seed ^ 0x11fe)};
  loop.run(whole_life(l));
  model.grow_old(loop.now_ns(), plan.store.retention.file_reserved_ms);
  result.points = disk->points();
  result.trace_hash = loop.trace_hash();
  result.disk = disk->counters();
  for (const std::string& v : disk->violations()) l.error(v);
  for (const CrashFate& f : plan.fates) model.garbage = model.garbage || f.garbage != 0;
  for (const CrashFate& f : plan.fates) result.images.push_back(disk->crash_image(f));
  bool killed = plan.end == LifePlan::End::process_kill;
  if (killed) result.state = disk->take_state(plan.seed);
  // A cut after a kill without an open in between stays a cut.
  if (model.since != Since::power_cut) model.since = killed ? Since::process_killed : Since::power_cut;
  return result;
}

store::StoreOptions small_store(store::FlushDiskType flush) {
  store::StoreOptions o;
  o.root = "/data/store";
  o.commit_log_file_bytes = 64u << 10;
  o.consume_queue_file_units = 16;
  o.flush = flush;
  o.flush_interval_ms = 5;
  o.memory_bytes = 256u << 10;
  o.unflushed_bytes_max = 48u << 10;
  o.zero_ahead_bytes = 32u << 10;
  o.queue_write_interval_ms = 3;
  o.checkpoint_interval_ms = 7;
  o.open_queue_files_max = 4;
  o.transfer_count_on_disk = 3;
  o.in_memory_distance_bytes = 64u << 10;
  o.index_slots = 16;
  o.index_entries = 24;
  o.index_idle_ms = 4;
  return o;
}

void add_retention(store::StoreOptions& o, int64_t reserved_ms, bool deletes) {
  o.retention.file_reserved_ms = reserved_ms;
  o.retention.delete_hours = deletes ? 0xffffff : 0;
  o.retention.clean_forcibly = false;
  o.retention.max_used_percent = 100;
  o.retention.first_clean_ms = 2;
  o.retention.clean_interval_ms = 3;
  o.retention.log_pause_ms = 1;
  o.retention.queue_pause_ms = 0;
  o.retention.destroy_forcibly_ms = 20;
}

}  // namespace rmq::sim
