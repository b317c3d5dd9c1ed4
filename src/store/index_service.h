// The index of keys: follows the log, a little behind the confirm offset, and makes entries in the newest
// IndexFile. It never holds up a put. Keys come from the put itself as long as the index keeps up; otherwise
// (at the start, or when its files are slow) it reads the log again from where it is. So there is one way to
// become complete, whatever was lost: find out up to where the files are good, and follow the log from there.
//
// Up to where they are good stands in `rmqd.index` (index_state.h). Files that are missing, damaged or
// unknown are removed, told to the listener once, and made again from what the log still has. An I/O error
// does the same after a pause: nothing of the index is worth refusing messages for.
//
// One task writes; look-ups (index_query.h) go into memory and files beside it. One loop, the store's.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/commit_log.h"
#include "store/index_file.h"
#include "store/index_keys.h"
#include "store/index_state.h"
#include "uring/sync.h"

namespace rmq::store {

class LogWalker;

inline constexpr size_t index_hashes_waiting_max = 262'144;  // more: the log is read again instead
inline constexpr size_t index_tail_bytes_max = 64u << 10;    // of entries, then they are written
inline constexpr int64_t index_pause_ns = 10 * ns_per_ms;    // entries are made at least that often
inline constexpr int64_t index_look_up_wait_ns = 2 * ns_per_s;

class IndexService {
 public:
  // What the directory's last owner left, for when there is no `rmqd.index`.
  struct Inherited {
    bool stopped_in_order = false;
    int64_t index_msg_timestamp_ms = 0;  // of RocketMQ's checkpoint: files up to it are full and safe
  };

  IndexService(Disk& disk, const StoreOptions& o, StoreStats& stats, CommitLog& log);

  // After recovery; the log ends at `confirmed`. Does nothing without StoreOptions::index.
  void start(uint64_t confirmed, Inherited inherited);
  // The log is whole and written. `abandon`: leave the files as they are. False: nothing says which files the
  // next start may rely on, so that it must take this for no stop in order.
  Task<bool> stop(bool abandon);

  // --- on the way of every message, in the order of the log
  bool enabled() const { return options_.index; }
  void add_record(int64_t physical, int64_t store_timestamp_ms, uint32_t keys) {
    if (live_ && keys != 0) waiting_.records.push_back({physical, store_timestamp_ms, keys});
  }
  void add_hash(int32_t hash) {
    if (live_) waiting_.hashes.push_back(hash);
  }
  void confirmed(uint64_t to);  // all records below it were added

  // --- look-ups
  // Waits until what is confirmed now can be found, or for index_look_up_wait_ns.
  Task<void> caught_up();
  Task<void> complete();  // without that limit, but not through an I/O error
  std::vector<std::shared_ptr<IndexFile>> files() const { return {files_.begin(), files_.end()}; }
  void found_damaged(const char* reason);  // the files are thrown away, all is made again

  // Removes full files all of whose messages lie below that offset of the log. Their paths go into `removed`.
  Task<Result<void>> delete_before(int64_t physical, std::vector<std::string>* removed);
  uint64_t file_bytes() const { return layout_.file_bytes(); }
  // End of the newest full file, ms, 0 without one: RocketMQ's indexMsgTimestamp. Nothing: not known yet.
  std::optional<int64_t> sealed_timestamp_ms() const;
  void set_listener(FailureListener* l);
  uint64_t behind_bytes() const { return enabled() ? confirmed_ - indexed_ : 0; }

 private:
  struct Record {
    int64_t physical;
    int64_t store_timestamp_ms;
    uint32_t keys;
  };
  struct Batch {
    std::vector<Record> records;
    std::vector<int32_t> hashes;
    void clear() {
      records.clear();
      hashes.clear();
    }
  };
  struct Found;  // a file of the directory, index_load.cc

  Task<void> run();
  Task<Result<void>> attempt();
  Task<void> let_go();
  Task<Result<void>> disown();
  Task<void> forget_unsafe(std::string path);
  Task<Result<void>> follow();
  Task<Result<void>> read_again(uint64_t to);
  Task<Result<void>> take_record(LogWalker& w, uint64_t& at, uint64_t to, Batch& b);
  Task<Result<void>> link(const Batch& b, uint64_t end);
  bool can_put(int32_t hash) const;
  Task<Result<void>> make_ready(int32_t hash);
  Task<Result<void>> next_file();
  IndexFile* writing_file() const;
  Task<Result<void>> upkeep();
  Task<void> pause();
  bool has_unsaved() const { return indexed_ > saved_ || list_changed_; }
  Task<Result<void>> save(bool clean);
  IndexState state_now(bool clean) const;
  void tell(const char* reason);

  // --- index_load.cc
  Task<Result<void>> load();
  Task<Result<std::vector<Found>>> list_files();
  Task<Result<void>> read_header(Found& f);
  // Takes files that can be relied on, and says where in the log to go on. False: all must be made again,
  // for the reason in `why`.
  Task<Result<bool>> keep_by_state(const IndexState& s, std::vector<Found>& found, const char*& why);
  bool keep_sealed(const IndexState& s, std::vector<Found>& found, const char*& why);
  Task<Result<bool>> keep_newest(const IndexState& s, std::vector<Found>& found, const char*& why);
  Task<Result<bool>> take_newest(const IndexState& s, Found& f);
  Task<Result<bool>> keep_by_rule(std::vector<Found>& found, const char*& why);
  Task<Result<bool>> begin_at_last();
  Task<Result<void>> remove_others(uint64_t known, const std::vector<Found>& found);
  void add_file(Found& f);

  Disk& disk_;
  const StoreOptions& options_;
  StoreStats& stats_;
  CommitLog& log_;
  const std::string dir_;
  const IndexLayout layout_;
  IndexStateFile state_file_;
  Inherited inherited_;

  std::deque<std::shared_ptr<IndexFile>> files_;  // by name; the last one is written when it is not full
  uint64_t last_name_ = 0;                        // no new file gets a smaller one
  uint64_t confirmed_ = 0;
  uint64_t indexed_ = 0;  // every record below has its entries
  uint64_t saved_ = 0;    // what `rmqd.index` says of it
  int64_t saved_ns_ = 0;
  int64_t trimmed_ns_ = 0;
  bool state_is_clean_ = false;  // `rmqd.index` says that the slots can be relied on
  bool list_changed_ = false;    // files were deleted since
  bool live_ = false;            // keys come from puts
  Batch waiting_;
  const char* damage_ = nullptr;
  const char* untold_ = nullptr;
  FailureListener* listener_ = nullptr;
  Scope tasks_;
  bool stopping_ = false;
  bool abandoned_ = false;  // the files stay as they are
  bool healthy_ = false;    // loaded, and nothing has failed since
  bool hurry_ = false;      // somebody waits in caught_up()
  Event work_, soon_, progress_, stop_;
};

}  // namespace rmq::store
