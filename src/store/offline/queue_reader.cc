#include "store/offline/queue_reader.h"

#include <algorithm>

namespace rmq::store::offline {

Result<QueueReader> QueueReader::open(const std::string& root, std::string_view topic, int32_t id) {
  QueueReader q;
  q.dir_ = root + "/consumequeue/" + std::string(topic) + "/" + std::to_string(id);
  TRY_VAR(entries, list_dir(q.dir_));
  bool first = true;
  for (const Entry& e : entries) {
    uint64_t at = 0;
    if (e.is_dir || !parse_file_name_20(e.name, at)) continue;
    auto begin = static_cast<int64_t>(at / unit_bytes);
    if (first) {
      q.begin_ = begin;
      q.file_units_ = static_cast<int64_t>(e.bytes / unit_bytes);
    }
    first = false;
    q.end_ = begin + static_cast<int64_t>(e.bytes / unit_bytes);
  }
  if (first || q.file_units_ == 0) return fail(Errc::not_found, "a ConsumeQueue without files");
  return q;
}

Result<std::vector<QueueUnit>> QueueReader::read(int64_t offset, int64_t count) const {
  std::vector<QueueUnit> out;
  int64_t to = std::min(offset + count, end_);
  std::vector<std::byte> buf;
  while (offset < to) {
    int64_t in_file = offset % file_units_;
    int64_t n = std::min(to - offset, file_units_ - in_file);
    buf.assign(static_cast<size_t>(n) * unit_bytes, std::byte{0});
    TRY_VAR(file,
            InFile::open(dir_ + "/" + file_name_20(static_cast<uint64_t>(offset - in_file) * unit_bytes)));
    TRY(file.read(static_cast<uint64_t>(in_file) * unit_bytes, buf));
    for (size_t at = 0; at < buf.size(); at += unit_bytes) out.push_back(decode_unit(buf.data() + at));
    offset += n;
  }
  return out;
}

}  // namespace rmq::store::offline
