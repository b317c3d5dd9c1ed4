#include "store/offline/log_scan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "store/format.h"

namespace rmq::store::offline {

namespace {
constexpr size_t window_bytes = 2u << 20;
constexpr uint64_t block_bytes = 4096;
constexpr uint64_t progress_bytes = 8u << 20;
}  // namespace

LogVisitor::~LogVisitor() = default;

// ---- the files ---------------------------------------------------------------------------------------

const LogFile* LogDir::find(uint64_t physical) const {
  auto it = std::upper_bound(files.begin(), files.end(), physical,
                             [](uint64_t p, const LogFile& f) { return p < f.base; });
  if (it == files.begin()) return nullptr;
  --it;
  return physical - it->base < file_bytes ? &*it : nullptr;
}

namespace {

// The least distance of two names is the size of all; with one file alone, its own size.
uint64_t size_of_files(const std::vector<LogFile>& files) {
  if (files.size() == 1) return files[0].bytes;
  uint64_t size = UINT64_MAX;
  for (size_t i = 1; i < files.size(); i++) size = std::min(size, files[i].base - files[i - 1].base);
  return size;
}

void check_sizes(LogDir& d, Findings& findings) {
  for (size_t i = 0; i < d.files.size(); i++) {
    LogFile& f = d.files[i];
    bool last = i + 1 == d.files.size();
    std::string path = "commitlog/" + f.name;
    if (d.file_bytes == 0 || f.base % d.file_bytes != 0)
      findings.damage(Kind::log_file, path, static_cast<int64_t>(f.base),
                      "its name is not a multiple of the size of the files, " + std::to_string(d.file_bytes));
    std::string size =
        "it has " + std::to_string(f.bytes) + " bytes, the others " + std::to_string(d.file_bytes);
    if (f.bytes > d.file_bytes || (f.bytes < d.file_bytes && !last))
      findings.damage(Kind::log_file, path, static_cast<int64_t>(f.base), size);
    else if (f.bytes < d.file_bytes)
      findings.note(Kind::log_file, path, static_cast<int64_t>(f.base), size + " (it is the last one)");
    if (!last && d.files[i + 1].base != f.base + d.file_bytes)
      findings.damage(Kind::log_file, path, static_cast<int64_t>(f.base + d.file_bytes),
                      "the file behind it is missing");
    f.bytes = std::min(f.bytes, d.file_bytes);
  }
}

}  // namespace

Result<LogDir> list_log(const std::string& path, Findings& findings) {
  LogDir d;
  d.path = path;
  TRY_VAR(entries, list_dir(path));
  for (const Entry& e : entries) {
    LogFile f{0, e.bytes, e.name};
    if (!e.is_dir && parse_file_name_20(e.name, f.base))
      d.files.push_back(std::move(f));
    else
      findings.note(Kind::log_file, "commitlog/" + e.name, -1, "not a file of the CommitLog");
  }
  if (!d.files.empty() && d.files.back().bytes == 0) {
    findings.note(Kind::log_file, "commitlog/" + d.files.back().name, -1,
                  "it is empty: a broker was stopped while it made the file");
    d.files.pop_back();
  }
  if (d.files.empty()) return d;
  d.file_bytes = size_of_files(d.files);
  check_sizes(d, findings);
  return d;
}

// ---- reading -----------------------------------------------------------------------------------------

LogReader::LogReader(const LogDir& dir) : dir_(dir) {}
LogReader::~LogReader() = default;

Result<void> LogReader::open_file(const LogFile& f) {
  if (&f == file_) return {};
  TRY_VAR(opened, InFile::open(dir_.path + "/" + f.name));
  open_ = std::move(opened);
  file_ = &f;
  return {};
}

// Up to the end of a block, where somebody may go on who reads past the cache.
Result<void> LogReader::read_now(const LogFile& f, uint64_t physical, size_t bytes) {
  if (bytes > capacity_) {
    capacity_ = std::max(bytes, window_bytes);
    memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  }
  const uint64_t at = physical - f.base;
  uint64_t end = at + capacity_;
  if (end - end % block_bytes >= at + bytes) end -= end % block_bytes;
  begin_ = physical;
  filled_ = 0;
  data_ = memory_.get();
  TRY_VAR(n, open_.read(at, {memory_.get(), std::min(end, f.bytes) - at}));
  filled_ = n;
  return {};
}

// From the window, which has what lies between `physical` and `from`, to the pieces that begin there. False:
// they do not.
bool LogReader::take_ahead(uint64_t from, uint64_t physical, size_t bytes) {
  auto piece = ahead_->front();
  if (!piece || piece->bytes.empty() || piece->begin != from) return false;
  const size_t tail = from - physical;
  const std::byte* const old = tail == 0 ? nullptr : data_ + (physical - begin_);
  if (tail <= PieceReader::slack_bytes && piece->end() >= physical + bytes) {
    std::byte* const to = piece->bytes.data() - tail;
    if (tail != 0) std::memcpy(to, old, tail);
    data_ = to;
    filled_ = tail + piece->bytes.size();
    begin_ = physical;
    ahead_->pop();
    return true;
  }
  // A long record: as many pieces as it takes, in memory of our own.
  std::vector<std::byte> all(old, old + tail);
  while (all.size() < bytes) {
    piece = ahead_->front();
    if (!piece || piece->bytes.empty() || piece->begin != physical + all.size()) return false;
    all.insert(all.end(), piece->bytes.begin(), piece->bytes.end());
    ahead_->pop();
  }
  capacity_ = all.size();
  memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  std::memcpy(memory_.get(), all.data(), all.size());
  data_ = memory_.get();
  begin_ = physical;
  filled_ = all.size();
  return true;
}

Result<void> LogReader::fill(const LogFile& f, uint64_t physical, size_t bytes) {
  const uint64_t end = begin_ + filled_;
  const bool same = &f == file_ && physical >= begin_ && physical <= end;
  const bool walks_on = filled_ != 0 && (same || physical == end);
  const uint64_t from = same ? end : physical;
  TRY(open_file(f));
  if (walks_on && ahead_ == nullptr && from % block_bytes == 0 && from < f.base + f.bytes)
    ahead_ = std::make_unique<PieceReader>(dir_, from);
  if (walks_on && ahead_ != nullptr && take_ahead(from, physical, bytes)) return {};
  ahead_.reset();
  return read_now(f, physical, bytes);
}

Result<Bytes> LogReader::view(uint64_t physical, size_t bytes) {
  const LogFile* f = dir_.find(physical);
  if (f == nullptr || physical - f->base >= f->bytes) return Bytes();
  size_t want = std::min<uint64_t>(bytes, f->base + f->bytes - physical);
  if (f != file_ || physical < begin_ || physical + want > begin_ + filled_) TRY(fill(*f, physical, want));
  return Bytes(data_ + (physical - begin_), filled_ - (physical - begin_));
}

uint64_t LogReader::next_data(uint64_t physical) const {
  if (file_ == nullptr || physical < file_->base || physical >= file_->base + file_->bytes) return physical;
  auto at = open_.next_data(physical - file_->base);
  return file_->base + std::min(at.value_or(file_->bytes), file_->bytes);
}

// ---- scanning ----------------------------------------------------------------------------------------

LogScan::LogScan(const LogDir& dir, LogVisitor& visitor) : dir_(dir), visitor_(visitor), reader_(dir) {}

Result<Spot> LogScan::look(uint64_t physical) {
  Spot out;
  TRY_VAR(head, reader_.view(physical, proto::record_bytes_min));
  auto front = proto::record_front(head);
  if (!front) {
    out.why = head.empty() ? "a CommitLog file is missing" : "the file ends here";
    out.zero = all_zero(head);
    return out;
  }
  uint64_t left = dir_.file_bytes - (physical - dir_.find(physical)->base);
  if (front->is_blank() && front->size == left) {
    out.kind = Spot::Kind::blank;
    out.bytes = left;
    return out;
  }
  out.zero = all_zero(head.first(std::min(head.size(), proto::record_bytes_min)));
  out.why = front->is_blank() ? "the end mark of a file is not at its end" : "no record starts here";
  if (!front->is_message()) return out;
  out.why = "the size of the record cannot be";
  if (front->size < proto::record_bytes_min || front->size + proto::blank_record_bytes > left) return out;
  TRY_VAR(bytes, reader_.view(physical, front->size));
  auto record = proto::parse_record(bytes, proto::CrcCheck::verify);
  if (!record) {
    out.why = record.error().code == Errc::limit ? "the file ends within the record" : record.error().where;
    if (record.error().code == Errc::corrupt) out.bytes = front->size;
    return out;
  }
  out.record = *record;
  out.bytes = record->size;
  if (record->physical_offset != static_cast<int64_t>(physical)) {
    out.why = "the record says another physical offset";
  } else if (!proto::property_crc_fits(*record, bytes)) {
    out.why = "the CRC of the whole record, in its property __CRC32#, is wrong";
  } else if (record->queue_id < 0 || record->queue_offset < 0 || !legal_topic(record->topic)) {
    out.why = "topic, queue id or queue offset of the record cannot be";
  } else {
    out.kind = Spot::Kind::record;
  }
  return out;
}

// The first valid record in [from, to) of one file; says where the last byte is that is not zero.
Result<bool> LogScan::search(uint64_t from, uint64_t to, uint64_t* at, LogEnd* end) {
  static constexpr std::byte magic[] = {std::byte{0xDA}, std::byte{0xA3}, std::byte{0x20}};
  constexpr size_t magic_at = 4;
  for (uint64_t p = from; p < to;) {
    TRY_VAR(all, reader_.view(p, std::min<uint64_t>(window_bytes, to - p)));
    Bytes b = all.first(std::min<uint64_t>(all.size(), to - p));
    if (b.empty()) return false;
    uint64_t next = p + b.size();
    if (all_zero(b)) {
      p = reader_.next_data(next);
      continue;
    }
    size_t last = b.size();
    while (b[last - 1] == std::byte{0}) last--;
    const void* hit = nullptr;
    if (b.size() > magic_at) hit = memmem(b.data() + magic_at, b.size() - magic_at, magic, sizeof magic);
    if (hit == nullptr) {
      end->nonzero_end = p + last;
      // A magic may lie across two windows.
      bool whole = next == to || b.size() <= magic_at + sizeof magic;
      p = whole ? next : next - magic_at - sizeof magic + 1;
      continue;
    }
    uint64_t found = p + static_cast<uint64_t>(static_cast<const std::byte*>(hit) - b.data()) - magic_at;
    end->nonzero_end = found + magic_at + sizeof magic;
    TRY_VAR(spot, look(found));
    if (spot.kind == Spot::Kind::record) {
      *at = found;
      return true;
    }
    p = found + 1;
  }
  return false;
}

// The next valid record behind `from`, in its file or a later one.
Result<bool> LogScan::find_next(uint64_t from, uint64_t* at, LogEnd* end) {
  for (const LogFile& f : dir_.files) {
    if (f.base + dir_.file_bytes <= from) continue;
    uint64_t begin = std::max(f.base, from);
    TRY_VAR(found, search(begin, f.base + f.bytes, at, end));
    if (found) return true;
  }
  return false;
}

Result<std::optional<uint64_t>> LogScan::next_record(uint64_t from) {
  TRY_VAR(spot, look(from));
  if (spot.kind == Spot::Kind::record) return from;
  uint64_t at = 0;
  LogEnd end;
  TRY_VAR(found, find_next(from, &at, &end));
  return found ? std::optional(at) : std::nullopt;
}

// Moves over what is at *pos. False: no record is there.
Result<bool> LogScan::step(uint64_t* pos) {
  TRY_VAR(spot, look(*pos));
  if (spot.kind == Spot::Kind::none) return false;
  if (spot.kind == Spot::Kind::record) TRY(visitor_.on_record(spot.record));
  *pos += spot.bytes;
  return true;
}

Result<LogEnd> LogScan::run(uint64_t from) {
  LogEnd out;
  uint64_t pos = from, told = from;
  for (;;) {
    if (pos - told >= progress_bytes) {
      told = pos;
      if (!visitor_.on_progress(pos)) {
        out.at = out.nonzero_end = pos;
        out.stopped = true;
        return out;
      }
    }
    TRY_VAR(moved, step(&pos));
    if (moved) continue;
    out.at = out.nonzero_end = pos;
    if (pos >= dir_.end_base()) return out;  // the last file is full
    TRY_VAR(spot, look(pos));
    Hole h{pos, 0, spot.why, 0, spot.bytes};
    TRY_VAR(found, find_next(pos, &h.end, &out));
    if (!found) {
      if (out.nonzero_end > pos) out.why = spot.why;
      return out;
    }
    TRY_VAR(next, look(h.end));
    h.next_store_timestamp_ms = next.record.store_timestamp_ms;
    visitor_.on_hole(h);
    pos = h.end;
  }
}

}  // namespace rmq::store::offline
