// Idea: see mqadmin.h. The options are those of mqadmin 5.5.0's own help.

#include "ctl/mqadmin.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace rmq::ctl {

namespace {

constexpr const char* no_static_topics =
    "rmqd has no static topics; \"rmqctl topic scale\" gives a topic more or fewer queues without losing a "
    "message";
constexpr const char* no_rocksdb =
    "rmqd keeps nothing in RocksDB; its configuration is JSON in the store's directory config, and \"rmqctl "
    "cluster export\" writes that of running brokers";
constexpr const char* no_cold_limits =
    "rmqd bounds reads of old messages for all groups alike, so there is nothing to set for one";
constexpr const char* no_container =
    "rmqd is no broker container; start another rmqd for another broker, and stop it to remove it";
constexpr const char* no_controller =
    "rmqd has no controller; \"rmqctl broker replicas\" shows what a master's replicas are at";
constexpr const char* no_users =
    "rmqd has no users and ACLs yet; who may connect is for the network to say (bindAddress, firewall)";
constexpr const char* no_lite_topics = "rmqd has no lite topics yet";

#define WHERE "-b,--brokerAddr=--broker -c,--clusterName=--cluster "

constexpr MqadminCommand commands[] = {
    // topics
    {"updateTopic", "topic update --create",
     WHERE "-t,--topic=1 -a,--attributes=--attribute -r,--readQueueNums=--read-queues "
           "-w,--writeQueueNums=--write-queues -p,--perm=--perm -o,--order=--order -u,--unit=?* "
           "-s,--hasUnitSub=?*",
     ""},
    {"updateTopicList", "topic load", WHERE "-f,--filename=1", ""},
    {"deleteTopic", "topic delete", "-t,--topic=1 -c,--clusterName=--cluster", ""},
    {"updateTopicPerm", "topic update", WHERE "-t,--topic=1 -p,--perm=--perm", ""},
    {"topicRoute", "topic route", "-t,--topic=1 -l,--list=+", ""},
    {"topicStatus", "topic status", "-t,--topic=1 -c,--cluster=--cluster", ""},
    {"topicClusterList", "topic route", "-t,--topic=1", ""},
    {"topicList", "topic list --all", "-c,--clusterModel=+--groups", ""},
    {"allocateMQ", "topic allocate", "-t,--topic=1 -i,--ipList=2", ""},
    {"updateOrderConf", "topic order", "-t,--topic=1 -v,--orderConf=2 -m,--method=$", ""},
    {"updateStaticTopic", "", "", no_static_topics},
    {"remappingStaticTopic", "", "", no_static_topics},
    {"setConsumeMode", "group mode",
     WHERE "-t,--topicName=2 -g,--groupName=1 -m,--mode=3 -q,--popShareQueueNum=--share", ""},
    // groups and producers
    {"updateSubGroup", "group create",
     WHERE "-g,--groupName=1 -s,--consumeEnable=!--disabled -m,--consumeFromMinEnable=~--no-from-min "
           "-d,--consumeBroadcastEnable=~--no-broadcast -o,--consumeMessageOrderly=--order "
           "-q,--retryQueueNums=--retry-queues -r,--retryMaxTimes=--retry-max "
           "-p,--groupRetryPolicy=--retry-policy -i,--brokerId=--broker-id "
           "-w,--whichBrokerWhenConsumeSlowly=--slow-broker-id -a,--notifyConsumerIdsChanged=!--no-notify "
           "--attributes=--attribute",
     ""},
    {"updateSubGroupList", "group load", WHERE "-f,--filename=1", ""},
    {"deleteSubGroup", "group delete", WHERE "-g,--groupName=1 -r,--removeOffset=~--keep-offsets", ""},
    {"getConsumerConfig", "group show", "-g,--groupName=1", ""},
    {"consumerConnection", "group members", "-g,--consumerGroup=1 -b,--brokerAddr=--broker", ""},
    {"producerConnection", "producer list", "-g,--producerGroup=1 -t,--topic=", ""},
    {"producer", "producer list", "-b,--broker=--broker", ""},
    {"consumerProgress", "group lag",
     "-g,--groupName=1 -t,--topicName=--topic -s,--showClientIP=?--clients -c,--cluster=--cluster", ""},
    {"consumerStatus", "group running",
     "-g,--consumerGroup=1 -i,--clientId=2 -b,--brokerAddr=--broker -s,--jstack=+--jstack", ""},
    {"cloneGroupOffset", "group clone", "-s,--srcGroup=1 -d,--destGroup=2 -t,--topic=3 -o,--offline=", ""},
    {"resetOffsetByTime", "group reset",
     "-g,--group=1 -t,--topic=2 -s,--timestamp=@3 -f,--force= -c,--cluster=--cluster -b,--broker=--broker "
     "-q,--queue=--queue -o,--offset=3",
     ""},
    {"skipAccumulatedMessage", "group skip", "-g,--group=1 -t,--topic=2 -f,--force= -c,--cluster=--cluster",
     ""},
    {"startMonitoring", "doctor --interval=60s", "", ""},
    // messages
    {"queryMsgById", "message",
     "-t,--topic=--topic -i,--msgId=1 -g,--consumerGroup= -d,--clientId=* -s,--sendMessage=?* "
     "-u,--unitName= -f,--bodyFormat= -c,--cluster=",
     ""},
    // With a client that is to consume it.
    {"queryMsgById -d", "group consume",
     "-t,--topic= -i,--msgId=2 -g,--consumerGroup=1 -d,--clientId=3 -s,--sendMessage=?* -u,--unitName= "
     "-f,--bodyFormat= -c,--cluster=",
     ""},
    {"queryMsgByKey", "message",
     "-t,--topic=--topic -k,--msgKey=1 -b,--beginTimestamp=@--from -e,--endTimestamp=@--to "
     "-m,--maxNum=--count -c,--cluster= -p,--keyType=* -l,--lastKey=*",
     ""},
    {"queryMsgByUniqueKey", "message",
     "-i,--msgId=1 -g,--consumerGroup=* -d,--clientId=* -t,--topic=--topic -a,--showAll=+ -c,--cluster= "
     "-s,--startTime=@--from -e,--endTime=@--to",
     ""},
    {"queryMsgByOffset", "message at",
     "-t,--topic=1 -b,--brokerName=2 -i,--queueId=3 -o,--offset=4 -f,--bodyFormat= -r,--routeTopic=*", ""},
    {"queryMsgTraceById", "message trace",
     "-i,--msgId=1 -t,--traceTopic=--topic -b,--beginTimestamp=@--from -e,--endTimestamp=@--to "
     "-c,--maxNum=--count",
     ""},
    {"printMsg", "consume",
     "-t,--topic=1 -c,--charsetName= -s,--subExpression=--tag -b,--beginTimestamp=@--from "
     "-e,--endTimestamp=@--to -d,--printBody= -l,--lmqParentTopic=*",
     ""},
    {"printMsgByQueue", "consume",
     "-t,--topic=1 -a,--brokerName=--broker -i,--queueId=--queue -c,--charsetName= -s,--subExpression=--tag "
     "-b,--beginTimestamp=@--from -e,--endTimestamp=@--to -p,--print= -d,--printBody= "
     "-f,--calculate=?--by-tag",
     ""},
    {"sendMessage", "send",
     "-t,--topic=1 -p,--body=2 -k,--key=--key -c,--tags=--tag -b,--broker=--broker -i,--qid=--queue "
     "-m,--msgTraceEnable=?*",
     ""},
    {"consumeMessage", "consume",
     "-t,--topic=1 -b,--brokerName=--broker -i,--queueId=--queue -g,--consumerGroup= "
     "-s,--beginTimestamp=@--from -o,--offset=--from -e,--endTimestamp=@--to -c,--MessageNumber=--count",
     ""},
    {"checkMsgSendRT", "topic latency", "-t,--topic=1 -a,--amount=--count -s,--size=--size", ""},
    {"sendMsgStatus", "topic latency --count=50",
     "-b,--brokerName=1 -s,--messageSize=--size -c,--count=--count", ""},
    {"queryCq", "topic units",
     "-t,--topic=1 -q,--queue=2 -i,--index=3 -c,--count=--count -b,--broker=--broker -g,--consumer=--group",
     ""},
    {"dumpCompactionLog", "", "",
     "rmqd writes no files of a compaction log; \"rmqctl store dump\" prints what a store holds"},
    // brokers and the cluster
    {"clusterList", "cluster list",
     "-m,--moreStats=+--more -i,--interval=s--interval -c,--clusterName=--cluster", ""},
    {"clusterRT", "cluster latency --interval=10s",
     "-a,--amount=--count -s,--size=--size -c,--cluster=--cluster -p,--print=?* -m,--machine= "
     "-i,--interval=s--interval",
     ""},
    {"brokerStatus", "broker status", WHERE, ""},
    {"brokerConsumeStats", "broker lag",
     "-b,--brokerAddr=--broker -t,--timeoutMillis=ms--timeout -l,--level=--min-lag -o,--order=?--orderly",
     ""},
    {"statsAll", "topic stats --all", "-a,--activeTopic=+--active -t,--topic=1", ""},
    {"getBrokerConfig", "broker config", WHERE, ""},
    {"updateBrokerConfig", "broker config set", WHERE "-a,--updateAllBroker=?* -k,--key=1 -v,--value=2", ""},
    {"cleanExpiredCQ", "broker clean-queues", "-b,--brokerAddr=--broker -c,--cluster=--cluster", ""},
    {"deleteExpiredCommitLog", "broker delete-expired", "-b,--brokerAddr=--broker -c,--cluster=--cluster",
     ""},
    {"cleanUnusedTopic", "broker clean-topics", "-b,--brokerAddr=--broker -c,--cluster=--cluster", ""},
    {"resetMasterFlushOffset", "", "",
     "it is of replicas under RocketMQ's own replication, whose flush offset nothing of rmqd takes from a "
     "tool"},
    {"haStatus", "broker replicas", WHERE "-i,--interval=s--interval", ""},
    {"getBrokerEpoch", "", "", no_controller},
    {"getColdDataFlowCtrInfo", "", "", no_cold_limits},
    {"updateColdDataFlowCtrGroupConfig", "", "", no_cold_limits},
    {"removeColdDataFlowCtrGroupConfig", "", "", no_cold_limits},
    {"setCommitLogReadAheadMode", "", "",
     "rmqd reads the CommitLog past the page cache and reads ahead by itself; there is no mode to set"},
    {"switchTimerEngine", "", "", "rmqd has one timer engine; \"rmqctl timer list\" shows what it holds"},
    {"addBroker", "", "", no_container},
    {"removeBroker", "", "", no_container},
    // name server
    {"getNamesrvConfig", "namesrv config", "", ""},
    {"updateNamesrvConfig", "namesrv config set", "-k,--key=1 -v,--value=2", ""},
    {"updateKvConfig", "namesrv kv set", "-s,--namespace=1 -k,--key=2 -v,--value=3", ""},
    {"deleteKvConfig", "namesrv kv delete", "-s,--namespace=1 -k,--key=2", ""},
    {"wipeWritePerm", "namesrv wipe-write", "-b,--brokerName=1", ""},
    {"addWritePerm", "namesrv add-write", "-b,--brokerName=1", ""},
    // controller
    {"getSyncStateSet", "", "", no_controller},
    {"getControllerMetaData", "", "", no_controller},
    {"getControllerConfig", "", "", no_controller},
    {"updateControllerConfig", "", "", no_controller},
    {"electMaster", "", "", no_controller},
    {"cleanBrokerMetadata", "", "", no_controller},
    // export
    {"exportMetadata", "cluster export --only=metadata",
     "-c,--clusterName=--cluster -b,--brokerAddr=--broker -f,--filePath=1:/tmp/rocketmq/export "
     "-t,--topic=+--topics -g,--subscriptionGroup=+--groups -s,--specialTopic=+--all",
     ""},
    {"exportConfigs", "cluster export --only=configs",
     "-c,--clusterName=--cluster -f,--filePath=1:/tmp/rocketmq/export", ""},
    {"exportMetrics", "cluster export --only=metrics",
     "-c,--clusterName=--cluster -f,--filePath=1:/tmp/rocketmq/export", ""},
    {"exportMetadataInRocksDB", "", "", no_rocksdb},
    {"exportPopRecord", "", "",
     "rmqd keeps the records of popped messages in topics of the store, as a RocketMQ broker reads them; "
     "there is no other form to export them to"},
    {"rocksDBConfigToJson", "", "", no_rocksdb},
    {"checkRocksdbCqWriteProgress", "", "", no_rocksdb},
    // users and ACLs
    {"createUser", "", "", no_users},
    {"updateUser", "", "", no_users},
    {"deleteUser", "", "", no_users},
    {"getUser", "", "", no_users},
    {"listUser", "", "", no_users},
    {"copyUser", "", "", no_users},
    {"createAcl", "", "", no_users},
    {"updateAcl", "", "", no_users},
    {"deleteAcl", "", "", no_users},
    {"getAcl", "", "", no_users},
    {"listAcl", "", "", no_users},
    {"copyAcl", "", "", no_users},
    // lite topics
    {"getBrokerLiteInfo", "", "", no_lite_topics},
    {"getParentTopicInfo", "", "", no_lite_topics},
    {"getLiteTopicInfo", "", "", no_lite_topics},
    {"getLiteClientInfo", "", "", no_lite_topics},
    {"getLiteGroupInfo", "", "", no_lite_topics},
    {"triggerLiteDispatch", "", "", no_lite_topics},
};
#undef WHERE

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto end = text.find(at);
    if (end != 0) out.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 32);
  return out;
}

