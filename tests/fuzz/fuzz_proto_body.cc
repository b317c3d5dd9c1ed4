// Bodies from any bytes: the normaliser gives text that it leaves alone the second time, and what a body
// parses to is written and read again to the same text.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "proto/bodies_admin.h"
#include "proto/bodies_client.h"
#include "proto/bodies_config.h"
#include "proto/bodies_export.h"
#include "proto/bodies_route.h"
#include "proto/bodies_stats.h"

using namespace rmq;
using namespace rmq::proto;

template <class T>
static void body(std::string_view text, JsonStyle style = JsonStyle::fastjson) {
  auto first = T::parse(text);
  if (!first) return;
  std::string once = first->to_json(style);
  auto second = T::parse(once);
  check(second.has_value());
  check(second->to_json(style) == once);
}

static void exported(std::string_view text) {
  auto first = MetadataExport::parse(text);
  if (!first) return;
  auto second = MetadataExport::parse(first->to_json());
  check(second.has_value());
  check(second->to_json() == first->to_json());
}

static void normaliser(std::string_view text) {
  auto once = normalise_fastjson(text);
  if (!once) return;
  auto twice = normalise_fastjson(*once);
  check(twice.has_value());
  check(*twice == *once);
}

static void registration(std::string_view text) {
  (void)RegisterBrokerBody::parse_compressed(text, 513);
  (void)TopicConfig::parse_line(text);
  auto b = RegisterBrokerBody::parse(text);
  if (b) (void)b->to_compressed();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 17) {
    case 0:
      normaliser(text);
      break;
    case 1:
      body<HeartbeatData>(text);
      break;
    case 2:
      body<TopicRouteData>(text, JsonStyle::strict);
      break;
    case 3:
      registration(text);
      break;
    case 4:
      body<LockBatchRequestBody>(text);
      break;
    case 5:
      body<ResetOffsetBody>(text);
      break;
    case 6:
      body<TopicConfigSerializeWrapper>(text, JsonStyle::pretty);
      break;
    case 7:
      body<SubscriptionGroupWrapper>(text, JsonStyle::pretty);
      break;
    case 8:
      body<ConsumerOffsetWrapper>(text, JsonStyle::pretty);
      break;
    case 9:
      body<TopicStatsTable>(text);
      break;
    case 10:
      body<ConsumerConnection>(text);
      break;
    case 11:
      body<ClusterInfo>(text);
      break;
    case 12:
      body<ConsumeStatsList>(text);
      break;
    case 13:
      body<BrokerStatsData>(text);
      break;
    case 14:
      body<QueryConsumeQueueResponseBody>(text);
      break;
    case 15:
      body<HARuntimeInfo>(text);
      break;
    case 16:
      exported(text);
      break;
  }
  return 0;
}
