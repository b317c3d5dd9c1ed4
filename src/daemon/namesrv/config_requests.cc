// Requests about the KV config and the name server's own configuration.
#include "base/log.h"
#include "daemon/config_update.h"
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

// Checked as the next start would find it, kept, then applied, as the broker does it
// (broker/config_admin.cc).
Task<void> NameServer::update_config(Request& r, proto::UpdateNamesrvConfig::Request) {
  auto texts = co_await keeper_.read();
  if (!texts) co_return r.reply(ResponseCode::SYSTEM_ERROR, texts.error());
  ConfigErrors errors;
  const NamesrvConfig at_next_start = config_of(source_, texts->main, texts->own, errors);
  const std::string forbidden =
      forbidden_keys("configBlackList|configStorePath|kvConfigPath|rocketmqHome", config_.configBlackList);
  auto update = config_update(namesrv_config_table(), config_, at_next_start, source_.settings, forbidden,
                              parse_properties(as_text(r.body())));
  if (!update) co_return r.reply(update.error().code, update.error().remark);
  if (update->settings.empty()) co_return r.reply(ResponseCode::SUCCESS);
  const ConfigKeeper::Check check = [this](std::string_view file_text, std::string_view own_text) {
    ConfigErrors wrong;
    [[maybe_unused]] auto next = config_of(source_, file_text, own_text, wrong);
    return wrong.empty() ? std::string() : wrong.front();
  };
  auto kept = co_await keeper_.keep(update->settings, check);
  if (!kept) co_return r.reply(ResponseCode::INVALID_PARAMETER, kept.error());
  update->apply_to(namesrv_config_table(), config_);
  log_set_level(log_level_of(config_.logLevel));
  config_took_effect();
  for (const ConfigKeeper::Setting& s : update->settings)
    if (const auto* k = config_find(namesrv_config_table(), s.key); k != nullptr && k->run_time)
      log(LogLevel::notice, ids::config_changed, "configuration changed",
          {{"KEY", s.key}, {"TO", s.literal}, {"CLIENT", r.connection().peer_text()}, {"FILE", *kept}});
  report_waiting(update->waiting, r.connection().peer_text(), *kept);
  const std::string remark = update->remark(*kept);
  r.reply(update->needs_restart.empty() ? ResponseCode::SUCCESS : ResponseCode::SYSTEM_ERROR, remark);
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
