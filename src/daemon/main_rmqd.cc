// rmqd: command line, log, ring, bind, recover, listen, ready, loop, drain. With --standalone the name server
// runs in this process too, on a port of its own.
#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/metrics_export.h"
#include "daemon/broker_config.h"
#include "daemon/disk_cpu.h"
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

constexpr uint64_t open_files_min = 4096;
constexpr int64_t status_interval_ns = 10 * ns_per_s;
constexpr int64_t more_start_time_ns = 60 * ns_per_s;  // asked of systemd with each step of the recovery

struct Environment {
  const CommandLine& line;
  const ConfigSource& source;
  BrokerConfig& config;
  Ring& ring;
  Disk& disk;
  UringNet& net;
};

// What is told to whoever asks: up from the start to the end.
struct Observed {
  explicit Observed(const Environment& e)
      : exporter(e.net, exporter_options_of(e.config)), process(e.ring, e.net.pool(), e.disk) {
    exporter.add(process, broker::BrokerExport::labels(e.config));
  }
  Exporter exporter;
  ProcessMetrics process;
};

class ShownProgress : public store::RecoveryProgress {
 public:
  explicit ShownProgress(Exporter& exporter) : exporter_(exporter), told_ns_(Loop::current().now_ns()) {}
  void on_progress(int per_cent, int64_t physical_offset) override {
    std::string text = "Recovering the store: " + std::to_string(per_cent) + " %, at offset " +
                       std::to_string(physical_offset);
    notify_more_time(text, more_start_time_ns);
    exporter_.set_not_ready(text);
    const int64_t now_ns = Loop::current().now_ns();
    if (now_ns - told_ns_ < tell_again_ns) return;  // a short one is told by its end
    told_ns_ = now_ns;
    log(LogLevel::info, text);
  }
  void on_damage(int64_t at, int64_t next_valid) override {
    log(LogLevel::error, ids::store_corrupt,
        "the CommitLog is damaged in the middle: rmqd does not start, so that nothing is lost that can be "
        "saved",
        {{"OFFSET", std::to_string(at)},
         {"BYTES", next_valid == 0 ? std::string("all that follows") : std::to_string(next_valid - at)}});
  }
  void on_quarantine(int64_t from, int64_t to) override {
    log(LogLevel::error, ids::store_quarantined,
        "a damaged part of the CommitLog was set aside, its messages are lost",
        {{"OFFSET", std::to_string(from)}, {"BYTES", std::to_string(to - from)}});
  }

 private:
  static constexpr int64_t tell_again_ns = 2 * ns_per_s;
  Exporter& exporter_;
  int64_t told_ns_;
};

