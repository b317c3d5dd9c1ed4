// A message as it is shown: a record of an answer, its body inflated when it was compressed, as a line, as a
// page or as JSON. The record's views lie in the answer's frame.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/outcome.h"
#include "proto/record.h"

namespace rmq::proto {
class JsonWriter;
}

namespace rmq::ctl {

struct Message {
  proto::RecordView record;
  std::string broker;  // its name, empty when it is not known
  std::string body;    // inflated

  std::string_view property(std::string_view name) const { return record.property(name).value_or(""); }
  std::string offset_id() const;
};

// Every record of an answer's body, in order. Exit::bad_input names what is wrong with it.
Outcome<std::vector<Message>> parse_messages(Bytes body, std::string_view broker);

// The body as its producer gave it: sysFlag says whether and how it is compressed. Errc::bad_input when it
// does not inflate, Errc::limit beyond 64 MiB.
Result<std::string> inflate_body(Bytes body, int32_t sys_flag);

// "broker-a/3 @17  2026-11-30 04:05:06.789  [TagA] text of the body"
std::string message_line(const Message& m);
// One member a line, body at the end, as text or as a hex dump.
std::string message_page(const Message& m, int64_t now_ms, bool hex);
void write_message_json(proto::JsonWriter& w, const Message& m);
std::string message_json_line(const Message& m);

}  // namespace rmq::ctl
