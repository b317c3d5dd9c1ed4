// The files of the ConsumeQueues: <root>/consumequeue/<topic>/<queue id>/<20 digits>, each of the same
// number of 20-byte units, named by the byte offset of its first one. They are written in batches, through
// the page cache, and may always be behind: the checkpoint says below which physical offset all queues are
// on stable storage, and recovery makes the rest again from the log.
//
// One writer at a time (a semaphore): the write task, a checkpoint, a deletion. Readers take part of a file
// as a block and keep it while they need it.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/consume_queue.h"
#include "uring/sync.h"

namespace rmq::store {

inline constexpr int64_t unit_block_units = 800;  // 16,000 bytes, RocketMQ's least scan of one get
inline constexpr size_t unit_blocks_cached = 128;
inline constexpr uint64_t unwritten_units_soon = 50'000;  // then the write task does not wait any longer
inline constexpr size_t queue_writers = 8;                // queues that are written at a time
inline constexpr int64_t tail_units_kept = 1024;          // of one queue

// Some neighbouring units of one file, as they were when it was read.
struct UnitBlock {
  int64_t first = 0;
  int64_t count = 0;
  std::vector<std::byte> units;
};

class QueueEnds;

class QueueFiles {
 public:
  QueueFiles(Disk& disk, const StoreOptions& o, StoreStats& stats, QueueTable& table);

  // --- loading
  // What all queue directories hold of records that end at or below `limit` (INT64_MAX: of all). With `cut`
  // everything above is removed from the files. Queues that make no sense are removed: the caller compares
  // the table's sums with the checkpoint and rebuilds. Where a queue ends that the log has nothing of, `ends`
  // says, if it does.
  Task<Result<void>> load(int64_t limit, int64_t log_min, bool cut, const QueueEnds& ends);
  bool damaged() const { return damaged_; }  // load() has removed such a queue
  Task<Result<void>> remove_all();           // files and table
  Task<Result<bool>> any();                  // whether there is anything in the directory
  Task<Result<void>> remove_queue(ConsumeQueue& q);

  // --- writing
  void note_unwritten(ConsumeQueue& q);
  // The next record of a queue, of so many messages, stored at that time.
  void add(ConsumeQueue& q, const QueueUnit& u, int32_t messages, int64_t store_timestamp_ms);
  // So many may wait for their file; one takes up to 32 bytes, as vectors grow.
  uint64_t unwritten_units_max() const { return options_.waiting_bytes / 3 * 2 / 32; }
  // Units that wait, those of batch topics by what theirs take.
  uint64_t unwritten_units() const { return table_.unwritten_units() + table_.batch_waiting_bytes() / 16; }
  // Of many queues each has few units, and writing one costs as much as writing a thousand: then later.
  bool write_soon() const {
    const uint64_t many = unwritten_units_max() / 5 * 2;
    return unwritten_units() >= std::min(std::max(unwritten_.size() * 8, unwritten_units_soon), many);
  }
  size_t unwritten_queues() const { return unwritten_.size(); }
  // Units that are in memory only. Those for which the disk has no room stay there: no_space().
  Task<Result<void>> write_all();
  bool no_space() const { return no_space_; }
  // write_all, then everything that was ever written is on stable storage. False: a deletion is going on, or
  // the disk has no room, come back later.
  Task<Result<bool>> sync_all();
  Task<Result<void>> delete_topic(std::string topic, std::vector<QueueRef> queues);
  // A queue that has left the table.
  Task<Result<void>> delete_queue(QueueRef q);
  void trim_idle(int64_t now_ns);
  Task<void> close();

  // --- batch topics, batch_queue_files.cc
  // Their directories, before the first of them has messages; on stable storage.
  Task<Result<void>> make_batch_dirs();
  // After load(), with the same arguments: where RocketMQ's files go on. Queues that the table does not have
  // lose them. False: they are not of the same records as the table's units.
  Task<Result<bool>> load_batch(int64_t limit, int64_t log_min, bool cut);
  // RocketMQ's files are all that there is of these queues: units of our own are made of them. False: they
  // make no sense.
  Task<Result<bool>> import_batch(int64_t log_min);
  // After these: how many bytes of records from `log_min` on the units know, by where the file of the log
  // begins, which has `file_bytes`. Empty: units are not in order. Reads all units.
  Task<Result<std::map<uint64_t, uint64_t>>> record_bytes(int64_t log_min, uint64_t file_bytes);
  // What was made of RocketMQ's files before.
  Task<Result<void>> remove_imported();
  // Removes the first of RocketMQ's files when the log has nothing of it, as remove_front().
  Task<Result<std::string>> remove_batch_front(ConsumeQueue& q, int64_t log_min);
  int64_t batch_file_bytes() const { return batch_file_bytes_; }

  // --- retention, queue_clean.cc
  // Moves min_offset behind the units of records that lie below `log_min`. It never goes back.
  Task<Result<void>> correct_min(ConsumeQueue& q, int64_t log_min);
  // The same, for any place in the log.
  Task<Result<void>> raise_min(ConsumeQueue& q, int64_t physical);
  // The first offset from min_offset on whose record lies at or above `physical`; max_offset: none.
  Task<Result<int64_t>> first_above(ConsumeQueue& q, int64_t physical) {
    return first_in_log(q, q.min_offset, physical);
  }
  // Where in the log the queue's first message is; INT64_MAX: it has none.
  Task<Result<int64_t>> front_physical(ConsumeQueue& q);
  void set_listener(QueueListener* l) { listener_ = l; }
  // Removes the first file when all its units lie below min_offset and on stable storage, and it is not the
  // last one. Its path; empty: there is none to remove (now).
  Task<Result<std::string>> remove_front(ConsumeQueue& q);
  // There is one that only waits until its units are on stable storage.
  bool front_waits(const ConsumeQueue& q) const;

