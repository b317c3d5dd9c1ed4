// Transactions. A half message lies in RMQ_SYS_TRANS_HALF_TOPIC, which no consumer reads, until its producer
// ends it; what is ended is named by an op record, in RMQ_SYS_TRANS_OP_HALF_TOPIC. Both topics, and how far
// the group CID_RMQ_SYS_TRANS has come in them, are as RocketMQ has them (storage.md 15), so that either
// broker goes on where the other stopped.
//
// Everything that ends a half message is one batch of the log: the message in its real topic, or the copy for
// the next check, and behind it the op record. The log keeps a batch whole, but for the last one of a crash;
// of that one the message may be there without the op record, and is then recognized at the next start by
// its prepared transaction offset. So a transaction is committed once, whatever happens.
//
// The open ones are in memory, each with the time of its next check; a group whose producers are all away
// delays nobody else's. A check rewrites the half message, with one more in TRANSACTION_CHECK_TIMES, and asks
// one producer of the group. After transactionCheckMax checks, or fileReservedTime after it was sent, a half
// message goes to TRANS_CHECK_MAX_TIME_TOPIC. From there an operator may put it back: a marker in
// rmq_sys_delivered goes with the new half message, so that each is put back once (delivery.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/broker/delivery.h"
#include "daemon/broker/text_map.h"
#include "proto/headers_transaction.h"
#include "proto/record.h"
#include "store/message_store.h"
#include "uring/sync.h"

namespace rmq::broker {

class Broker;

// The properties of a half message as its consumers get them: without what only its way here needed.
std::string committed_properties(const proto::RecordView& half);
// Those of a new copy in the half topic. The CRC of a record is of its body alone, so copies have one of
// their own, in front; the time of the first copy is last.
std::string copied_properties(const proto::RecordView& half, int64_t first_queue_offset, int32_t checks,
                              int64_t first_stored_ms);
// False for a copy of this broker whose properties are not as they were written. RocketMQ's copies of those
// are good: the same properties in any order, with another TRANSACTION_CHECK_TIMES.
bool has_good_properties(const proto::RecordView& half);
// Whether the one was made from the other, or both from the same half message: body and properties are the
// same, but for what copies, ends and delays change.
bool is_same_message(const proto::RecordView& a, const proto::RecordView& b);
// What RocketMQ's copies of a half message have in common with it (transaction_java.cc); 0: nothing.
uint64_t half_identity(const proto::RecordView& half);

// The answer to END_TRANSACTION.
struct EndOutcome {
  proto::ResponseCode code = proto::ResponseCode::SUCCESS;
  std::string remark;
};

// On the broker's loop, as all of the broker.
class TransactionService {
 public:
  explicit TransactionService(Broker& b) : broker_(b), resumes_(b, 2) {}
  // Reads what is open, then follows the half topic and asks producers; until stop().
  void start(Scope& scope);
  void stop();

  // Makes a half message of a send: its place and its properties. `properties` must outlive the put.
  // False: the properties leave no room for what checks add.
  bool prepare(store::MessageIn& m, std::string& properties, std::string_view unique_key) const;
  // A half message was stored.
  void wake() { half_arrived_.notify(); }

  // Commits or rolls back, once: a second end of the same half message changes nothing and is a success.
  // Waits until the open ones are known.
  Task<EndOutcome> end(proto::EndTransactionRequestHeader h);
  // Gives a message of TRANS_CHECK_MAX_TIME_TOPIC its checks again, once: of a second time only the answer is
  // a success.
  Task<EndOutcome> resume(std::string_view topic, std::string_view offset_id);

  // Physical offset of the oldest copy that is open; INT64_MAX: none is.
  int64_t needed_from() const;
  size_t open() const { return open_.size(); }
  const TextMap<uint64_t>& open_by_topic() const { return topics_; }
  uint64_t checks() const { return checks_; }
  uint64_t given_up() const { return given_up_; }

 private:
  struct Group {
    size_t open = 0;
    size_t turn = 0;              // which of its producers is asked next
    std::vector<int64_t> parked;  // due, but no producer is there; some may have ended since
  };
  using Groups = TextMap<Group>;
  using Topics = TextMap<uint64_t>;
  struct Half {
    int64_t physical = 0;
    int64_t origin = 0;       // queue offset of the first copy
    int64_t stored_ms = 0;    // its first copy
    int64_t given_up_ns = 0;  // when it has been there for too long
    int64_t due_ns = 0;
    int32_t bytes = 0;
    int32_t checks = 0;
    uint64_t identity = 0;  // by which RocketMQ's copies are known (transaction_java.cc); 0: none
    bool busy = false;      // a batch that ends this copy is on its way
    bool copying = false;   // and has a new copy
    bool is_copy = false;
    bool unplaced = false;  // and its first copy may lie elsewhere than `origin` says
    bool by_java = false;   // and RocketMQ made it of what it had taken
    Groups::value_type* group = nullptr;
    Topics::value_type* topic = nullptr;  // that it is for
  };
  using Open = std::map<int64_t, Half>;  // by queue offset in the half topic
  struct Op {
    int64_t queue_offset;  // at least so far on in the op topic
    int64_t half;          // the last half message that it names
  };
  struct Kin {  // one of several that may be the same half message
    uint64_t identity;
    int64_t offset;
    bool is_open;
    bool is_copy;
  };
  struct Due {
    int64_t offset;
    int32_t checks;
    store::LogExtent extent;
  };
  struct DueBatch {
    std::vector<Due> halves;
    size_t bytes = 0;
  };

