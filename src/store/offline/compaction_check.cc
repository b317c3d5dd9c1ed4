#include "store/offline/compaction_check.h"

#include <algorithm>

#include "store/compaction_format.h"
#include "store/format.h"

namespace rmq::store::offline {

namespace {

constexpr size_t small_file_max = 16u << 20;

// Bytes of a file that is read from front to back, in pieces.
class Forward {
 public:
  explicit Forward(InFile file) : file_(std::move(file)) {}
  // So many bytes from `at`, which never goes back; fewer at the end of the file.
  Result<Bytes> view(uint64_t at, size_t bytes) {
    if (at < begin_ || at + bytes > begin_ + filled_) {
      buffer_.resize(std::max(bytes, piece_bytes));
      begin_ = at;
      TRY_VAR(n, file_.read(at, buffer_));
      filled_ = n;
    }
    const Bytes from = Bytes(buffer_).first(filled_).subspan(at - begin_);
    return from.first(std::min(from.size(), bytes));
  }

 private:
  static constexpr size_t piece_bytes = 1u << 20;
  InFile file_;
  std::vector<std::byte> buffer_;
  uint64_t begin_ = 0;
  size_t filled_ = 0;
};

class QueueCheck {
 public:
  QueueCheck(const std::string& root, std::string topic, int32_t id, bool stopped, Findings& findings,
             CompactionStats& stats)
      : root_(root),
        topic_(std::move(topic)),
        id_(id),
        stopped_(stopped),
        findings_(findings),
        stats_(stats) {}
  Result<void> run();

 private:
  std::string dir(std::string_view kind) const {
    return std::string(kind) + "/" + topic_ + "/" + std::to_string(id_);
  }
  Result<std::vector<Entry>> files_in(std::string_view kind);
  Result<void> check_pair(const Entry& log, bool last);
  // Why the unit does not describe a record that lies there; null: it does.
  Result<const char*> why_wrong(const BatchUnit& u, uint64_t base, uint64_t expected_at, Forward& log);

  const std::string& root_;
  const std::string topic_;
  const int32_t id_;
  const bool stopped_;
  Findings& findings_;
  CompactionStats& stats_;
  int64_t last_offset_ = -1;
};

Result<std::vector<Entry>> QueueCheck::files_in(std::string_view kind) {
  auto entries = list_dir(root_ + "/" + dir(kind));
  if (!entries && entries.error().code == Errc::not_found) return std::vector<Entry>();
  if (!entries) return entries;
  std::vector<Entry> files;
  uint64_t base = 0;
  for (const Entry& e : *entries) {
    if (!e.is_dir && parse_file_name_20(e.name, base))
      files.push_back(e);
    else if (e.is_dir && (e.name == compacting_subdir || e.name == replicating_subdir))
      findings_.note(Kind::other, dir(kind) + "/" + e.name, -1, "what a broker was about to make");
    else
      findings_.note(Kind::other, dir(kind) + "/" + e.name, -1, "not a file of a compacted queue");
  }
  return files;
}

Result<const char*> QueueCheck::why_wrong(const BatchUnit& u, uint64_t base, uint64_t expected_at,
                                          Forward& log) {
  if (u.count != 1 || static_cast<uint64_t>(u.physical_offset) != base + expected_at)
    return "it does not lie behind the one before";
  if (u.base_offset <= last_offset_) return "its queue offset is not above the one before";
  TRY_VAR(bytes, log.view(expected_at, static_cast<size_t>(u.bytes)));
  auto v = proto::parse_record(bytes, proto::CrcCheck::verify);
  if (!v) return "there is no valid record where it points";
  if (v->topic != topic_ || v->queue_id != id_) return "its record is another queue's";
  if (u != compacted_unit_of(*v, u.physical_offset)) return "it says something else than its record";
  return nullptr;
}

Result<void> QueueCheck::check_pair(const Entry& log, bool last) {
  const std::string path = dir(compaction_queue_dir) + "/" + log.name;
  auto queue_file = InFile::open(root_ + "/" + path);
  if (!queue_file && queue_file.error().code == Errc::not_found) {
    findings_.note(Kind::queue_file, path, -1, "it is missing: a start makes it again from the log file");
    return {};
  }
  if (!queue_file) return std::unexpected(queue_file.error());
  TRY_VAR(log_file, InFile::open(root_ + "/" + dir(compaction_log_dir) + "/" + log.name));
  Forward units(std::move(*queue_file)), records(std::move(log_file));
  uint64_t base = 0, at = 0;
  parse_file_name_20(log.name, base);
  stats_.files++;
  for (uint64_t i = 0;; i++) {
    TRY_VAR(bytes, units.view(i * batch_unit_bytes, batch_unit_bytes));
    if (bytes.size() < batch_unit_bytes) return {};
    const BatchUnit u = decode_batch_unit(bytes.data());
    if (!u.is_message()) return {};
    TRY_VAR(wrong, why_wrong(u, base, at, records));
    if (wrong != nullptr) {
      const bool cut = last && !stopped_;
      findings_.add({cut ? Severity::note : Severity::damage, Kind::unit_wrong, path,
                     static_cast<int64_t>(i * batch_unit_bytes),
                     std::string(wrong) + (cut ? ": a start cuts it here" : "")});
      return {};
    }
    at += static_cast<uint64_t>(u.bytes);
    last_offset_ = u.base_offset;
    stats_.records++;
  }
}

Result<void> QueueCheck::run() {
  TRY_VAR(logs, files_in(compaction_log_dir));
  TRY_VAR(queues, files_in(compaction_queue_dir));
  stats_.queues++;
  for (const Entry& e : queues) {
    if (std::ranges::find(logs, e.name, &Entry::name) != logs.end()) continue;
    const bool behind = logs.empty() || e.name > logs.back().name;
    findings_.add({behind && !stopped_ ? Severity::note : Severity::damage, Kind::log_file,
                   dir(compaction_log_dir) + "/" + e.name, -1, "it is missing, its queue file is there"});
  }
  for (const Entry& e : logs) TRY(check_pair(e, &e == &logs.back()));
  return {};
}

}  // namespace

Result<CompactionStats> check_compaction(const std::string& root, bool stopped, Findings& findings) {
  CompactionStats stats;
  const std::string swap_path = root + "/" + std::string(compaction_swap_file);
  auto swap = read_small_file(swap_path, small_file_max);
  if (swap)
    findings.note(Kind::other, std::string(compaction_swap_file), -1,
                  "a broker was stopped while it replaced compacted files: its next start goes on");
  else if (swap.error().code != Errc::not_found)
    return std::unexpected(swap.error());
  const auto under_way = swap ? decode_compaction_swap(*swap) : std::nullopt;
  auto topics = list_dir(root + "/" + std::string(compaction_log_dir));
  if (!topics && topics.error().code == Errc::not_found) return stats;
  if (!topics) return std::unexpected(topics.error());
  for (const Entry& t : *topics) {
    if (!t.is_dir || !legal_topic(t.name)) continue;
    TRY_VAR(ids, list_dir(root + "/" + std::string(compaction_log_dir) + "/" + t.name));
    for (const Entry& e : ids) {
      int32_t id = 0;
      if (!e.is_dir || !parse_queue_id(e.name, id)) continue;
      if (under_way && under_way->topic == t.name && under_way->queue_id == id) continue;
      QueueCheck queue(root, t.name, id, stopped, findings, stats);
      TRY(queue.run());
    }
  }
  return stats;
}

}  // namespace rmq::store::offline