// A log that cannot be written ends the process; systemd starts it again and recovery decides.
class StopOnFailure : public store::FailureListener {
 public:
  explicit StopOnFailure(Event& stop) : stop_(stop) {}
  void on_store_failed(const Error& e) override {
    log(LogLevel::error, ids::store_write_failed, "the store cannot be written any more: rmqd stops",
        {{"REASON", to_string(e)}});
    failed = true;
    stop_.set();
  }
  void on_queue_damaged(std::string_view topic, int32_t queue_id, int64_t offset) override {
    log(LogLevel::error, ids::store_queue_damaged,
        "a ConsumeQueue file is damaged: messages are passed over until the next start makes it anew",
        {{"TOPIC", topic}, {"QUEUE_ID", std::to_string(queue_id)}, {"OFFSET", std::to_string(offset)}});
  }
  void on_index_damaged(const char* reason) override {
    log(LogLevel::warning, ids::store_index_damaged,
        "the index of message keys is made again from the CommitLog, as far as it is damaged",
        {{"REASON", reason}});
  }
  void on_index_failed(const Error& e) override {
    log(LogLevel::error, ids::store_index_failed,
        "the index of message keys cannot be read or written: look-ups find nothing until it works again",
        {{"REASON", to_string(e)}});
  }
  void on_file_deleted(const store::DeletedFile& f) override {
    const std::string bytes = std::to_string(f.bytes);
    if (f.reason == store::DeleteReason::log_deleted)
      return log(LogLevel::debug, ids::store_queue_file_deleted,
                 "a file of a queue or of the index was deleted",
                 {{"FILE", f.path}, {"BYTES", bytes}, {"REASON", store::name_of(f.reason)}});
    const std::string age = f.age_ms < 0 ? "unknown" : std::to_string(f.age_ms / 1000);
    log(LogLevel::notice, ids::store_file_deleted, "a file of the CommitLog was deleted",
        {{"FILE", f.path}, {"BYTES", bytes}, {"AGE_SECONDS", age}, {"REASON", store::name_of(f.reason)}});
  }
  void on_disk_full(const store::DiskShortage& s, std::string_view reason) override {
    log(LogLevel::error, ids::store_disk_full, "the disk is full: producers are refused, all else goes on",
        {{"MOUNT_POINT", s.mount_point},
         {"FREE_BYTES", std::to_string(s.free_bytes)},
         {"LIMIT_BYTES", std::to_string(s.limit_bytes)},
         {"REASON", reason}});
  }
  void on_disk_writable(std::string_view mount_point, uint64_t free_bytes) override {
    log(LogLevel::notice, ids::store_disk_writable, "the disk has room again: producers are served",
        {{"MOUNT_POINT", mount_point}, {"FREE_BYTES", std::to_string(free_bytes)}});
  }
  void on_delete_failed(std::string_view path, const Error& e) override {
    log(LogLevel::error, ids::store_delete_failed, "an old file cannot be deleted: it is tried again",
        {{"FILE", path}, {"REASON", to_string(e)}});
  }
  void on_delete_held(int64_t jump_ms) override {
    log(LogLevel::warning, ids::store_delete_held,
        "files look older than fileReservedTime since the clock was set forward: they are kept until that "
        "time has passed",
        {{"JUMP_SECONDS", std::to_string(jump_ms / 1000)}});
  }
  void on_compaction_failed(std::string_view topic, int32_t queue_id, const Error& e) override {
    log(LogLevel::error, ids::store_compaction_failed, "a queue could not be compacted: it is tried again",
        {{"TOPIC", topic}, {"QUEUE", std::to_string(queue_id)}, {"REASON", to_string(e)}});
  }
  bool failed = false;

 private:
  Event& stop_;
};

Task<void> show_status(const Server& server, const broker::Broker& b, Event& stop) {
  std::string shown;
  for (;;) {
    std::string now =
        "Serving at " + b.address_text() + ", registered with " + b.registration.status() + ", " +
        std::to_string(server.connections()) + " connections, " +
        std::to_string(static_cast<uint64_t>(b.stats.rate_10s(&broker::Counters::put_messages))) +
        " messages/s in, " +
        std::to_string(static_cast<uint64_t>(b.stats.rate_10s(&broker::Counters::get_transferred))) + " out";
    if (now != shown) notify_status(now);
    shown = std::move(now);
    bool stopped = co_await stop.wait_for(status_interval_ns);
    if (stopped) co_return;
  }
}

void reload(const ConfigSource& source, broker::Broker& b) {
  begin_reload();
  ConfigErrors errors;
  std::vector<std::string> useless;
  const BrokerConfig next = read_broker_config(source, errors, &useless);
  if (!errors.empty()) return report_refused_reload(errors);
  report_useless(useless);
  const auto changes = config_changes(broker_config_table(), b.config, next);
  take_run_time_keys(broker_config_table(), b.config, next);
  b.apply_config();
  report_reload(changes);
}

Task<void> watch_signals(Signals& signals, const ConfigSource& source, broker::Broker& b, Event& stop) {
  for (;;) {
    int signal = co_await signals.next();
    if (signal == SIGHUP) {
      reload(source, b);
      continue;
    }
    stop.set();
    co_return;
  }
}

