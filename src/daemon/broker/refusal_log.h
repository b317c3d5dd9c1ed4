// Requests that were refused, in the journal: the first of each kind (request code, response code), then at
// most one a minute, with how many came meanwhile. All of them are counted in rmqd_refused_requests_total.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "proto/codes.h"

namespace rmq {
class Request;
}

namespace rmq::broker {

// True: the journal does not tell of it, though it is counted.
bool is_usual(int32_t request_code, proto::ResponseCode code);

// False for answers that tell a client no more than that there is nothing for it now.
bool is_refusal(proto::ResponseCode code);

class RefusalLog {
 public:
  // `r` is being answered with `code`.
  void note(const Request& r, proto::ResponseCode code, int64_t now_ns);

 private:
  struct Kind {
    int64_t told_ns = 0;
    uint64_t untold = 0;
  };
  std::map<std::pair<int32_t, int32_t>, Kind> kinds_;
};

}  // namespace rmq::broker
