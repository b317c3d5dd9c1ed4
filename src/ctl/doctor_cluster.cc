// The doctor's checks of name servers and brokers, made over the network.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <set>
#include <thread>

#include "ctl/admin_calls.h"
#include "ctl/doctor.h"
#include "ctl/print.h"
#include "proto/bodies_config.h"
#include "proto/headers_admin.h"
#include "proto/headers_namesrv.h"

namespace rmq::ctl {

namespace {

constexpr auto settle_time =
    std::chrono::milliseconds(2500);  // a change that is on its way arrives within it
constexpr int64_t skew_warning_ms = 2'000, skew_problem_ms = 30'000;
constexpr size_t names_shown = 3;

std::optional<double> number_of(const std::map<std::string, std::string, std::less<>>& values,
                                std::string_view key) {
  auto it = values.find(key);
  if (it == values.end()) return std::nullopt;
  double v = 0;
  auto [end, wrong] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), v);
  return wrong == std::errc{} ? std::optional(v) : std::nullopt;
}

// "[ 1 days, 2 hours, 3 minutes, 4 seconds ]" in milliseconds.
std::optional<int64_t> run_time_ms(std::string_view text) {
  int64_t numbers[4] = {};
  size_t n = 0;
  for (size_t i = 0; i < text.size() && n < 4; i++) {
    if (text[i] < '0' || text[i] > '9') continue;
    auto [end, wrong] = std::from_chars(text.data() + i, text.data() + text.size(), numbers[n]);
    if (wrong != std::errc{}) return std::nullopt;
    i = static_cast<size_t>(end - text.data());
    n++;
  }
  if (n != 4) return std::nullopt;
  return (((numbers[0] * 24 + numbers[1]) * 60 + numbers[2]) * 60 + numbers[3]) * 1000;
}

std::string some_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), names_shown)));
  std::string out = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > shown.size()) out += fmt::format(" and {} more", names.size() - shown.size());
  return out;
}

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

std::map<std::string, std::string, std::less<>> lines_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos && !line.starts_with('#'))
      out[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return out;
}

}  // namespace

std::string_view name_of(Grade g) {
  switch (g) {
    case Grade::ok:
      return "ok";
    case Grade::note:
      return "note";
    case Grade::warning:
      return "warning";
    case Grade::problem:
      return "problem";
  }
  return "problem";
}

void Doctor::add(Grade grade, const char* check, std::string subject, std::string text, std::string cure) {
  findings_.push_back({grade, check, std::move(subject), std::move(text), std::move(cure)});
}

// ---- name servers ------------------------------------------------------------------------------------

std::optional<Doctor::NameServer> Doctor::ask_name_server(const Address& a) {
  NameServer out;
  out.address = to_string(a);
  const std::string subject = "name server " + out.address;
  auto channel = Channel::connect({a, "name server"}, c_.timeout_ms());
  if (!channel) {
    add(Grade::problem, "name-server", subject, channel.error().text,
        "Start it (systemctl start rmq-namesrvd on its host), open its port in the firewall, or take it out "
        "of "
        "the lists of clients and brokers: each that tries it waits.");
    return std::nullopt;
  }
  out.channel = std::make_unique<Channel>(std::move(*channel));
  auto reply = out.channel->ask<proto::GetBrokerClusterInfo>({});
  auto cluster = reply ? parse_body<proto::ClusterInfo>(*out.channel, *reply, "GET_BROKER_CLUSTER_INFO")
                       : Outcome<proto::ClusterInfo>(std::unexpected(reply.error()));
  if (!cluster) {
    add(Grade::problem, "name-server", subject, cluster.error().text,
        "Look whether a name server listens at that address, and at its journal.");
    return std::nullopt;
  }
  out.cluster = std::move(*cluster);
  auto topics = out.channel->call<proto::GetAllTopicListFromNameserver>({});
  if (topics && topics->ok())
    if (auto list = proto::TopicList::parse(topics->body())) out.topics = std::move(list->topic_list);
  if (out.topics) std::sort(out.topics->begin(), out.topics->end());
  return out;
}

// "broker b (id 0, 1.2.3.4:10911)" of those that only `a` knows.
std::vector<std::string> Doctor::registration_differences(const NameServer& a, const NameServer& b) const {
  std::vector<std::string> out;
  for (const auto& [name, data] : a.cluster.broker_addr_table) {
    auto there = b.cluster.broker_addr_table.find(name);
    for (const auto& [id, address] : data.broker_addrs) {
      if (there != b.cluster.broker_addr_table.end()) {
        auto same = there->second.broker_addrs.find(id);
        if (same != there->second.broker_addrs.end() && same->second == address) continue;
      }
      out.push_back(fmt::format("broker {} (id {}, {})", name, id, address));
    }
  }
  return out;
}