bool is_true(std::string_view value) {
  return lower(value) == "true";
}

// As mqadmin writes moments, in the words of rmqctl. What it cannot be goes on as it is, and is refused
// there.
std::string moment(std::string value) {
  if (value == "-1") return "latest";
  if (!value.empty() && value.find_first_not_of("0123456789") == std::string::npos) return "@" + value;
  const auto hash = value.find('#');
  if (hash == std::string::npos) return value;
  value[hash] = ' ';
  const auto last = value.rfind(':');
  if (std::count(value.begin(), value.end(), ':') == 3) value[last] = '.';
  return value;
}

// Values as they come, by the option's place in the row.
using Given = std::map<size_t, std::string>;

struct Parsed {
  Given given;
  std::vector<std::string> rest;
};

const size_t no_option = static_cast<size_t>(-1);

size_t find_option(const std::vector<MqadminOption>& all, std::string_view name) {
  for (size_t i = 0; i < all.size(); i++)
    if (std::find(all[i].names.begin(), all[i].names.end(), name) != all[i].names.end()) return i;
  return no_option;
}

Outcome<Parsed> parse(const MqadminCommand& command, const std::vector<MqadminOption>& all,
                      const std::vector<std::string>& args) {
  Parsed out;
  for (size_t i = 0; i < args.size(); i++) {
    std::string_view name = args[i], value;
    const auto eq = name.starts_with("--") ? name.find('=') : std::string_view::npos;
    if (eq != std::string_view::npos) {
      value = name.substr(eq + 1);
      name = name.substr(0, eq);
    }
    size_t at = find_option(all, name);
    // -tTOPIC
    if (at == no_option && name.size() > 2 && name[0] == '-' && name[1] != '-') {
      at = find_option(all, name.substr(0, 2));
      if (at != no_option && all[at].takes_value) value = name.substr(2);
    }
    if (at == no_option) {
      out.rest.push_back(args[i]);
      continue;
    }
    if (all[at].takes_value && value.empty()) {
      if (++i == args.size())
        return fail(Exit::usage, fmt::format("{}: {} needs a value", command.name, args[i - 1]));
      value = args[i];
    }
    out.given[at] = value;
  }
  return out;
}

