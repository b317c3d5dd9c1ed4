#include "daemon/routes.h"

namespace rmq::detail {

void answer_not_supported(Request& request) {
  request.reply(proto::ResponseCode::REQUEST_CODE_NOT_SUPPORTED,
                " request type " + std::to_string(request.command.code) + " not supported");
}

void answer_header_error(Request& request, const proto::HeaderError& error) {
  request.reply(proto::ResponseCode::SYSTEM_ERROR, proto::remark_of(error));
}

}  // namespace rmq::detail
