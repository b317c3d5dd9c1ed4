// Requests about the KV config and the name server's own configuration.
#include "base/log.h"
#include "daemon/java_properties.h"
#include "daemon/namesrv/name_server.h"
#include "daemon/reload.h"

namespace rmq::namesrv {

using proto::ResponseCode;

Task<void> NameServer::put_kv_config(Request& r, proto::PutKvConfig::Request h) {
  auto done = co_await kv_.put(std::string(h.name_space), std::string(h.key), std::string(h.value));
  if (h.name_space == proto::names::order_topic_namespace) routes_.forget_answer(h.key);
  if (done)
    r.reply(ResponseCode::SUCCESS);
  else
    r.reply(ResponseCode::SYSTEM_ERROR, "the KV config cannot be written: " + to_string(done.error()));
}

Task<void> NameServer::delete_kv_config(Request& r, proto::DeleteKvConfig::Request h) {
  auto done = co_await kv_.remove(std::string(h.name_space), std::string(h.key));
  if (h.name_space == proto::names::order_topic_namespace) routes_.forget_answer(h.key);
  if (done)
    r.reply(ResponseCode::SUCCESS);
  else
    r.reply(ResponseCode::SYSTEM_ERROR, "the KV config cannot be written: " + to_string(done.error()));
}

void NameServer::get_kv_config(Request& r, proto::GetKvConfig::Request h) {
  if (const std::string* value = kv_.find(h.name_space, h.key))
    return r.answer<proto::GetKvConfig>({.value = *value});
  r.reply(ResponseCode::QUERY_NOT_FOUND,
          "No config item, Namespace: " + std::string(h.name_space) + " Key: " + std::string(h.key));
}

void NameServer::get_kv_list(Request& r, proto::GetKvlistByNamespace::Request h) {
  if (const KvConfig::Table* table = kv_.find(h.name_space))
    return r.reply(ResponseCode::SUCCESS, {}, proto::KVTable{*table}.to_json());
  r.reply(ResponseCode::QUERY_NOT_FOUND, "No config item, Namespace: " + std::string(h.name_space));
}

bool NameServer::is_black_listed(std::string_view key) const {
  for (std::string_view fixed : {"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})
    if (key == fixed) return true;
  std::string_view list = config_.configBlackList;
  while (!list.empty()) {
    size_t end = list.find(';');
    if (list.substr(0, end) == key) return true;
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return false;
}

// All keys of the request take effect, or none. Keys that are not ours are ignored, as Apache's name server
// does: tools send whole property files.
void NameServer::update_config(Request& r, proto::UpdateNamesrvConfig::Request) {
  const Properties asked = parse_properties(as_text(r.body()));
  NamesrvConfig next = config_;
  for (const auto& [key, value] : asked) {
    if (is_black_listed(key))
      return r.reply(ResponseCode::NO_PERMISSION, "Can not update config in black list.");
    const ConfigKey<NamesrvConfig>* row = config_find(namesrv_config_table(), key);
    if (row == nullptr || config_get(*row, config_) == value) continue;
    if (!row->run_time)
      return r.reply(ResponseCode::SYSTEM_ERROR, "'" + key + "' cannot be changed while running");
    std::string wrong = config_set(namesrv_config_table(), next, key, value);
    if (!wrong.empty()) return r.reply(ResponseCode::SYSTEM_ERROR, wrong);
    log(LogLevel::notice, ids::config_changed, "configuration changed",
        {{"KEY", key},
         {"FROM", config_get(*row, config_)},
         {"TO", value},
         {"CLIENT", r.connection().peer_text()}});
  }
  take_config(next);
  r.reply(ResponseCode::SUCCESS);
}

void NameServer::take_config(const NamesrvConfig& next) {
  if (next.logLevel != config_.logLevel) log_set_level(log_level_of(next.logLevel));
  take_run_time_keys(namesrv_config_table(), config_, next);
  config_took_effect();
}

void NameServer::get_config(Request& r, proto::GetNamesrvConfig::Request) {
  std::string body;
  for (const auto& [key, value] : config_list(namesrv_config_table(), config_))
    body += key + "=" + value + "\n";
  r.reply(ResponseCode::SUCCESS, {}, body);
}

}  // namespace rmq::namesrv