// A row of its own for the command with that option: "queryMsgById -d".
const MqadminCommand* variant_of(const MqadminCommand& command, const MqadminOption& option) {
  return find_mqadmin_command(fmt::format("{} {}", command.name, option.names[0]));
}

// What a row makes of the values: places of the plain arguments, and options in the order of the row, where a
// later one replaces an earlier one of the same name.
class Form {
 public:
  explicit Form(const MqadminCommand& command) : command_(command) {}

  Outcome<void> put(const MqadminOption& option, const std::string* value) {
    std::string_view target = option.target;
    if (!value) {
      if (target.starts_with('~')) set(target.substr(1));
      const auto colon = target.find(':');
      if (colon != std::string_view::npos)
        place(target.substr(0, colon), std::string(target.substr(colon + 1)));
      return {};
    }
    if (target.starts_with('?') || target.starts_with('!') || target.starts_with('~')) {
      if (is_true(*value) != (target[0] == '?')) return {};
      return target.substr(1) == "*" ? refused(option) : (set(target.substr(1)), Outcome<void>{});
    }
    if (target == "+" || target.empty()) return {};
    if (target == "*" || target == "+*") return refused(option);
    if (target == "$") {
      words += " " + lower(*value);
    } else if (target.starts_with('+')) {
      set(target.substr(1));
    } else {
      valued(target, *value);
    }
    return {};
  }

