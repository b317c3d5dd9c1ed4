// The verbs of all families in the order of the help.

#include "ctl/verb.h"

#include <algorithm>

namespace rmq::ctl {

std::span<const Verb> verb_table() {
  static const std::vector<Verb> all = [] {
    std::vector<Verb> out;
    for (auto family :
         {cluster_verbs(), broker_verbs(), namesrv_verbs(), topic_verbs(), group_verbs(), producer_verbs(),
          send_verbs(), consume_verbs(), message_verbs(), transaction_verbs(), timer_verbs(), dlq_verbs(),
          bench_verbs(), store_verbs(), doctor_verbs(), top_verbs()})
      out.insert(out.end(), family.begin(), family.end());
    return out;
  }();
  return all;
}

// Names of mqadmin for verbs that have another one in their row already.
static constexpr struct {
  const char* name;
  const char* words;
  const char* arguments;
} more_names[] = {
    {"updateTopicPerm", "topic update", "-t"},
    {"topicClusterList", "topic route", "-t"},
    {"queryMsgByKey", "message", "-k"},
    {"queryMsgByUniqueKey", "message", "-i"},
    {"producerConnection", "producer list", "-g !-t"},
};

std::span<const MqadminName> mqadmin_names() {
  static const std::vector<MqadminName> all = [] {
    std::vector<MqadminName> out;
    for (const Verb& v : verb_table()) {
      if (*v.mqadmin) out.push_back({v.mqadmin, &v, v.mqadmin_arguments});
      for (const auto& more : more_names)
        if (std::string_view(more.words) == v.words) out.push_back({more.name, &v, more.arguments});
    }
    return out;
  }();
  return all;
}

const MqadminName* find_mqadmin_name(std::string_view name) {
  auto lower = [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c | 32 : c); };
  for (const MqadminName& m : mqadmin_names()) {
    const std::string_view mine = m.name;
    if (mine.size() == name.size() && std::equal(mine.begin(), mine.end(), name.begin(),
                                                 [&](char a, char b) { return lower(a) == lower(b); }))
      return &m;
  }
  return nullptr;
}

}  // namespace rmq::ctl
