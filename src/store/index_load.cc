// The start of the index: which files in the directory can be relied on, and from where in the log to go on.
//
// With `rmqd.index`: full files that it knows must be there, with the end that it says (those that retention
// has deleted since may be missing); of the newest one the entries below its count are good. What it does not
// know was made after it, and goes.
//
// Without: as RocketMQ judges them. After a stop in order all are good; after a crash those that end at or
// before the indexMsgTimestamp of `checkpoint` and are full, the others go; of several that end exactly then
// (store timestamps stand still while the clock is set back) only the first is sure to have been safe. Then
// the log is followed from the last message that the last file has, which is indexed again: some of its keys
// may have gone into a file that is lost.
#include <algorithm>
#include <ranges>

#include "base/check.h"
#include "store/index_service.h"

namespace rmq::store {

struct IndexService::Found {
  uint64_t name = 0;
  bool right_size = false;
  bool kept = false;
  IndexHeader header;
};

namespace {

const char* const why_missing = "an index file is missing";
const char* const why_damaged = "an index file is damaged";
const char* const why_layout = "maxHashSlotNum or maxIndexNum is not what the index files were made with";
const char* const why_ahead = "the index knows messages that the CommitLog does not have";

}  // namespace

Task<Result<void>> IndexService::read_header(Found& f) {
  CO_TRY_VAR(file, co_await disk_.open(dir_ + "/" + index_name(f.name), {}));
  std::byte bytes[index_header_bytes];
  auto n = co_await file->read(0, bytes);
  co_await file->close();
  if (!n) co_return std::unexpected(n.error());
  if (*n == sizeof bytes) f.header = decode_index_header(bytes);
  co_return Result<void>();
}

Task<Result<std::vector<IndexService::Found>>> IndexService::list_files() {
  std::vector<Found> found;
  CO_TRY_VAR(entries, co_await disk_.list(dir_));
  for (const DirEntry& e : entries) {
    Found f;
    if (e.is_dir || !parse_index_name(e.name, f.name)) continue;
    f.right_size = e.bytes == layout_.file_bytes();
    if (f.right_size) CO_TRY(co_await read_header(f));
    found.push_back(f);
  }
  co_return std::move(found);
}

void IndexService::add_file(Found& f) {
  f.kept = true;
  auto file = std::make_shared<IndexFile>(disk_, dir_, f.name, layout_, stats_);
  file->set_header(f.header);
  file->set_readable(true);
  last_name_ = std::max(last_name_, f.name);
  files_.push_back(std::move(file));
}

// Behind the last file that was kept.
Task<Result<bool>> IndexService::begin_at_last() {
  indexed_ = log_.segments().first_base();
  if (files_.empty()) co_return true;
  uint64_t last = static_cast<uint64_t>(files_.back()->header().end_physical);
  if (last < indexed_) co_return true;
  if (last >= confirmed_) co_return false;
  std::byte head[proto::record_bytes_min];
  CO_TRY(co_await log_.copy(last, head));
  auto front = proto::record_front(head);
  indexed_ = last;
  co_return front && front->is_message() && proto::record_physical_offset(head) == static_cast<int64_t>(last);
}

// ---- by our own state ----------------------------------------------------------------------------------

bool IndexService::keep_sealed(const IndexState& s, std::vector<Found>& found, const char*& why) {
  const int64_t log_min = static_cast<int64_t>(log_.segments().first_base());
  auto it = found.begin();
  if (!s.sealed_complete && !s.sealed.empty())
    for (; it != found.end() && it->name < s.sealed.front().name; ++it)
      if (it->right_size && is_sane(it->header, layout_)) add_file(*it);
  for (const IndexState::Sealed& sealed : s.sealed) {
    it = std::find_if(it, found.end(), [&](const Found& f) { return f.name >= sealed.name; });
    if (it == found.end() || it->name != sealed.name) {
      if (sealed.end_physical < log_min) continue;
      why = why_missing;
      return false;
    }
    bool good = it->right_size && is_sane(it->header, layout_) && it->header.count > 1 &&
                it->header.end_physical == sealed.end_physical;
    if (!good) {
      why = why_damaged;
      return false;
    }
    add_file(*it);
  }
  return true;
}

// False: it is not what it should be.
Task<Result<bool>> IndexService::take_newest(const IndexState& s, Found& f) {
  const bool untouched = s.clean && f.header == s.newest_header;
  f.header = s.newest_header;
  if (!f.right_size || !is_sane(f.header, layout_)) co_return false;
  auto file = std::make_shared<IndexFile>(disk_, dir_, f.name, layout_, stats_);
  file->set_header(f.header);
  Result<void> r;
  if (untouched)
    r = co_await file->open();
  else
    r = co_await file->rebuild(abandoned_);  // a stop in order waits for it: RocketMQ would rely on the slots
  if (!r) co_await file->end_writing();
  if (!r && r.error().code == Errc::corrupt) co_return false;
  if (!r) co_return std::unexpected(r.error());
  f.kept = true;
  last_name_ = std::max(last_name_, f.name);
  files_.push_back(std::move(file));
  state_is_clean_ = untouched;
  co_return true;
}

Task<Result<bool>> IndexService::keep_newest(const IndexState& s, std::vector<Found>& found,
                                             const char*& why) {
  const uint64_t indexed = std::max(static_cast<uint64_t>(s.indexed), log_.segments().first_base());
  auto it = std::find_if(found.begin(), found.end(), [&](const Found& f) { return f.name == s.newest; });
  bool good = s.newest == 0;
  if (!good && it != found.end()) {
    CO_TRY_VAR(taken, co_await take_newest(s, *it));
    good = taken;
  }
  if (good) {
    indexed_ = indexed;  // not before: look-ups go into the files then
    co_return true;
  }
  why = it == found.end() ? why_missing : why_damaged;
  tell(why);  // of the others nothing is lost
  list_changed_ = true;
  co_return co_await begin_at_last();
}

Task<Result<bool>> IndexService::keep_by_state(const IndexState& s, std::vector<Found>& found,
                                               const char*& why) {
  why = why_layout;
  if (s.layout != layout_) co_return false;
  why = why_ahead;
  if (s.indexed < 0 || static_cast<uint64_t>(s.indexed) > confirmed_) co_return false;
  if (!keep_sealed(s, found, why)) co_return false;
  co_return co_await keep_newest(s, found, why);
}

// ---- by RocketMQ's rule --------------------------------------------------------------------------------

Task<Result<bool>> IndexService::keep_by_rule(std::vector<Found>& found, const char*& why) {
  const int64_t safe_ms = inherited_.index_msg_timestamp_ms;
  int64_t last_end = -1, last_end_ms = -1;
  for (Found& f : found) {
    bool full = static_cast<uint32_t>(f.header.count) >= layout_.entries;
    bool safe = inherited_.stopped_in_order ||
                (full && f.header.end_timestamp_ms <= safe_ms && last_end_ms < safe_ms);
    bool good = f.right_size && is_sane(f.header, layout_) && f.header.count > 1 &&
                f.header.begin_physical >= last_end &&
                f.header.end_physical < static_cast<int64_t>(confirmed_);
    bool empty = f.right_size && f.header == IndexHeader{};
    if (inherited_.stopped_in_order && !good && !empty) tell(why_damaged);
    if (!safe || !good) break;  // nor those behind it: there would be a gap
    add_file(f);
    last_end = f.header.end_physical;
    last_end_ms = f.header.end_timestamp_ms;
    CO_TRY_VAR(file, co_await disk_.open(files_.back()->path(), {.write = true}));
    auto synced = co_await file->sync();  // its last owner may not have done it
    co_await file->close();
    if (!synced) {
      // From the end on, and those behind it, too: a gap would not be seen.
      for (const Found& g : std::views::reverse(found))
        if (g.name >= f.name) co_await forget_unsafe(dir_ + "/" + index_name(g.name));
      co_return std::unexpected(synced.error());
    }
  }
  if (!files_.empty() && !files_.back()->full()) CO_TRY(co_await files_.back()->open());
  why = why_damaged;
  co_return co_await begin_at_last();
}

// ---- all of it -----------------------------------------------------------------------------------------

Task<Result<void>> IndexService::remove_others(uint64_t known, const std::vector<Found>& found) {
  const int64_t log_min = static_cast<int64_t>(log_.segments().first_base());
  bool unknown = false;
  for (const Found& f : found) {
    if (f.kept) continue;
    bool expired = f.right_size && f.header.end_physical < log_min;  // deleted before, which was lost
    unknown = unknown || (f.name < known && !expired);
    auto removed = co_await disk_.remove(dir_ + "/" + index_name(f.name));
    if (!removed && removed.error().code != Errc::not_found) co_return removed;
  }
  if (unknown) tell("there are index files that are not of this index");
  co_return Result<void>();
}

// After a stop in order all files count as good where no state says which are. After a crash, or trouble with
// the files, that may be wrong: then a state says that none is.
Task<Result<void>> IndexService::disown() {
  if (inherited_.stopped_in_order) co_return Result<void>();
  auto found = co_await list_files();
  if (!found && found.error().code == Errc::not_found) co_return Result<void>();
  if (!found) co_return std::unexpected(found.error());
  if (found->empty()) co_return Result<void>();
  CO_TRY_VAR(state, co_await state_file_.load());
  if (state) co_return Result<void>();
  IndexState none;
  none.layout = layout_;
  none.indexed = static_cast<int64_t>(log_.segments().first_base());
  co_return co_await state_file_.save(none);
}

Task<Result<void>> IndexService::load() {
  const char* why = std::exchange(damage_, nullptr);
  const bool forced = why != nullptr;
  state_is_clean_ = false;
  saved_ = 0;
  saved_ns_ = trimmed_ns_ = Loop::current().now_ns();
  CO_TRY(co_await disk_.make_dirs(dir_));
  CO_TRY_VAR(state, co_await state_file_.load());
  CO_TRY_VAR(found, co_await list_files());
  bool good = false;
  if (!forced && state) {
    CO_TRY_VAR(kept, co_await keep_by_state(*state, found, why));
    good = kept;
    saved_ = good ? static_cast<uint64_t>(state->indexed) : 0;
  } else if (!forced) {
    CO_TRY_VAR(kept, co_await keep_by_rule(found, why));
    good = kept;
  }
  if (!good) {
    stats_.index_discards++;
    tell(why);
    co_await let_go();
    for (Found& f : found) f.kept = false;
    indexed_ = log_.segments().first_base();
  }
  co_return co_await remove_others(good && state ? state->newest : 0, found);
}

}  // namespace rmq::store