  void set(std::string_view option) {
    auto name = [](std::string_view o) { return o.substr(0, o.find('=')); };
    std::erase_if(options_, [&](const std::string& o) { return name(o) == name(option); });
    options_.emplace_back(option);
  }
  Outcome<Translated> take(std::vector<std::string> rest) {
    Translated out{words, {}, options_};
    for (char at = '1'; !places_.empty(); at++) {
      auto place = places_.extract(at);
      if (!place)
        return fail(Exit::usage, fmt::format("{}: {} is missing", command_.name, name_of_place(at)));
      out.arguments.push_back(std::move(place.mapped()));
    }
    out.options.insert(out.options.end(), rest.begin(), rest.end());
    return out;
  }
  std::string words;

 private:
  void valued(std::string_view target, std::string value) {
    if (target.starts_with('@')) {
      value = moment(std::move(value));
      target.remove_prefix(1);
    } else if (target.starts_with("ms--") || target.starts_with("s--")) {
      const auto unit = target.find('-');
      value += target.substr(0, unit);
      target.remove_prefix(unit);
    }
    if (target.starts_with("--")) {
      set(std::string(target) + "=" + value);
    } else {
      place(target.substr(0, target.find(':')), std::move(value));
    }
  }
  void place(std::string_view at, std::string value) { places_[at[0]] = std::move(value); }
  std::string_view name_of_place(char at) const {
    for (const MqadminOption& o : options_of(command_))
      if (o.target.starts_with(at) || (o.target.starts_with('@') && o.target[1] == at)) return o.names[0];
    return "an option";
  }
  Outcome<void> refused(const MqadminOption& option) {
    return fail(Exit::usage,
                fmt::format("{}: {} is not done by rmqctl; Apache's own mqadmin works with rmqd, too",
                            command_.name, fmt::join(option.names, ", ")));
  }

