// The body of a batch send: messages back to back, each total size 4 | magic 4 | body CRC 4 | flag 4 | body
// length 4 | body | properties length 2 | properties. Magic and CRC are 0 and not looked at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace rmq::proto {

struct BatchMessage {
  int32_t flag = 0;
  Bytes body;
  std::string_view properties;
};

// Walks a batch body: true and a message, false at the end, Errc::bad_input when a length is wrong.
class BatchReader {
 public:
  explicit BatchReader(Bytes body) : rest_(body) {}
  Result<bool> next(BatchMessage* out);

 private:
  Bytes rest_;
};

// Number of messages, once all of them were checked. An empty body has none.
Result<uint32_t> check_batch(Bytes body);
// Appends one message. Properties of at most 32767 bytes.
void append_batch_message(std::string& out, int32_t flag, Bytes body, std::string_view properties);

}  // namespace rmq::proto
