#include "daemon/namesrv/metrics.h"

#include <algorithm>

#include "daemon/namesrv/name_server.h"
#include "proto/codes.h"

namespace rmq::namesrv {

// Codes that have no name share one series: a peer can make up any number of them.
void NameServer::answered(const Request& r, proto::ResponseCode code) {
  const bool known = !proto::name_of(static_cast<proto::RequestCode>(r.command.code)).empty();
  answers_[{known ? r.command.code : -1, static_cast<int32_t>(code)}]++;
}

static std::string code_name(std::string_view name) {
  std::string out(name.empty() ? "unknown" : name);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 32);
  return out;
}

Task<void> NamesrvExport::write(MetricsPage& page) {
  page.only(metric::namesrv_brokers, uint64_t{names_.routes().broker_count()});
  page.only(metric::namesrv_topics, uint64_t{names_.routes().topic_count()});
  page.family(metric::namesrv_requests);
  for (const auto& [codes, count] : names_.answers()) {
    const auto request = static_cast<proto::RequestCode>(codes.first);
    const auto response = static_cast<proto::ResponseCode>(codes.second);
    page.sample({{"request_code", code_name(proto::name_of(request))},
                 {"response_code", code_name(proto::name_of(response))}},
                count);
  }
  if (page.is_full()) co_await page.flush();
}

}  // namespace rmq::namesrv
