#include "daemon/routes.h"

namespace rmq::detail {

void answer_not_supported(Request& request, std::string_view reason) {
  std::string remark = " request type " + std::to_string(request.command.code) + " not supported";
  if (!reason.empty()) (remark += ": ") += reason;
  request.reply(proto::ResponseCode::REQUEST_CODE_NOT_SUPPORTED, remark);
}

void answer_header_error(Request& request, const proto::HeaderError& error) {
  request.reply(proto::ResponseCode::SYSTEM_ERROR, proto::remark_of(error));
}

}  // namespace rmq::detail
