// The broker's configuration on request. A change is checked as a whole, as the next start would find it,
// then written down, then applied: what is refused changes nothing.
#include "base/log.h"
#include "daemon/broker/handlers.h"
#include "daemon/broker_config.h"
#include "daemon/config_update.h"
#include "proto/codes.h"

namespace rmq::broker {

using proto::ResponseCode;

static void log_changes(const BrokerConfig& was, const BrokerConfig& is, Request& r,
                        const std::string& kept_in) {
  for (const auto& k : broker_config_table()) {
    const std::string from = config_get(k, was), to = config_get(k, is);
    if (from != to)
      log(LogLevel::notice, ids::config_changed, "configuration changed",
          {{"KEY", k.name},
           {"FROM", from},
           {"TO", to},
           {"CLIENT", r.connection().peer_text()},
           {"FILE", kept_in}});
  }
}

void get_broker_config(Broker& b, Request& r, proto::EmptyHeader) {
  std::string body;
  for (const auto& [key, value] : config_list(broker_config_table(), b.config))
    body += key + "=" + value + "\n";
  std::string version = b.config_version.to_json();
  r.answer<proto::GetBrokerConfig>({version}, body);
}

// mqadmin shows the remark of failures alone, so a key that needs a restart is answered as one, though it is
// kept and the other keys of the request are applied.
Task<void> update_broker_config(Broker& b, Request& r, proto::EmptyHeader) {
  auto texts = co_await b.config_keeper.read();
  if (!texts) co_return r.reply(ResponseCode::SYSTEM_ERROR, texts.error());
  ConfigErrors errors;
  const BrokerConfig at_next_start = broker_config_of(b.config_source, texts->main, texts->own, errors);
  const std::string forbidden =
      forbidden_keys("brokerConfigPath|rocketmqHome|configBlackList", b.config.configBlackList);
  auto update = config_update(broker_config_table(), b.config, at_next_start, b.config_source.settings,
                              forbidden, parse_properties(r.frame().body_text()));
  if (!update) co_return r.reply(update.error().code, update.error().remark);
  if (update->settings.empty()) co_return r.reply(ResponseCode::SUCCESS);
  const ConfigKeeper::Check check = [&b](std::string_view file_text, std::string_view own_text) {
    ConfigErrors wrong;
    [[maybe_unused]] auto next = broker_config_of(b.config_source, file_text, own_text, wrong);
    return wrong.empty() ? std::string() : wrong.front();
  };
  auto kept = co_await b.config_keeper.keep(update->settings, check);
  if (!kept) co_return r.reply(ResponseCode::INVALID_PARAMETER, kept.error());
  const BrokerConfig was = b.config;
  update->apply_to(broker_config_table(), b.config);
  b.apply_config();
  log_changes(was, b.config, r, *kept);
  report_waiting(update->waiting, r.connection().peer_text(), *kept);
  const std::string remark = update->remark(*kept);
  r.set_done();
  r.reply(update->needs_restart.empty() ? ResponseCode::SUCCESS : ResponseCode::SYSTEM_ERROR, remark);
}

}  // namespace rmq::broker