  // --- reading
  // The block that holds `offset`, which must be below q.written.
  Task<Result<std::shared_ptr<UnitBlock>>> block_of(ConsumeQueue& q, int64_t offset);
  int64_t file_units() const { return file_units_; }

 private:
  struct Key {
    uint64_t uid;
    int64_t at;
    auto operator<=>(const Key&) const = default;
  };
  struct OpenFile {
    std::shared_ptr<File> file;
    std::list<Key>::iterator lru;
  };
  struct CachedBlock {
    std::shared_ptr<UnitBlock> block;
    std::list<Key>::iterator lru;
  };
  struct Listed;
  struct Peek;
  struct Account;
  // Units in memory that are in files as well.
  uint64_t tail_bytes_max() const { return options_.waiting_bytes / 6; }

  struct BatchListed;
  const std::string& root_of(const ConsumeQueue& q) const { return q.batch ? own_batch_root_ : root_; }
  std::string batch_dir_of(const ConsumeQueue& q) const;
  Task<Result<std::shared_ptr<File>>> batch_file_of(ConsumeQueue& q, int64_t file_at, bool create);
  Task<Result<void>> write_batch(ConsumeQueue& q);
  Task<Result<void>> sync_batch(ConsumeQueue& q);
  Task<Result<std::vector<BatchListed>>> list_batch();
  Task<Result<void>> list_batch_files(BatchListed& l);
  Task<Result<void>> find_batch_end(BatchListed& l, int64_t limit);
  Task<Result<void>> cut_batch(ConsumeQueue& q, const BatchListed& l);
  Task<Result<bool>> import_queue(const BatchListed& l, int64_t log_min);
  Task<Result<void>> remove_batch_of_others();
  std::string dir_of(const ConsumeQueue& q) const;
  std::string path_of(const ConsumeQueue& q, int64_t file_first) const;
  Task<Result<std::shared_ptr<File>>> file_of(ConsumeQueue& q, int64_t file_first, bool create);
  void keep_open(Key k, const std::shared_ptr<File>& f);
  void forget(uint64_t uid);
  void forget_file(uint64_t uid, int64_t file_first);
  Task<Result<void>> write_queue(ConsumeQueue& q);
  Task<Result<void>> write_some(ConsumeQueue& q, int64_t file_first, int64_t to);
  Task<Result<void>> fill_blank(File& f, int64_t units);
  Task<Result<void>> sync_queue(ConsumeQueue& q);
  Task<Result<void>> sync_file(ConsumeQueue& q, int64_t file_first);
  Task<Result<void>> write_listed();
  Task<void> write_worker(std::vector<QueueRef>& all, size_t& next, Result<void>& result);
  Task<Result<void>> write_one(QueueRef& q);
  Task<Result<void>> sync_listed(std::vector<QueueRef> queues);
  Task<Result<void>> remove_tree(std::string dir);
  Task<Result<void>> empty_root(std::string root);
  Task<void> load_worker(std::vector<Listed>& all, size_t& next, Result<void>& result);
  Task<Result<void>> load_queue(Listed& l);
  Task<Result<void>> account_queue(ConsumeQueue& q, Account& a);
  Task<void> account_worker(const std::vector<QueueRef>& all, size_t& next, Account& a, Result<void>& result);
  Task<Result<void>> tidy(const std::vector<Listed>& all);
  Task<Result<void>> find_ends(ConsumeQueue& q, const std::vector<int64_t>& files, Listed& l);
  Task<Result<void>> judge_blank_end(ConsumeQueue& q, const Listed& l, Peek& p);
  Task<Result<bool>> in_order(ConsumeQueue& q, const Listed& l);
  Task<Result<void>> trim_disorder(ConsumeQueue& q, int64_t log_min, bool& trimmed);
  bool ends_otherwise(const ConsumeQueue& q, const Listed& l) const;
  Task<Result<int64_t>> count_below(ConsumeQueue& q, int64_t file_first, int64_t limit, Peek& p);
  Task<Result<QueueUnit>> read_unit(ConsumeQueue& q, int64_t offset, Peek& p);
  Task<Result<int64_t>> skip_blanks(ConsumeQueue& q, int64_t from, int64_t to, QueueUnit& u);
  Task<Result<int64_t>> first_in_log(ConsumeQueue& q, int64_t from, int64_t log_min);
  Task<Result<void>> cut_files(ConsumeQueue& q, std::vector<int64_t> files);

  Disk& disk_;
  const StoreOptions& options_;
  StoreStats& stats_;
  QueueTable& table_;
  const std::string root_, own_batch_root_, batch_root_;
  const int64_t file_units_, batch_file_bytes_;
  Semaphore writer_{1};
  QueueListener* listener_ = nullptr;
  bool no_space_ = false;  // units of the last write_listed() did not all get to the files
  std::vector<QueueRef> unwritten_, unsynced_, busy_tails_;
  bool damaged_ = false;
  std::vector<std::pair<QueueRef, int64_t>> cut_;
  std::multiset<std::string> deleting_;
  std::map<Key, OpenFile> files_;
  std::list<Key> files_lru_;
  std::map<Key, CachedBlock> blocks_;
  std::list<Key> blocks_lru_;
};

}  // namespace rmq::store