void log_recovery(const store::RecoveryStats& r) {
  std::string from = std::to_string(r.scanned_from), to = std::to_string(r.scanned_to);
  std::string what = r.scanned_to == 0 ? "empty store opened"
                     : r.clean         ? "store opened after a clean stop"
                                       : "store recovered";
  // Never of a store that is as it should be: files were missing or damaged, or RocketMQ was killed on it.
  if (r.queues_rebuilt && r.scanned_to != 0) what += "; all ConsumeQueues were made anew from the CommitLog";
  log(LogLevel::notice, ids::store_recovered, what,
      {{"FROM", from},
       {"TO", to},
       {"RECORDS", std::to_string(r.records)},
       {"MILLISECONDS", std::to_string(r.duration_ms)}});
  if (r.torn_at >= 0)
    log(LogLevel::notice, ids::store_torn_tail, "an unfinished write at the end of the CommitLog was cut off",
        {{"OFFSET", std::to_string(r.torn_at)}, {"BYTES", std::to_string(r.torn_bytes)}});
}

Task<std::unique_ptr<store::MessageStore>> open_store(const Environment& e, Exporter& exporter, int& code) {
  exporter.set_not_ready("opening the store");
  ShownProgress progress(exporter);
  auto opened = co_await broker::open_store(e.disk, e.config, &progress);
  if (opened) {
    log_recovery((*opened)->stats().recovery);
    co_return std::move(*opened);
  }
  const Error& why = opened.error();
  log(LogLevel::error, ids::start_failed, "the store cannot be opened",
      {{"DIRECTORY", e.config.storePathRootDir}, {"REASON", to_string(why)}});
  bool not_for_us = why.code == Errc::corrupt || why.code == Errc::unsupported;
  code = not_for_us ? exit_code::data_error : exit_code::io_error;
  co_return nullptr;
}

// The addresses are taken before the store is opened, which may take long: that somebody else has one is said
// at once, and nobody gets one meanwhile. Connections are refused until the broker serves.
struct Ports {
  struct One {
    int64_t number;
    const char* from;  // the configuration
    std::unique_ptr<Listener> listener = nullptr;
  };
  explicit Ports(const BrokerConfig& c)
      : main{c.listenPort, "listenPort"},
        vip{c.listenPort - 2, "listenPort - 2"},
        namesrv{c.namesrvListenPort, "namesrvListenPort"} {}
  One main, vip, namesrv;
};

void log_cannot_listen(const Environment& e, const Ports::One& port, const Error& why, int& code) {
  log(LogLevel::error, ids::start_failed,
      cannot_listen_text(e.config.bindAddress, port.number, port.from, why), {{"REASON", to_string(why)}});
  code = exit_code::failure;
}

Task<bool> bind_ports(const Environment& e, Ports& ports, int& code) {
  std::vector<Ports::One*> wanted{&ports.main, &ports.vip};
  if (e.line.standalone) wanted.push_back(&ports.namesrv);
  for (Ports::One* port : wanted) {
    auto bound = co_await bind_at_start(e.net, e.config.bindAddress, static_cast<uint16_t>(port->number));
    if (!bound) {
      log_cannot_listen(e, *port, bound.error(), code);
      co_return false;
    }
    port->listener = std::move(*bound);
  }
  co_return true;
}

Task<void> close_ports(Ports& ports) {
  for (Ports::One* port : {&ports.main, &ports.vip, &ports.namesrv}) {
    if (!port->listener) continue;
    port->listener->close();
    co_await port->listener->closed();
  }
}

bool listen_at(Server& server, Ports::One& port, const Environment& e, int& code) {
  auto listening = server.listen(std::move(port.listener));
  if (!listening) log_cannot_listen(e, port, listening.error(), code);
  return listening.has_value();
}

// The name server of --standalone.
struct OwnNamesrv {
  OwnNamesrv(const Environment& e, const namesrv::ConfigSource& source, const NamesrvConfig& config)
      : names(config, e.disk, e.net, source), server(e.net, names) {
    constexpr int64_t least_bytes = 16 << 20;  // out of what memoryLimit leaves for tables and connections
    names.net_memory.set_limit(static_cast<uint64_t>(std::max(e.config.memoryLimit / 16, least_bytes)));
  }
  namesrv::NameServer names;
  Server server;
};