void Doctor::compare_name_servers(const NameServer& a, const NameServer& b) {
  const std::string subject = fmt::format("name servers {} and {}", a.address, b.address);
  bool agree = true;
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const auto only = registration_differences(*x, *y);
    if (only.empty()) continue;
    agree = false;
    add(Grade::problem, "name-servers-disagree", subject,
        fmt::format("{} is registered at {} and not at {}", some_of(only), x->address, y->address),
        "Name every name server in namesrvAddr of that broker. If it does, look for \"namesrv-unreachable\" "
        "in its "
        "journal (journalctl -u rmqd -x), and at the network between the two.");
  }
  if (!a.topics || !b.topics) return;
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const std::set<std::string> there(y->topics->begin(), y->topics->end());
    std::vector<std::string> only;
    std::copy_if(x->topics->begin(), x->topics->end(), std::back_inserter(only),
                 [&](const std::string& t) { return !there.contains(t); });
    if (only.empty()) continue;
    agree = false;
    std::sort(only.begin(), only.end());
    add(Grade::warning, "name-servers-disagree", subject,
        fmt::format("topic {} is known at {} and not at {}", some_of(only), x->address, y->address),
        "A topic that was deleted is deleted at every name server by \"rmqctl topic delete\" with all of "
        "them in -n. "
        "A new one is registered everywhere within registerNameServerPeriod (30 s): look again then.");
  }
  if (agree) add(Grade::ok, "name-servers-disagree", subject, "they agree on brokers and topics");
}

void Doctor::look_at_name_servers() {
  auto list = c_.namesrv_list();
  if (!list)
    return add(Grade::problem, "name-server", "name servers", list.error().text, "Mend -n or NAMESRV_ADDR.");
  for (const Address& a : *list)
    if (auto ns = ask_name_server(a)) name_servers_.push_back(std::move(*ns));
  for (const NameServer& ns : name_servers_) {
    std::string text = fmt::format("{} brokers", ns.cluster.broker_addr_table.size());
    if (ns.topics) text += fmt::format(", {} topics", ns.topics->size());
    const bool empty = ns.cluster.broker_addr_table.empty();
    add(empty ? Grade::problem : Grade::ok, "name-server", "name server " + ns.address,
        empty ? "no broker is registered" : text,
        empty
            ? "Set namesrvAddr of the brokers to it, and look for \"namesrv-unreachable\" in their journals."
            : "");
  }
  if (name_servers_.size() < 2) return;
  const auto differ = [&](const NameServer& o) {
    const NameServer& first = name_servers_.front();
    return !registration_differences(first, o).empty() || !registration_differences(o, first).empty() ||
           first.topics != o.topics;
  };
  // What is being registered at this moment is no difference.
  if (std::any_of(name_servers_.begin() + 1, name_servers_.end(), differ)) {
    std::this_thread::sleep_for(settle_time);
    for (NameServer& ns : name_servers_)
      if (auto again = ask_name_server(ns.channel->peer().address)) ns = std::move(*again);
  }
  for (size_t i = 1; i < name_servers_.size(); i++) compare_name_servers(name_servers_[0], name_servers_[i]);
}

// ---- brokers -----------------------------------------------------------------------------------------

void Doctor::look_at_address(const BrokerNode& node) {
  auto a = parse_address(node.address, 0);
  if (!a || !is_loopback(a->host)) return;
  const bool all_here = std::all_of(name_servers_.begin(), name_servers_.end(), [](const NameServer& ns) {
    return is_loopback(ns.channel->peer().address.host);
  });
  add(all_here ? Grade::note : Grade::problem, "advertised-address", "broker " + node.name,
      fmt::format("it tells clients to connect to {}, which is loopback: only clients on its own host can",
                  node.address),
      "Set brokerIP1 in /etc/rmqd/rmqd.toml to the address that clients reach, and restart it "
      "(systemctl restart rmqd).");
}

void Doctor::look_at_clock(const BrokerSeen& b, int64_t asked_ms, int64_t answered_ms) {
  int64_t remote_ms = 0, blur_ms = (answered_ms - asked_ms) / 2 + 1;
  if (auto now = number_of(b.runtime, "currentTimeMillis")) {
    remote_ms = static_cast<int64_t>(*now);
  } else {
    auto boot = number_of(b.runtime, "bootTimestamp");
    auto text = b.runtime.find("runtime");
    auto ran = text == b.runtime.end() ? std::nullopt : run_time_ms(text->second);
    if (!boot || !ran) return;
    remote_ms = static_cast<int64_t>(*boot) + *ran + 500;
    blur_ms += 500;
  }
  const int64_t skew_ms = remote_ms - (asked_ms + answered_ms) / 2;
  const int64_t sure_ms = std::max<int64_t>(0, std::abs(skew_ms) - blur_ms);
  const std::string text = fmt::format("its clock is {} {} this host's", format_span_ms(std::abs(skew_ms)),
                                       skew_ms < 0 ? "behind" : "ahead of");
  if (sure_ms < skew_warning_ms)
    return add(
        Grade::ok, "clock", b.subject(),
        fmt::format("its clock agrees with this host's to {}", format_span_ms(std::abs(skew_ms) + blur_ms)));
  add(sure_ms < skew_problem_ms ? Grade::warning : Grade::problem, "clock", b.subject(), text,
      "Let all hosts follow one time source (timedatectl set-ntp true; chronyc tracking). Store times, "
      "resets by time, "
      "messages for a time of day and retention go by the broker's clock.");
}

