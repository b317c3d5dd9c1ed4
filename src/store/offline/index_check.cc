#include "store/offline/index_check.h"

#include <algorithm>
#include <cstring>

#include "store/index_keys.h"

namespace rmq::store::offline {

namespace {
constexpr int64_t window_entries = 16'384;
constexpr size_t slots_at_once = 65'536;
}  // namespace

IndexChecker::IndexChecker(std::string root, Findings& findings)
    : root_(std::move(root)), findings_(findings) {}

// ---- files -------------------------------------------------------------------------------------------

void IndexChecker::judge_header(const IndexFile& f) {
  if (!is_sane(f.header, layout_)) tell(Kind::index_file, path_of(f), -1, "its header cannot be");
  if (!files_.empty() && f.header.count > 1 && files_.back().header.end_physical > f.header.begin_physical)
    tell(Kind::index_file, path_of(f), -1, "it begins before the file before it ends");
}

Result<void> IndexChecker::list(bool stopped, const IndexLayout& layout, int64_t log_min) {
  stopped_ = stopped;
  severity_ = stopped ? Severity::damage : Severity::note;
  layout_ = layout;
  log_min_ = log_min;
  auto entries = list_dir(root_ + "/index");
  if (!entries && entries.error().code == Errc::not_found) return {};
  if (!entries) return std::unexpected(entries.error());
  for (const Entry& e : *entries) {
    uint64_t number = 0;
    std::string path = "index/" + e.name;
    if (e.is_dir || !parse_index_name(e.name, number)) {
      findings_.note(Kind::index_file, path, -1, "not an IndexFile");
      continue;
    }
    if (e.bytes != layout_.file_bytes()) {
      // maxHashSlotNum and maxIndexNum are nowhere in the file.
      tell(Kind::index_file, path, -1,
           "it has " + std::to_string(e.bytes) + " bytes; with maxHashSlotNum " +
               std::to_string(layout_.slots) + " and maxIndexNum " + std::to_string(layout_.entries) +
               " it must be " + std::to_string(layout_.file_bytes()));
      continue;
    }
    std::byte head[index_header_bytes];
    TRY_VAR(file, InFile::open(root_ + "/" + path));
    TRY(file.read(0, head));
    IndexFile f{e.name, decode_index_header(head)};
    judge_header(f);
    if (!is_sane(f.header, layout_)) continue;
    files_.push_back(std::move(f));
  }
  stats_.files = files_.size();
  if (!files_.empty()) window_ = std::make_unique<std::byte[]>(window_entries * index_entry_bytes);
  return {};
}

Result<void> IndexChecker::open_file() {
  TRY_VAR(file, InFile::open(root_ + "/" + path_of(files_[at_file_])));
  open_ = std::move(file);
  newest_.assign(layout_.slots, 0);
  used_slots_ = 0;
  broken_chains_ = 0;
  number_ = 0;
  window_count_ = 0;
  return {};
}

Result<void> IndexChecker::compare_slots() {
  const IndexFile& f = files_[at_file_];
  std::vector<std::byte> buf(slots_at_once * index_slot_bytes);
  uint64_t wrong = 0, first = 0;
  for (size_t slot = 0; slot < layout_.slots; slot += slots_at_once) {
    size_t n = std::min<size_t>(slots_at_once, layout_.slots - slot);
    TRY(open_.read(layout_.slot_at(static_cast<uint32_t>(slot)),
                   MutableBytes(buf).first(n * index_slot_bytes)));
    for (size_t i = 0; i < n; i++) {
      auto v = load_be<int32_t>(buf.data() + i * index_slot_bytes);
      if (v == newest_[slot + i]) continue;
      if (wrong++ == 0) first = slot + i;
    }
  }
  if (wrong != 0)
    tell(Kind::index_file, path_of(f), static_cast<int64_t>(first),
         std::to_string(wrong) + " slots do not lead to their newest entry");
  if (used_slots_ != f.header.used_slots)
    tell(Kind::index_file, path_of(f), -1,
         "its header counts " + std::to_string(f.header.used_slots) + " used slots, there are " +
             std::to_string(used_slots_));
  return {};
}

// What is written last of a file that a killed broker had open may be behind its entries.
Result<void> IndexChecker::close_file() {
  bool newest = at_file_ + 1 == files_.size();
  if (broken_chains_ != 0)
    tell(Kind::index_file, path_of(files_[at_file_]), -1,
         std::to_string(broken_chains_) + " entries do not lead to the one before them in their slot");
  if (stopped_ || !newest) TRY(compare_slots());
  open_ = InFile();
  return {};
}

// ---- entries -----------------------------------------------------------------------------------------

void IndexChecker::check_chain() {
  uint32_t slot = layout_.slot_of(entry_.hash);
  if (entry_.hash < 0 || entry_.previous != newest_[slot]) broken_chains_++;
  if (newest_[slot] == 0) used_slots_++;
  newest_[slot] = static_cast<int32_t>(number_);
}

// The entry at hand and the one behind it.
Result<void> IndexChecker::load_window() {
  int64_t count = files_[at_file_].header.count;
  int64_t last = std::min(number_ + 1, count - 1);
  if (number_ >= window_first_ && last < window_first_ + window_count_) return {};
  window_first_ = number_;
  window_count_ = std::min(window_entries, count - number_);
  MutableBytes into{window_.get(), static_cast<size_t>(window_count_) * index_entry_bytes};
  TRY_VAR(n, open_.read(layout_.entry_at(number_), into));
  open_.will_need(layout_.entry_at(number_ + window_count_), into.size());  // the next window
  if (n < into.size()) std::memset(into.data() + n, 0, into.size() - n);
  return {};
}

IndexEntry IndexChecker::entry_in_window(int64_t number) const {
  return decode_index_entry(window_.get() + static_cast<size_t>(number - window_first_) * index_entry_bytes);
}

Result<bool> IndexChecker::next_entry() {
  have_entry_ = false;
  while (at_file_ < files_.size()) {
    if (!open_.is_open()) TRY(open_file());
    if (number_ + 1 >= files_[at_file_].header.count) {
      TRY(close_file());
      at_file_++;
      continue;
    }
    number_++;
    TRY(load_window());
    entry_ = entry_in_window(number_);
    check_chain();
    // An offset that is too large must not hide all that follow: they are in the order of the log.
    bool last = number_ + 1 >= files_[at_file_].header.count;
    if (!last && entry_in_window(number_ + 1).physical < entry_.physical) {
      orphan();
      continue;
    }
    return have_entry_ = true;
  }
  return false;
}

bool IndexChecker::in_hole(int64_t physical) const {
  auto p = static_cast<uint64_t>(physical);
  return std::any_of(holes_.begin(), holes_.end(), [p](const Range& r) { return p >= r.begin && p < r.end; });
}

// An entry at an offset where no record starts.
void IndexChecker::orphan() {
  if (entry_.physical >= 0 && entry_.physical < log_min_) {
    stats_.expired++;
    return;
  }
  if (in_hole(entry_.physical)) return;
  findings_.add(severity_, Kind::index_entry, [&] {
    return Finding{
        Severity::damage, Kind::index_entry, path_of(files_[at_file_]), number_,
        "the entry points at " + std::to_string(entry_.physical) + ", where no record with that key starts"};
  });
}

void IndexChecker::check_entry(const proto::RecordView& r) {
  bool known = false;
  for (size_t i = 0; i < hashes_.size(); i++) {
    if (hashes_[i] != entry_.hash) continue;
    known = true;
    if (!found_[i]) {
      found_[i] = true;
      break;
    }
  }
  if (!known) {
    orphan();
    return;
  }
  stats_.entries++;
  int64_t seconds = (r.store_timestamp_ms - files_[at_file_].header.begin_timestamp_ms) / 1000;
  if (entry_.seconds == std::clamp<int64_t>(seconds, 0, INT32_MAX)) return;
  findings_.add(severity_, Kind::index_entry, [&] {
    return Finding{severity_, Kind::index_entry, path_of(files_[at_file_]), number_,
                   "the entry says second " + std::to_string(entry_.seconds) +
                       " of its file, the record at " + std::to_string(r.physical_offset) + " is of second " +
                       std::to_string(seconds)};
  });
}

Result<void> IndexChecker::on_record(const proto::RecordView& r) {
  if (files_.empty()) return {};
  hashes_.clear();
  bool has_tags = false;
  if (is_indexed(r.sys_flag)) {
    const StoredProperties p = stored_properties(r.properties);
    each_index_hash(r.topic, p, [&](int32_t h) { hashes_.push_back(h); });
    has_tags = !p.tags.empty();  // their hash is the last one
  }
  found_.assign(hashes_.size(), false);
  if (!have_entry_ && at_file_ < files_.size()) TRY(next_entry());
  while (have_entry_ && entry_.physical < r.physical_offset) {
    orphan();
    TRY(next_entry());
  }
  while (have_entry_ && entry_.physical == r.physical_offset) {
    check_entry(r);
    TRY(next_entry());
  }
  const auto missing = std::find(found_.begin(), found_.end(), false);
  if (missing == found_.end()) return {};
  if (!have_entry_) {
    stats_.unindexed++;
    return {};
  }
  if (r.physical_offset < files_.front().header.begin_physical) return {};  // its file was deleted
  if (has_tags && missing + 1 == found_.end()) {
    stats_.untagged++;
    return {};
  }
  findings_.add(severity_, Kind::index_entry, [&] {
    return Finding{severity_, Kind::index_entry, path_of(files_[at_file_]), r.physical_offset,
                   "a key of the record there is not indexed, later ones are"};
  });
  return {};
}

Result<void> IndexChecker::finish() {
  if (files_.empty()) return {};
  if (!have_entry_) TRY(next_entry());
  while (have_entry_) {
    orphan();
    TRY(next_entry());
  }
  if (stats_.untagged != 0)
    findings_.note(Kind::index_entry, "index", -1,
                   std::to_string(stats_.untagged) +
                       " records are not indexed by their TAGS, as RocketMQ leaves them before 5.5");
  return {};
}

}  // namespace rmq::store::offline
