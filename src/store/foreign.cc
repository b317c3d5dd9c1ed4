#include "store/foreign.h"

#include <vector>

namespace rmq::store {

namespace {

Task<Result<std::vector<DirEntry>>> list_if_there(Disk& disk, std::string dir) {
  auto entries = co_await disk.list(dir);
  if (!entries && entries.error().code == Errc::not_found) co_return std::vector<DirEntry>();
  co_return entries;
}

Task<Result<bool>> holds_rocksdb(Disk& disk, std::string dir) {
  CO_TRY_VAR(entries, co_await list_if_there(disk, dir));
  for (const DirEntry& e : entries)
    if (!e.is_dir && e.name == rocksdb_file) co_return true;
  co_return false;
}

Task<Result<void>> refuse_later_version(Disk& disk, std::string path) {
  auto f = co_await disk.open(path, {});
  if (!f && f.error().code == Errc::not_found) co_return Result<void>();
  if (!f) co_return std::unexpected(f.error());
  std::vector<std::byte> buf(2 * own_checkpoint_slot_bytes);
  auto n = co_await (*f)->read(0, buf);
  co_await (*f)->close();
  if (!n) co_return std::unexpected(n.error());
  Bytes read = Bytes(buf).first(*n);
  for (; read.size() >= own_checkpoint_slot_bytes; read = read.subspan(own_checkpoint_slot_bytes))
    if (is_later_checkpoint(read.first(own_checkpoint_slot_bytes)))
      co_return fail(Errc::unsupported, later_version_reason);
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> refuse_foreign(Disk& disk, std::string root) {
  CO_TRY_VAR(entries, co_await list_if_there(disk, root));
  for (const DirEntry& e : entries)
    if (e.is_dir && is_dledger_dir(e.name)) co_return fail(Errc::unsupported, dledger_reason);
  for (std::string_view dir : rocksdb_queue_dirs) {
    CO_TRY_VAR(found, co_await holds_rocksdb(disk, root + "/" + std::string(dir)));
    if (found) co_return fail(Errc::unsupported, rocksdb_queues_reason);
  }
  CO_TRY_VAR(configs, co_await list_if_there(disk, root + "/config"));
  for (const DirEntry& e : configs) {
    if (!e.is_dir || !may_hold_rocksdb_config(e.name)) continue;
    CO_TRY_VAR(found, co_await holds_rocksdb(disk, root + "/config/" + e.name));
    if (found) co_return fail(Errc::unsupported, rocksdb_config_reason);
  }
  co_return co_await refuse_later_version(disk, root + "/rmqd.checkpoint");
}

}  // namespace rmq::store
