#include "store/index_state.h"

#include <cstring>

#include "base/check.h"
#include "base/crc.h"

namespace rmq::store {

namespace {

constexpr std::string_view magic = "RMQDINDX";
constexpr uint32_t version = 1;
constexpr size_t body_at = 16;  // magic 8, version 4, CRC 4
constexpr size_t fixed_bytes = body_at + 8 + 4 + 4 + 4 + 8 + 8 + index_header_bytes + 4;
static_assert(fixed_bytes + index_state_sealed_max * 16 <= index_state_slot_bytes);

}  // namespace

void encode_index_state(const IndexState& s, MutableBytes slot) {
  check(slot.size() == index_state_slot_bytes && s.sealed.size() <= index_state_sealed_max);
  std::memset(slot.data(), 0, slot.size());
  ByteWriter w(slot.subspan(body_at));
  w.put<uint64_t>(s.sequence);
  w.put<uint32_t>((s.clean ? 1u : 0u) | (s.sealed_complete ? 2u : 0u));
  w.put<uint32_t>(s.layout.slots);
  w.put<uint32_t>(s.layout.entries);
  w.put<int64_t>(s.indexed);
  w.put<uint64_t>(s.newest);
  std::byte header[index_header_bytes];
  encode_index_header(header, s.newest_header);
  w.put_text(as_text(header));
  w.put<uint32_t>(static_cast<uint32_t>(s.sealed.size()));
  for (const IndexState::Sealed& f : s.sealed) {
    w.put<uint64_t>(f.name);
    w.put<int64_t>(f.end_physical);
  }
  ByteWriter head(slot);
  head.put_text(magic);
  head.put<uint32_t>(version);
  head.put<uint32_t>(crc32(slot.subspan(body_at)));
}

std::optional<IndexState> decode_index_state(Bytes slot) {
  if (slot.size() != index_state_slot_bytes) return std::nullopt;
  ByteReader r(slot);
  bool known = r.text(magic.size()) == magic && r.get<uint32_t>() == version;
  if (!known || r.get<uint32_t>() != crc32(slot.subspan(body_at))) return std::nullopt;
  IndexState s;
  s.sequence = r.get<uint64_t>();
  uint32_t flags = r.get<uint32_t>();
  s.clean = (flags & 1) != 0;
  s.sealed_complete = (flags & 2) != 0;
  s.layout.slots = r.get<uint32_t>();
  s.layout.entries = r.get<uint32_t>();
  s.indexed = r.get<int64_t>();
  s.newest = r.get<uint64_t>();
  s.newest_header = decode_index_header(as_bytes(r.text(index_header_bytes)).data());
  uint32_t count = r.get<uint32_t>();
  if (count > index_state_sealed_max) return std::nullopt;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t name = r.get<uint64_t>();
    s.sealed.push_back({name, r.get<int64_t>()});
  }
  return s;
}

Task<Result<std::optional<IndexState>>> IndexStateFile::load() {
  std::optional<IndexState> newest;
  if (file_ == nullptr) {
    CO_TRY_VAR(file, co_await disk_.open(root_ + "/rmqd.index", {.write = true, .create = true}));
    file_ = std::move(file);
  }
  std::vector<std::byte> buf(2 * index_state_slot_bytes);
  CO_TRY_VAR(n, co_await file_->read(0, buf));
  if (n != buf.size()) {  // new, or cut short
    CO_TRY(co_await file_->truncate(buf.size()));
    CO_TRY(co_await file_->sync());
    CO_TRY(co_await disk_.sync_dir(root_));
  }
  for (size_t at = 0; at + index_state_slot_bytes <= n; at += index_state_slot_bytes) {
    std::optional<IndexState> s = decode_index_state(Bytes(buf).subspan(at, index_state_slot_bytes));
    if (s && (!newest || s->sequence > newest->sequence)) newest = std::move(s);
  }
  if (newest) sequence_ = std::max(sequence_, newest->sequence);
  co_return newest;
}

Task<Result<void>> IndexStateFile::save(IndexState s) {
  s.sequence = ++sequence_;
  std::vector<std::byte> slot(index_state_slot_bytes);
  encode_index_state(s, slot);
  iovec v{slot.data(), slot.size()};
  uint64_t at = s.sequence % 2 * index_state_slot_bytes;
  auto r = co_await file_->write(at, std::span(&v, 1), Durability::on_media);
  if (!r) sequence_--;  // the other slot is the good one: it stays
  co_return r;
}

Task<void> IndexStateFile::close() {
  if (file_ != nullptr) co_await file_->close();
  file_.reset();
}

}  // namespace rmq::store
