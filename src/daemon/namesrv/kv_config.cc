#include "daemon/namesrv/kv_config.h"

#include <utility>

#include "base/log.h"
#include "store/config_file.h"

namespace rmq::namesrv {

static bool is_kv_config(std::string_view text) {
  return proto::KVConfigWrapper::parse(text).has_value();
}

Task<Result<void>> KvConfig::load() {
  auto loaded = co_await store::load_file(disk_, path_, is_kv_config);
  if (!loaded) {
    if (loaded.error().code == Errc::not_found) co_return Result<void>{};
    co_return std::unexpected(loaded.error());
  }
  if (loaded->from_backup)
    log(LogLevel::warning, ids::config_file_fallback, "the KV config was read from its backup",
        {{"FILE", path_}});
  auto parsed = proto::KVConfigWrapper::parse(loaded->content);
  if (!parsed) co_return std::unexpected(parsed.error());
  config_ = std::move(*parsed);
  co_return Result<void>{};
}

const KvConfig::Table* KvConfig::find(std::string_view name_space) const {
  auto it = config_.config_table.find(name_space);
  return it == config_.config_table.end() ? nullptr : &it->second;
}

const std::string* KvConfig::find(std::string_view name_space, std::string_view key) const {
  const Table* table = find(name_space);
  if (table == nullptr) return nullptr;
  auto it = table->find(key);
  return it == table->end() ? nullptr : &it->second;
}

Task<Result<void>> KvConfig::put(std::string name_space, std::string key, std::string value) {
  return change({std::move(name_space), std::move(key), std::move(value)});
}
Task<Result<void>> KvConfig::remove(std::string name_space, std::string key) {
  return change({std::move(name_space), std::move(key), std::nullopt});
}

bool KvConfig::is_in_effect(const Change& c) const {
  const std::string* v = find(c.name_space, c.key);
  return c.value ? v != nullptr && *v == *c.value : v == nullptr;
}

Task<Result<void>> KvConfig::change(Change c) {
  // Nothing to write when nothing else is under way that could make a difference.
  if (next_->changes.empty() && writing_.free_slots() == 1 && is_in_effect(c)) co_return Result<void>{};
  std::shared_ptr<Batch> batch = next_;
  batch->changes.push_back(std::move(c));
  co_await writing_.acquire();
  if (!batch->is_done) {
    next_ = std::make_shared<Batch>();
    co_await write(batch);
  }
  writing_.release();
  co_return batch->result;
}

Task<void> KvConfig::write(std::shared_ptr<Batch> batch) {
  proto::KVConfigWrapper config = config_;
  for (const Change& c : batch->changes) {
    if (c.value)
      config.config_table[c.name_space].insert_or_assign(c.key, *c.value);
    else if (auto ns = config.config_table.find(c.name_space); ns != config.config_table.end())
      ns->second.erase(c.key);
  }
  batch->result = co_await store::replace_file(disk_, path_, config.to_json(proto::JsonStyle::pretty));
  batch->is_done = true;
  if (batch->result)
    config_ = std::move(config);
  else
    log(LogLevel::error, ids::config_file_unwritable, "the KV config cannot be written",
        {{"FILE", path_}, {"REASON", to_string(batch->result.error())}});
}

}  // namespace rmq::namesrv
