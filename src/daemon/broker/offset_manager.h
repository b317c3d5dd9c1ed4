// Consumer offsets: "topic@group" to queue to the next offset to consume, as in consumerOffset.json with its
// log; resets that an operator asked for and that the next pull must see; and, in memory only, how far each
// group pulled. Changes of the log: "C <queue> <offset> <key>", and "D <key>" for all queues of a key. The
// file has no place for resets, so those in force are in the log alone (docs/formats.md, 6.1): "R <queue>
// <target> <low> <high> <until> <key>", and "E <queue> <key>" when the group has taken notice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/logged_table.h"
#include "daemon/broker/pair_index.h"
#include "daemon/broker/text_map.h"
#include "proto/bodies_config.h"

namespace rmq::broker {

// Who keeps offsets of some queues himself, and has them shown here (pop/pop_table.h).
class OffsetFollower {
 public:
  virtual ~OffsetFollower() = default;
  // The offsets were read from a file that LoggedTable names so.
  virtual void offsets_read(const std::string& file) = 0;
  // One of that name will be written.
  virtual Task<void> offsets_to_be_written(std::string file) = 0;
  // Somebody else set an offset, or took all of a "topic@group" away.
  virtual void offset_set(std::string_view group, std::string_view topic, int32_t queue_id,
                          int64_t offset) = 0;
  virtual void offsets_removed(std::string_view key) = 0;
  // Whether what he made of those calls is on disk; resolves when it is.
  virtual bool sets_are_kept() const = 0;
  virtual Task<Result<void>> sets_kept() = 0;
};

class OffsetManager : public LoggedTable {
 public:
  using Queues = std::map<int32_t, int64_t>;
  // `light`: the file is RocketMQ's lmqConsumerOffset.json, with a table more.
  OffsetManager(Disk& disk, std::string path, Durability d, bool light = false)
      : LoggedTable(disk, std::move(path), d), light_(light) {}
  // Before load(): where there is no file of our name, the one of `other` is taken with its log. So the
  // offsets stay when light queues are switched on or off.
  Task<Result<void>> take_over(Disk& disk, std::string other);

  void set_follower(OffsetFollower* f) { follower_ = f; }
  // As in LoggedTable, and with what the follower has to keep.
  bool is_kept(uint64_t change) const;
  Task<Result<void>> kept(uint64_t change);
  // The follower's: an offset of his has moved. He keeps it, the file shows it.
  void follow(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset);

  // False: a reset is pending for that queue, or was taken a moment ago and this offset is one from before
  // it, which was on its way; the commit does not count.
  bool commit(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset);
  // A pending reset's target, else what was committed.
  std::optional<int64_t> query(std::string_view group, std::string_view topic, int32_t queue_id) const;
  const Queues* queues(std::string_view group, std::string_view topic) const;

  void set_reset(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset);
  // The queue ends there, before the offset or the reset of the group: it goes on from its end.
  void cut(std::string_view group, std::string_view topic, int32_t queue_id, int64_t end);
  // The target of a pending reset, which is then no longer pending but committed. `wanted`: where the group
  // would have gone on, so it may have all before that in its hands; -1: it did not say.
  std::optional<int64_t> take_reset(std::string_view group, std::string_view topic, int32_t queue_id,
                                    int64_t wanted = -1);

  // The members were told to go on at `target`, and the one that has the queue will commit it
  // (useServerSideResetOffset=false). Until then commits count; from then on those of before do not, as after
  // take_reset().
  void note_told(std::string_view group, std::string_view topic, int32_t queue_id, int64_t target);

  // The group pulls from there: when that is the target of its last reset, it has taken notice of it.
  void note_pull(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset);
  void note_pulled(std::string_view group, std::string_view topic, int32_t queue_id, int64_t next_offset);
  int64_t pulled(std::string_view group, std::string_view topic, int32_t queue_id) const;  // -1: never

  // With offsets that were committed.
  std::vector<std::string> topics_of(std::string_view group) const;
  std::vector<std::string> groups_of(std::string_view topic) const;
  void remove_topic(std::string_view topic);
  void remove_group(std::string_view group);
  // Where `to_group` is elsewhere it is set to what `from_group` has: with `as_reset`, or where it has a
  // reset that is in force, by set_reset().
  void copy(std::string_view from_group, std::string_view to_group, std::string_view topic, bool as_reset);
  // How many pairs of topic and group all look-ups and removals by one of the two have looked at.
  uint64_t looked_at() const { return looked_at_; }

  proto::ConsumerOffsetWrapper snapshot() const;

 protected:
  std::string render() const override;
  Result<void> parse(std::string_view text) override;
  bool apply(std::string_view change) override;
  std::vector<std::string> beside_file() override;
  void after_read() override;
  Task<void> before_write(std::string line) override;

 private:
  using Table = TextMap<Queues>;
  static const Queues* find(const Table& t, std::string_view group, std::string_view topic);
  Queues& make(Table& t, std::string_view group, std::string_view topic);
  Queues& make_committed(const std::string& key);
  void set(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset);
  void remove(std::string_view group, std::string_view topic);
  // Of a reset: offsets that the group may have committed before it was told, and until when they may come;
  // pending until then, its target is in resets_ too.
  struct Overtaken {
    static constexpr int64_t pending = INT64_MAX;
    int64_t low = 0, high = 0;
    int64_t until_ns = pending;
    int64_t target = -1;
  };
  static std::string change_of(std::string_view key, int32_t queue_id, const Overtaken& o);
  void apply_removal(std::string_view key);
  void apply_reset(int32_t queue_id, Overtaken o, int64_t until_ms, const std::string& key);
  void apply_notice(int32_t queue_id, std::string_view key);
  bool is_overtaken(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset);
  bool is_told(std::string_view group, std::string_view topic, int32_t queue_id, int64_t offset);
  void begin_at_told(const std::string& key, int32_t queue_id, int64_t committed, Overtaken told);
  int64_t committed_or_0(std::string_view group, std::string_view topic, int32_t queue_id) const;
  bool is_reset(std::string_view group, std::string_view topic, int32_t queue_id) const;
  void forget_overtaken(int64_t now_ns);
  const bool light_;
  Table offsets_, resets_, pulled_;
  PairIndex index_;  // of what is in any of them
  mutable uint64_t looked_at_ = 0;
  OffsetFollower* follower_ = nullptr;
  TextMap<std::map<int32_t, Overtaken>> overtaken_;
  TextMap<std::map<int32_t, Overtaken>> told_;  // until `until_ns` a commit of the target is expected
  proto::DataVersion version_;
  uint64_t commits_ = 0;
};

}  // namespace rmq::broker