Task<bool> start_namesrv(OwnNamesrv& n, const Environment& e, Ports& ports, Event& stop, Scope& scope,
                         int& code) {
  auto loaded = co_await n.names.load();
  if (!loaded) {
    log(LogLevel::error, ids::start_failed, "the KV config of the name server cannot be read",
        {{"FILE", e.config.namesrvKvConfigPath}, {"REASON", to_string(loaded.error())}});
    code = exit_code::io_error;
    co_return false;
  }
  const bool good = listen_at(n.server, ports.namesrv, e, code);
  if (good) n.names.start(stop, scope);
  co_return good;
}

Task<bool> start_broker(broker::Broker& b, Server& main_port, Server& vip_port, const Environment& e,
                        Ports& ports, int& code) {
  auto loaded = co_await b.load();
  if (!loaded) {
    log(LogLevel::error, ids::start_failed, "the configuration files of the store cannot be used",
        {{"DIRECTORY", e.config.storePathRootDir + "/config"}, {"REASON", to_string(loaded.error())}});
    code = exit_code::data_error;
    co_return false;
  }
  co_return listen_at(main_port, ports.main, e, code) && listen_at(vip_port, ports.vip, e, code);
}

// What a stop is at, for whoever waits for it.
struct Stopping {
  explicit Stopping(const store::MessageStore& s) : store(s) {}
  const store::MessageStore& store;
  std::string step = "closing connections";
  Event done;
  Scope scope;
  std::string text() const {
    std::string t = "Stopping: " + step;
    const uint64_t units = store.stats().unwritten_units;
    if (units != 0) t += ", " + std::to_string(units) + " units of ConsumeQueues to write";
    return t;
  }
};

Task<void> stop_serving(broker::Broker& b, Server& main_port, Server& vip_port, Server& names,
                        Stopping& stopping) {
  main_port.stop_accepting();
  vip_port.stop_accepting();
  co_await b.stop();
  co_await main_port.stop();
  co_await vip_port.stop();
  co_await names.stop();
  stopping.step = "saving offsets";
  co_await b.save_all();
  stopping.step = "closing the store";
}

// While the broker serves, its metrics are on the page.
class Shown {
 public:
  Shown(Observed& o, broker::Broker& b, OwnNamesrv& own) : observed_(o), broker_(b), names_(own.names) {
    o.exporter.add(broker_, broker::BrokerExport::labels(b.config));
  }
  void add(const Server& server, const Service& service) { observed_.process.add(server, service); }
  void add_names(OwnNamesrv& own) {
    add(own.server, own.names);
    observed_.exporter.add(names_, MetricsPage::labels_text({{"node_type", "namesrv"}}));
  }
  Task<void> end() {
    co_await observed_.exporter.remove(broker_);
    co_await observed_.exporter.remove(names_);
    observed_.process.clear_servers();
  }

 private:
  Observed& observed_;
  broker::BrokerExport broker_;
  namesrv::NamesrvExport names_;
};

std::string log_directory(const BrokerConfig& c) {
  return c.storePathCommitLog.empty() ? c.storePathRootDir : c.storePathCommitLog;
}

