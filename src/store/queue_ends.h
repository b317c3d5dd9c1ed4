// Where queues end of which the log has nothing any more: rmqd.ends. The end of every other queue is in the
// log, in its last record; but when retention takes the file of the log that held it, only the queue's own
// files would know, and those are what a crash, a lost file or a rebuild may take. Offsets that begin again
// would make consumers miss messages. So before a file of the log goes, the ends of the queues that then have
// no durable record are written here, durable; a recovery takes them for more than what queue files say.
//
// One writer at a time; the file is small (some 40 bytes a queue), and written as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/ends_format.h"
#include "store/queue_files.h"
#include "uring/sync.h"

namespace rmq::store {

class QueueEnds {
 public:
  QueueEnds(Disk& disk, const StoreOptions& o, QueueTable& table, QueueFiles& queues);

  // --- while a store opens
  Task<Result<void>> load();  // a missing or damaged file knows nothing, and is no error
  // By topic and queue id, as the file has it: the next offset is not less. Empty when recovery is over.
  using Known = std::map<std::pair<std::string, int32_t>, int64_t>;
  const Known& known() const { return known_; }
  int64_t end_of(const std::string& topic, int32_t id) const;  // 0: not known
  // The file is for a log that begins there. One that still begins before has more of the queues than the
  // file says; of one that begins later something was lost without us.
  int64_t log_begin() const { return log_begin_; }
  // Queues of the table of which the log has nothing become known as well, and durable. `all`: every queue.
  Task<Result<void>> learn(int64_t log_min, bool all = false);
  Task<Result<void>> clear();  // there is no log
  void forget_known() { known_.clear(); }

  // --- while it is open
  // Call it before the log loses what lies below `log_min`; all below `durable`, which is not less, is on
  // stable storage. Durable when it resolves. Errc::no_space: only in memory, see save().
  Task<Result<void>> log_will_begin_at(int64_t log_min, int64_t durable);
  Task<Result<void>> save();
  // Queues that have left the table: nothing may remember their ends. Before their files go.
  Task<Result<void>> forget(const std::vector<QueueRef>& queues);

 private:
  Task<Result<void>> write();
  Task<Result<void>> replace(QueueEndsFile f);
  Task<void> look_at(ConsumeQueue& q, int64_t log_min, int64_t durable, bool& changed);

  Disk& disk_;
  const std::string path_;
  QueueTable& table_;
  QueueFiles& queues_;
  Semaphore writer_{1};
  int64_t log_begin_ = 0;
  bool unsaved_ = false;  // the file is not what it should be
  Known known_;
};

}  // namespace rmq::store
