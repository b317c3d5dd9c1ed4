// What every request that brings a message goes through: SEND_MESSAGE and its forms, and replies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/broker/broker.h"
#include "proto/headers_send.h"

namespace rmq::broker {

// What one pass over the properties of a send finds.
struct SendProperties {
  size_t unique_key_at = 0, unique_key_bytes = 0;  // of the value, in the stored text
  int64_t tags_code = 0;
  bool wait = true;
  bool transaction = false;
  bool timer = false;
  bool light = false;    // it names light queues
  bool sharded = false;  // it has a sharding key
  bool has_delay = false;
  bool lite = false;      // it is for a lite topic
  bool inner = false;     // it says that it is several messages
  int32_t priority = -1;  // -1: none that is one
  int delay_level = 0;    // -1: DELAY is not a number

  std::string_view unique_key(std::string_view text) const {
    return text.substr(unique_key_at, unique_key_bytes);
  }
  MessageType type() const {
    return transaction                 ? MessageType::transaction
           : sharded                   ? MessageType::fifo
           : timer || delay_level != 0 ? MessageType::delay
                                       : MessageType::normal;
  }
  bool is_special() const {
    return transaction || timer || light || lite || inner || priority >= 0 || delay_level != 0;
  }
};

// Writes to `text` what is stored of `from`: all but what only the broker may say, and what the broker says.
SendProperties store_properties(Broker& b, std::string_view from, std::string& text);

// A reply goes to the client that asked also when the store does not take it.
enum class SendOf : uint8_t { message, reply };
// Names, permissions, topic and queue id. True: go on; else it is answered. `queue_id` gets the queue. No
// topic is made for a message that the store does not take.
Task<bool> check_send(Broker& b, Request& r, const proto::SendMessageRequestHeader& h, SendOf what,
                      int32_t* queue_id);

// The message of a send without body and properties, which are the caller's to set. Views into the request.
store::MessageIn message_of(Broker& b, Request& r, const proto::SendMessageRequestHeader& h,
                            int32_t queue_id);

// A put with this outcome has stored its message, safe or not.
bool is_stored(const store::PutMessageResult& put);

// A refused send carries MSG_REGION and TRACE_ON as well: the Java client reads them unasked.
void refuse_send(Broker& b, Request& r, proto::ResponseCode code, std::string_view remark);

}  // namespace rmq::broker
