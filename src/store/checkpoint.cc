#include "store/checkpoint.h"

#include <array>

namespace rmq::store {

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
  std::array<std::byte, own_abort_text.size() + 1> buf;
  auto n = co_await (*f)->read(0, buf);
  co_await (*f)->close();
  if (!n) co_return std::unexpected(n.error());
  abort_is_ours_ = as_text(Bytes(buf).first(*n)) == own_abort_text;
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
  JavaCheckpoint j = decode_java_checkpoint(buf);
  if (j.physic_msg_timestamp > 0) java_ = j;
  co_return Result<void>();
}

Task<Result<void>> CheckpointFiles::load() {
  CO_TRY(co_await look_at_abort());
  CO_TRY(co_await load_own());
  co_return co_await load_java();
}

int64_t CheckpointFiles::index_safe_ms(int64_t last_store_ms) const {
  if (!java_ || abort_is_ours_ || java_->index_msg_timestamp > last_store_ms) return 0;
  return java_->index_msg_timestamp;
}

Task<Result<void>> CheckpointFiles::mark_running() {
  auto f = co_await disk_.open(root_ + "/abort", {.write = true, .create = true, .truncate = true});
  if (!f) co_return std::unexpected(f.error());
  iovec v{const_cast<char*>(own_abort_text.data()), own_abort_text.size()};
  auto r = co_await (*f)->write(0, std::span(&v, 1), Durability::on_media);
  co_await (*f)->close();
  // That it is there is what counts most: a store on a full disk must come up, for its consumers.
  if (!r && r.error().code == Errc::no_space) r = {};
  if (r) r = co_await disk_.sync_dir(root_);
  co_return r;
}

Task<Result<void>> CheckpointFiles::mark_stopped() {
  CO_TRY(co_await disk_.remove(root_ + "/abort"));
  co_return co_await disk_.sync_dir(root_);
}

Task<Result<void>> CheckpointFiles::save(OwnCheckpoint own, JavaCheckpoint java) {
  std::array<std::byte, java_checkpoint_bytes> j{};
  encode_java_checkpoint(java, j);
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
