#include "store/checkpoint.h"

#include <array>
#include <cstring>

#include "base/crc.h"

namespace rmq::store {

namespace {

constexpr std::string_view magic = "RMQDCKPT";
constexpr std::string_view abort_text = "rmqd";  // RocketMQ writes its process id, and never reads it
constexpr uint32_t version = 1;
constexpr size_t body_at = 16;  // magic 8, version 4, CRC 4
constexpr size_t body_bytes = 8 + 4 + 8 * 7;

uint32_t crc_of(Bytes slot) {
  return crc32(slot.subspan(body_at, body_bytes));
}

}  // namespace

void encode_checkpoint(const OwnCheckpoint& c, MutableBytes slot) {
  check(slot.size() == own_checkpoint_slot_bytes);
  std::memset(slot.data(), 0, slot.size());
  ByteWriter w(slot.subspan(body_at));
  w.put<uint64_t>(c.sequence);
  w.put<uint32_t>((c.clean ? 1u : 0u) | (c.sync_flush ? 2u : 0u));
  w.put<int64_t>(c.queues_durable);
  w.put<int64_t>(c.log_durable);
  w.put<int64_t>(c.zeroed_to);
  w.put<uint64_t>(c.queue_count);
  w.put<uint64_t>(c.queue_units);
  w.put<int64_t>(c.store_timestamp_ms);
  w.put<int64_t>(0);
  check(w.position() == body_bytes);
  ByteWriter head(slot);
  head.put_text(magic);
  head.put<uint32_t>(version);
  head.put<uint32_t>(crc_of(slot));
}

std::optional<OwnCheckpoint> decode_checkpoint(Bytes slot) {
  if (slot.size() != own_checkpoint_slot_bytes) return std::nullopt;
  ByteReader r(slot);
  bool known = r.text(magic.size()) == magic && r.get<uint32_t>() == version;
  if (!known || r.get<uint32_t>() != crc_of(slot)) return std::nullopt;
  OwnCheckpoint c;
  c.sequence = r.get<uint64_t>();
  uint32_t flags = r.get<uint32_t>();
  c.clean = (flags & 1) != 0;
  c.sync_flush = (flags & 2) != 0;
  c.queues_durable = r.get<int64_t>();
  c.log_durable = r.get<int64_t>();
  c.zeroed_to = r.get<int64_t>();
  c.queue_count = r.get<uint64_t>();
  c.queue_units = r.get<uint64_t>();
  c.store_timestamp_ms = r.get<int64_t>();
  return c;
}

CheckpointFiles::CheckpointFiles(Disk& disk, std::string root) : disk_(disk), root_(std::move(root)) {}

Task<Result<void>> CheckpointFiles::lock() {
  auto f = co_await disk_.open(root_ + "/lock", {.write = true, .create = true});
  if (!f) co_return std::unexpected(f.error());
  auto locked = co_await (*f)->lock();
  // A file system without locks: we go on, as there is nothing better to do.
  if (!locked && locked.error().code != Errc::unsupported) co_return locked;
  lock_file_ = std::move(*f);
  co_return Result<void>();
}

// Opens or makes a file of a fixed size; what is missing is zero.
Task<Result<std::unique_ptr<File>>> CheckpointFiles::open_file(const char* name, uint64_t bytes) {
  auto f = co_await disk_.open(root_ + "/" + name, {.write = true, .create = true});
  if (!f) co_return f;
  CO_TRY_VAR(size, co_await (*f)->size());
  if (size < bytes) CO_TRY(co_await (*f)->truncate(bytes));
  co_return f;
}

Task<Result<void>> CheckpointFiles::look_at_abort() {
  auto f = co_await disk_.open(root_ + "/abort", {});
  if (!f && f.error().code == Errc::not_found) co_return Result<void>();
  if (!f) co_return std::unexpected(f.error());
  abort_exists_ = true;
  std::array<std::byte, abort_text.size() + 1> buf;
  auto n = co_await (*f)->read(0, buf);
  co_await (*f)->close();
  if (!n) co_return std::unexpected(n.error());
  abort_is_ours_ = as_text(Bytes(buf).first(*n)) == abort_text;
  co_return Result<void>();
}

Task<Result<void>> CheckpointFiles::load_own() {
  CO_TRY_VAR(file, co_await open_file("rmqd.checkpoint", 2 * own_checkpoint_slot_bytes));
  own_file_ = std::move(file);
  std::vector<std::byte> buf(2 * own_checkpoint_slot_bytes);
  CO_TRY_VAR(n, co_await own_file_->read(0, buf));
  if (n != buf.size()) co_return fail(Errc::io, "rmqd.checkpoint is too short");
  for (size_t at = 0; at < buf.size(); at += own_checkpoint_slot_bytes) {
    auto c = decode_checkpoint(Bytes(buf).subspan(at, own_checkpoint_slot_bytes));
    if (c && (!own_ || c->sequence > own_->sequence)) own_ = c;
  }
  if (own_) sequence_ = own_->sequence;
  co_return Result<void>();
}

Task<Result<void>> CheckpointFiles::load_java() {
  CO_TRY_VAR(file, co_await open_file("checkpoint", java_checkpoint_bytes));
  java_file_ = std::move(file);
  std::vector<std::byte> buf(java_checkpoint_bytes);
  CO_TRY_VAR(n, co_await java_file_->read(0, buf));
  if (n != buf.size()) co_return fail(Errc::io, "checkpoint is too short");
  ByteReader r{Bytes(buf)};
  JavaCheckpoint j;
  j.physic_msg_timestamp = r.get<int64_t>();
  j.logics_msg_timestamp = r.get<int64_t>();
  j.index_msg_timestamp = r.get<int64_t>();
  j.master_flushed_offset = r.get<int64_t>();
  j.confirm_phy_offset = r.get<int64_t>();
  if (j.physic_msg_timestamp > 0) java_ = j;
  co_return Result<void>();
}

Task<Result<void>> CheckpointFiles::load() {
  CO_TRY(co_await look_at_abort());
  CO_TRY(co_await load_own());
  co_return co_await load_java();
}

Task<Result<void>> CheckpointFiles::mark_running() {
  auto f = co_await disk_.open(root_ + "/abort", {.write = true, .create = true, .truncate = true});
  if (!f) co_return std::unexpected(f.error());
  iovec v{const_cast<char*>(abort_text.data()), abort_text.size()};
  auto r = co_await (*f)->write(0, std::span(&v, 1), Durability::on_media);
  co_await (*f)->close();
  if (r) r = co_await disk_.sync_dir(root_);
  co_return r;
}

Task<Result<void>> CheckpointFiles::mark_stopped() {
  CO_TRY(co_await disk_.remove(root_ + "/abort"));
  co_return co_await disk_.sync_dir(root_);
}

Task<Result<void>> CheckpointFiles::save(OwnCheckpoint own, JavaCheckpoint java) {
  std::array<std::byte, java_checkpoint_bytes> j{};
  ByteWriter w(j);
  w.put<int64_t>(java.physic_msg_timestamp);
  w.put<int64_t>(java.logics_msg_timestamp);
  w.put<int64_t>(java.index_msg_timestamp);
  w.put<int64_t>(java.master_flushed_offset);
  w.put<int64_t>(java.confirm_phy_offset);
  iovec v{j.data(), j.size()};
  // RocketMQ is content with an older one: it only begins earlier then.
  CO_TRY(co_await java_file_->write(0, std::span(&v, 1), Durability::none));
  own.sequence = ++sequence_;
  std::array<std::byte, own_checkpoint_slot_bytes> slot;
  encode_checkpoint(own, slot);
  v = {slot.data(), slot.size()};
  uint64_t at = own.sequence % 2 * own_checkpoint_slot_bytes;
  co_return co_await own_file_->write(at, std::span(&v, 1), Durability::on_media);
}

Task<void> CheckpointFiles::close() {
  if (own_file_) co_await own_file_->close();
  if (java_file_) co_await java_file_->close();
  if (lock_file_) co_await lock_file_->close();
  own_file_.reset();
  java_file_.reset();
  lock_file_.reset();
}

}  // namespace rmq::store
