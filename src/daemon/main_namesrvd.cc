// rmq-namesrvd: command line, log, ring, listen, ready, loop, stop.
#include <csignal>
#include <cstdio>

#include "base/log.h"
#include "daemon/exporter.h"
#include "daemon/namesrv/metrics.h"
#include "daemon/namesrv/name_server.h"
#include "daemon/process_metrics.h"
#include "daemon/reload.h"
#include "daemon/server.h"
#include "daemon/service_manager.h"
#include "uring/disk.h"
#include "uring/net.h"
#include "uring/probe.h"
#include "uring/signals.h"

namespace rmq {
namespace {

constexpr uint64_t open_files_min = 1024;
constexpr int64_t status_interval_ns = 15 * ns_per_s;

Task<void> show_status(const Server& server, namesrv::NameServer& names, Event& stop) {
  std::string shown;
  for (;;) {
    std::string now = std::to_string(names.routes().broker_count()) + " brokers, " +
                      std::to_string(names.routes().topic_count()) + " topics, " +
                      std::to_string(server.connections()) + " connections";
    if (now != shown) notify_status(now);
    shown = std::move(now);
    bool stopped = co_await stop.wait_for(status_interval_ns);
    if (stopped) co_return;
  }
}

void reload(const namesrv::ConfigSource& source, namesrv::NameServer& names) {
  begin_reload();
  ConfigErrors errors;
  std::vector<std::string> useless;
  const NamesrvConfig next = namesrv::read_config(source, errors, &useless);
  if (!errors.empty()) return report_refused_reload(errors);
  report_useless(useless);
  const auto changes = config_changes(namesrv_config_table(), names.config(), next);
  names.take_config(next);
  report_reload(changes);
}

Task<void> wait_for_stop(Signals& signals, const namesrv::ConfigSource& source, namesrv::NameServer& names) {
  for (;;) {
    int signal = co_await signals.next();
    if (signal != SIGHUP) co_return;
    reload(source, names);
  }
}

struct Environment {
  const namesrv::ConfigSource& source;
  const NamesrvConfig& config;
  Ring& ring;
  Disk& disk;
  UringNet& net;
};

std::string labels_of(const NamesrvConfig& c) {
  std::string out = MetricsPage::labels_text({{"node_type", "namesrv"}});
  for (const auto& [name, value] : metric_labels_of(c.metricsLabel).value_or(LabelList{}))
    out += ',' + MetricsPage::labels_text({{name, value}});
  return out;
}

// Metrics and health, from the moment that the name server listens to its end.
struct Observed {
  Observed(const Environment& e, namesrv::NameServer& names, const Server& server)
      : exporter(e.net, exporter_options_of(e.config)),
        process(e.ring, e.net.pool(), e.disk),
        names_export(names) {
    process.add(server, names);
    exporter.add(process, labels_of(e.config));
    exporter.add(names_export, labels_of(e.config));
  }
  Exporter exporter;
  ProcessMetrics process;
  namesrv::NamesrvExport names_export;
};

Task<void> run(Environment e, int& code) {
  Signals signals(e.ring);
  Event stop;
  Scope scope;
  namesrv::NameServer names(e.config, e.disk, e.net, e.source);
  Server server(e.net, names);
  auto loaded = co_await names.load();
  if (!loaded) {
    log(LogLevel::error, ids::start_failed, "the KV config cannot be read",
        {{"FILE", e.config.kvConfigPath}, {"REASON", to_string(loaded.error())}});
    code = loaded.error().code == Errc::corrupt ? exit_code::data_error : exit_code::io_error;
    co_return;
  }
  auto listening = co_await server.listen(e.config.bindAddress, static_cast<uint16_t>(e.config.listenPort));
  const std::string at = e.config.bindAddress + ":" + std::to_string(e.config.listenPort);
  if (!listening) {
    log(LogLevel::error, ids::start_failed,
        cannot_listen_text(e.config.bindAddress, e.config.listenPort, "listenPort", listening.error()),
        {{"REASON", to_string(listening.error())}});
    code = exit_code::failure;
    co_await server.stop();
    co_return;
  }
  names.start(stop, scope);
  Observed observed(e, names, server);
  observed.exporter.set_not_ready("");
  scope.spawn(observed.exporter.run(stop));
  scope.spawn(feed_watchdog(stop));
  notify_ready("Listening at " + at);
  scope.spawn(show_status(server, names, stop));
  log(LogLevel::notice, ids::namesrv_started, "name server " RMQD_VERSION " is listening at " + at);

  co_await wait_for_stop(signals, e.source, names);
  observed.exporter.set_not_ready("stopping");
  notify_stopping();
  stop.set();
  co_await server.stop();
  co_await scope.join();
  signals.close();
  log(LogLevel::notice, ids::namesrv_stopped, "name server has stopped");
}

int start(const namesrv::ConfigSource& source, const NamesrvConfig& config) {
  raise_open_files_limit();
  std::string lacks = probe_verdict(probe_kernel(), open_files_min);
  if (!lacks.empty()) {
    log(LogLevel::error, ids::kernel_unsuitable, lacks);
    return exit_code::unavailable;
  }
  auto ring = Ring::create();
  if (!ring) {
    log(LogLevel::error, ids::kernel_unsuitable, "no io_uring: " + to_string(ring.error()));
    return exit_code::unavailable;
  }
  auto net = UringNet::create(**ring);
  if (!net) {
    log(LogLevel::error, ids::kernel_unsuitable, "no receive buffers: " + to_string(net.error()));
    return exit_code::unavailable;
  }
  UringDisk disk(**ring);
  int code = exit_code::ok;
  (*ring)->run(run({source, config, **ring, disk, **net}, code));
  return code;
}

}  // namespace
}  // namespace rmq

int main(int argc, char** argv) {
  using namespace rmq;
  const auto table = namesrv_config_table();
  const CommandLine line = parse_command_line(argc, argv, "rmq-namesrvd",
                                              "Name server for brokers and clients of the RocketMQ protocol",
                                              "/etc/rmqd/namesrv.toml", config_help(table), false);
  if (line.exit_with >= 0) return line.exit_with;
  if (line.print_config_roff) {
    std::fputs(config_roff(table).c_str(), stdout);
    return exit_code::ok;
  }
  const namesrv::ConfigSource source{{}, line.config_file, line.settings};
  ConfigErrors errors;
  std::vector<std::string> useless;
  const NamesrvConfig config = namesrv::read_config(source, errors, &useless);
  report_config_errors(errors);
  if (!errors.empty()) return exit_code::config;
  if (line.check_config) {
    for (const std::string& u : useless) std::fprintf(stderr, "rmq-namesrvd: %s\n", u.c_str());
    return exit_code::ok;
  }
  Signals::block();
  log_start(under_systemd(), log_level_of(config.logLevel));
  report_useless(useless);
  const int code = start(source, config);
  log_stop();
  return code;
}
