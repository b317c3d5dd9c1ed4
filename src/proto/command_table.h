// All rows in one place: the list of types that routes are checked against at compile time, and the same as
// data, sorted by code, for names, admission, documents, the raw call of rmqctl and the seeds of the fuzzers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "proto/headers_admin.h"
#include "proto/headers_client.h"
#include "proto/headers_ha.h"
#include "proto/headers_namesrv.h"
#include "proto/headers_offset.h"
#include "proto/headers_pop.h"
#include "proto/headers_pull.h"
#include "proto/headers_push.h"
#include "proto/headers_send.h"
#include "proto/headers_transaction.h"

namespace rmq::proto {

using AllCommands =
    join_lists<SendCommands, PullCommands, OffsetCommands, ClientCommands, TransactionCommands, PushCommands,
               PopCommands, NamesrvCommands, HaCommands, AdminCommands>::type;

struct FieldInfo {
  std::string_view name;  // as this row's command writes it
  std::string_view full;  // the long name
  FieldType type;
  FieldPresence presence;
  Resource resource;
};

struct CommandRow {
  RequestCode code;
  std::string_view name;
  Admission admission;
  Names names;
  std::span<const FieldInfo> request;
  std::span<const FieldInfo> response;
};

// Sorted by code, each code of RMQ_REQUEST_CODES exactly once.
std::span<const CommandRow> command_table();
// Null for an unknown code.
const CommandRow* find_command(int32_t code);

}  // namespace rmq::proto