void Doctor::look_at_disk(const BrokerSeen& b) {
  auto reason = b.runtime.find("storeNotWritableReason");
  if (reason != b.runtime.end() && !reason->second.empty())
    return add(Grade::problem, "disk", b.subject(),
               "it refuses producers: " + with_readable_bytes(reason->second),
               "Make room on that file system, or enlarge it; producers are served a second later. A store "
               "that cannot "
               "be written has lines in the journal: journalctl -x -u rmqd, journalctl -k.");
  auto ratio = number_of(b.runtime, "commitLogDiskRatio");
  if (!ratio) return;
  const double used = *ratio * 100;
  const double warn = number_of(b.config, "diskSpaceWarningLevelRatio").value_or(90);
  const double clean = number_of(b.config, "diskMaxUsedSpaceRatio").value_or(75);
  std::string text = fmt::format("{:.0f} % of the store's disk is in use", used);
  auto free = number_of(b.runtime, "diskFreeBytes"), reserve = number_of(b.config, "diskReservedBytes");
  if (free) text += fmt::format(", {} are free", format_bytes(static_cast<int64_t>(*free)));
  const std::string cure =
      "Give the store a larger disk, shorten fileReservedTime and run \"rmqctl broker delete-expired\", or "
      "move away "
      "what does not belong there.";
  if (used >= clean || (free && reserve && *free < 4 * *reserve))
    return add(
        Grade::warning, "disk", b.subject(),
        fmt::format(
            "{}; above {:.0f} % old files are deleted at any hour, above {:.0f} % producers are refused",
            text, clean, warn),
        cure);
  add(Grade::ok, "disk", b.subject(), text);
}

void Doctor::look_at_flush(const BrokerSeen& b) {
  auto p99 = number_of(b.runtime, "putLatency99");
  if (!p99 || *p99 <= 0 || !b.runtime.contains("rmqdVersion")) return;  // 0: nothing was written yet
  const std::string text = fmt::format("99 of 100 writes of its log take at most {:.1f} ms", *p99);
  if (*p99 <= 50) return add(Grade::ok, "flush-latency", b.subject(), text);
  add(*p99 <= 500 ? Grade::warning : Grade::problem, "flush-latency", b.subject(), text,
      "Producers wait for each of them. Look for others that use the disk (iostat -x 1), for a device "
      "without a "
      "write cache that survives a power cut, and for errors (journalctl -k). \"rmqctl doctor\" on its host "
      "measures the "
      "disk itself.");
}

void Doctor::look_at_broker(const BrokerNode& node) {
  BrokerSeen b{node, {}, {}};
  auto channel = c_.broker_at(node.address, node.name);
  if (!channel)
    return add(Grade::problem, "advertised-address", b.subject(),
               fmt::format("nobody answers at {}, the address that it tells clients: {}", node.address,
                           connect_reason(channel.error())),
               "If the broker runs: its brokerIP1 must be an address that clients reach, and port listenPort "
               "open in the "
               "firewall. If not: systemctl status rmqd on its host.");
  look_at_address(node);
  const int64_t asked_ms = Context::now_ms();
  auto reply = (*channel)->ask<proto::GetBrokerRuntimeInfo>({});
  const int64_t answered_ms = Context::now_ms();
  auto runtime = reply ? parse_body<proto::KVTable>(**channel, *reply, "GET_BROKER_RUNTIME_INFO")
                       : Outcome<proto::KVTable>(std::unexpected(reply.error()));
  if (!runtime && runtime.error().exit == Exit::bad_input)
    return add(
        Grade::problem, "advertised-address", b.subject(),
        fmt::format("what answers at {}, the address that it tells clients, is no broker", node.address),
        "Something else listens there, or a proxy between here and there answers. Set brokerIP1 and "
        "listenPort "
        "of the broker to where clients reach it, and restart it (systemctl restart rmqd).");
  if (!runtime)
    return add(
        Grade::problem, "broker", b.subject(), runtime.error().text,
        "It takes connections but does not answer: journalctl -x -u rmqd, and its processor time (top).");
  b.runtime = std::move(runtime->table);
  auto config = (*channel)->ask<proto::GetBrokerConfig>({});
  if (config) b.config = lines_of(config->body());
  auto version = b.runtime.find("rmqdVersion");
  add(Grade::ok, "broker", b.subject(),
      fmt::format("answers at {}{}", node.address,
                  version == b.runtime.end() ? "" : ", rmqd " + version->second));
  look_at_clock(b, asked_ms, answered_ms);
  look_at_disk(b);
  look_at_flush(b);
  brokers_.push_back(std::move(b));
}

void Doctor::look_at_brokers() {
  std::set<std::string> seen;
  for (const NameServer& ns : name_servers_)
    for (const auto& [name, data] : ns.cluster.broker_addr_table)
      for (const auto& [id, address] : data.broker_addrs) {
        if (!c_.options().cluster.empty() && data.cluster != c_.options().cluster) continue;
        if (seen.insert(name + " " + address).second) look_at_broker({data.cluster, name, address, id});
      }
}

}  // namespace rmq::ctl