  // reading the two topics: transactions.cc
  Task<void> follow_half_topic();
  Task<void> read_ops();
  Task<void> read_resumes();
  Task<Result<int64_t>> read_some(std::string_view topic, int64_t from, std::vector<DueMessage>& into);
  std::vector<int64_t> read_op(const proto::RecordView& record);
  void take_op(const proto::RecordView& record, int64_t queue_offset);
  Task<bool> read_halves();
  Task<void> finish_last_batch();
  Task<void> find_cut_end(int64_t last_record);
  Task<bool> is_whole(const proto::RecordView& copy, int64_t queue_offset);
  void add(const proto::RecordView& record, int64_t queue_offset);
  void open_half(int64_t queue_offset, Half half, std::string group, std::string topic);
  void retire(Open::iterator it);
  Open::iterator current(int64_t queue_offset, int64_t origin);
  // Waits until nothing that is on its way can change the answer.
  Task<Open::iterator> find(int64_t queue_offset, int64_t origin);
  store::MessageIn op_record(const std::string& body);
  void note_op(int64_t half);
  void note_progress();
  int64_t first_wait_ns(const proto::RecordView& record) const;

  // what RocketMQ left: transaction_java.cc
  Task<void> read_older_ops();
  Task<bool> read_ended(std::vector<Kin>& kin);
  Task<void> read_some_ended(std::vector<Kin>& kin, size_t& next, bool& good);
  Task<void> settle_java_copies();
  // The place that rmqd knows of a half message of which this is an older copy; nothing: none.
  std::optional<int64_t> origin_of_copies(const proto::RecordView& older) const;

  // ending: end_transaction.cc
  Task<EndOutcome> end_half(int64_t offset, const proto::RecordView& record, bool commit);
  Task<EndOutcome> put_back(const proto::RecordView& record);

  // checking: transaction_check.cc
  Task<void> check_loop();
  Task<void> check_due();
  Task<bool> take_due(DueBatch& to_ask, DueBatch& given_up);
  Task<void> rewrite(std::vector<Due> due, bool and_ask);
  Task<void> handle_uncopied(Due due, const proto::RecordView& record, bool and_ask);
  Task<bool> rescue();
  Task<void> give_up(std::vector<Due> due, const char* reason);
  void gave_up(const Due& due, const proto::RecordView& record, const char* reason);
  void ask(std::string_view group, const proto::RecordView& record, std::string_view properties,
           int64_t queue_offset, int64_t physical, int64_t store_timestamp_ms);
  bool has_producer(const Groups::value_type& group) const;
  bool unpark();
  void schedule(Open::iterator it, int64_t due_ns);
  void release(int64_t offset, int64_t again_in_ns);

  Broker& broker_;
  Delivery resumes_;                     // markers: what was given its checks again
  std::unordered_set<int64_t> resumed_;  // queue offsets in TRANS_CHECK_MAX_TIME_TOPIC
  Open open_;
  Groups groups_;
  Topics topics_;                                   // how many are open for each
  std::set<std::pair<int64_t, int64_t>> schedule_;  // due time, queue offset
  std::unordered_map<int64_t, int64_t> rewritten_;  // queue offset of the first copy to that of the newest
  std::map<int64_t, Half> early_;     // copies that were read before their batch had resolved here
  std::unordered_set<int64_t> done_;  // named by op records, not read yet
  std::vector<int64_t> superseded_;   // found at the start: without an op record of their own
  std::vector<Kin> java_ends_;        // named by op records of RocketMQ; at the start only
  std::unordered_map<uint64_t, int64_t> unplaced_;  // identity of open halves to their origin
  std::deque<Op> ops_;
  int64_t first_op_ = 0;   // queue offset; older ones are only of interest for what RocketMQ left
  int64_t next_half_ = 0;  // all below were read
  bool loaded_ = false;
  bool stopping_ = false;
  uint64_t checks_ = 0, given_up_ = 0;
  Event half_arrived_, read_, ended_, due_changed_;
};

}  // namespace rmq::broker