Task<void> serve(const Environment& e, Observed& observed, store::MessageStore& store, Ports& ports,
                 Stopping& stopping, int& code) {
  Event stop;
  Signals signals(e.ring);
  StopOnFailure on_failure(stop);
  store.set_failure_listener(&on_failure);
  Scope scope;
  const namesrv::ConfigSource names_source{namesrv_config_of(e.config), {}, {}};
  ConfigErrors wrong;
  OwnNamesrv own(e, names_source, namesrv::read_config(names_source, wrong, nullptr));
  broker::Broker b(e.config, e.disk, e.net, store, e.source);
  Server main_port(e.net, b), vip_port(e.net, b);
  Shown shown(observed, b, own);
  bool good = !e.line.standalone || wrong.empty();
  if (!good) code = exit_code::config;
  for (const std::string& w : wrong)
    log(LogLevel::error, ids::config_invalid, "the name server's configuration is wrong: " + w);
  if (good && e.line.standalone) good = co_await start_namesrv(own, e, ports, stop, scope, code);
  if (good) good = co_await start_broker(b, main_port, vip_port, e, ports, code);
  if (good) {
    b.start();
    shown.add(main_port, b);
    shown.add(vip_port, b);
    if (e.line.standalone) shown.add_names(own);
    observed.exporter.set_not_ready("");
    scope.spawn(feed_watchdog(stop));
    scope.spawn(watch_signals(signals, e.source, b, stop));
    notify_ready("Serving at " + b.address_text());
    log(LogLevel::notice, ids::broker_started, "broker " RMQD_VERSION " serves at " + b.address_text(),
        {{"BROKER", e.config.brokerName},
         {"CLUSTER", e.config.brokerClusterName},
         {"STORE", e.config.storePathRootDir},
         {"NAMESRV", e.config.namesrvAddr}});
    scope.spawn(show_status(main_port, b, stop));
    scope.spawn(stay_at_disk(
        StayAtDisk{log_directory(b.config), b.config.diskCpuAffinity, store.stats().log_writes, "/sys"},
        stop));
    co_await stop.wait();
    observed.exporter.set_not_ready(on_failure.failed ? "the store cannot be written" : "stopping");
    notify_stopping();
    stopping.scope.spawn(extend_stop([&stopping] { return stopping.text(); }, stopping.done));
  }
  stop.set();
  co_await shown.end();
  co_await stop_serving(b, main_port, vip_port, own.server, stopping);
  signals.close();
  co_await scope.join();
  store.set_failure_listener(nullptr);
  if (on_failure.failed) code = exit_code::io_error;
}

Task<void> run_store(const Environment& e, Observed& observed, Ports& ports, int& code) {
  auto store = co_await open_store(e, observed.exporter, code);
  if (!store) co_return;
  Stopping stopping(*store);
  co_await serve(e, observed, *store, ports, stopping, code);
  co_await store->shutdown();
  stopping.done.set();
  co_await stopping.scope.join();
  log(LogLevel::notice, ids::broker_stopped, "broker has stopped", {{"BROKER", e.config.brokerName}});
}

Task<void> run(Environment e, int& code) {
  Observed observed(e);
  Event end;
  Scope scope;
  scope.spawn(observed.exporter.run(end));
  Ports ports(e.config);
  bool bound = co_await bind_ports(e, ports, code);
  if (bound) co_await run_store(e, observed, ports, code);
  co_await close_ports(ports);
  end.set();
  co_await scope.join();
}

int start(const CommandLine& line, const ConfigSource& source, BrokerConfig& config) {
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
  (*ring)->run(run({line, source, config, **ring, disk, **net}, code));
  return code;
}

}  // namespace
}  // namespace rmq

int main(int argc, char** argv) {
  using namespace rmq;
  const auto table = broker_config_table();
  CommandLine line = parse_command_line(argc, argv, "rmqd", "Broker for clients of the RocketMQ protocol",
                                        "/etc/rmqd/rmqd.toml", config_help(table), true);
  if (line.exit_with >= 0) return line.exit_with;
  if (line.print_config_roff) {
    std::fputs(config_roff(table).c_str(), stdout);
    return exit_code::ok;
  }
  if (line.print_metrics_roff) {
    std::fputs(metrics_roff().c_str(), stdout);
    return exit_code::ok;
  }
  const ConfigSource source{line.config_file, line.settings, line.standalone};
  std::vector<std::string> useless;
  ConfigErrors errors;
  BrokerConfig config = read_broker_config(source, errors, &useless);
  report_config_errors(errors);
  if (!errors.empty()) return exit_code::config;
  if (line.check_config) {
    for (const std::string& u : useless) std::fprintf(stderr, "rmqd: %s\n", u.c_str());
    return exit_code::ok;
  }
  Signals::block();
  log_start(under_systemd(), log_level_of(config.logLevel));
  report_useless(useless);
  const int code = start(line, source, config);
  log_stop();
  return code;
}