  const MqadminCommand& command_;
  std::map<char, std::string> places_;
  std::vector<std::string> options_;
};

}  // namespace

std::span<const MqadminCommand> mqadmin_commands() {
  return commands;
}

const MqadminCommand* find_mqadmin_command(std::string_view name) {
  const std::string wanted = lower(name);
  for (const MqadminCommand& c : commands)
    if (lower(c.name) == wanted) return &c;
  return nullptr;
}

std::vector<MqadminOption> options_of(const MqadminCommand& command) {
  std::vector<MqadminOption> out;
  std::vector<std::string_view> texts = split(command.options, ' ');
  texts.insert(texts.end(), {"-n,--namesrvAddr=--namesrv", "-h,--help=+--help"});
  for (std::string_view text : texts) {
    const auto eq = text.find('=');
    MqadminOption o;
    o.names = split(text.substr(0, eq), ',');
    o.target = text.substr(eq + 1);
    o.takes_value = !o.target.starts_with('+');
    out.push_back(std::move(o));
  }
  return out;
}

Outcome<Translated> translate(const MqadminCommand& command, const std::vector<std::string>& args) {
  if (*command.refusal)
    return fail(Exit::usage, fmt::format("{} is not done: {}", command.name, command.refusal));
  const std::vector<MqadminOption> all = options_of(command);
  TRY_VAR(parsed, parse(command, all, args));
  for (const auto& [at, value] : parsed.given)
    if (const MqadminCommand* other = variant_of(command, all[at])) return translate(*other, args);
  Form form(command);
  for (std::string_view word : split(command.verb, ' ')) {
    if (word.starts_with("--")) {
      form.set(word);
    } else {
      form.words += (form.words.empty() ? "" : " ") + std::string(word);
    }
  }
  for (size_t i = 0; i < all.size(); i++) {
    auto given = parsed.given.find(i);
    TRY(form.put(all[i], given == parsed.given.end() ? nullptr : &given->second));
  }
  return form.take(std::move(parsed.rest));
}

std::vector<std::string_view> mqadmin_names_of(std::string_view words) {
  std::vector<std::string_view> out;
  for (const MqadminCommand& c : commands) {
    std::string_view verb = c.verb;
    verb = verb.substr(0, verb.find(" --"));
    const bool choice = std::string_view(c.options).find("=$") != std::string_view::npos;
    if (verb == words || (choice && words.starts_with(verb) && words[verb.size()] == ' '))
      out.push_back(c.name);
  }
  return out;
}

}  // namespace rmq::ctl
