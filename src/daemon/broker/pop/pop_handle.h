// The texts of POP on the wire, exactly as the clients' ExtraInfoUtil reads and writes them (remoting.md 13):
// the handle of a message (POP_CK, extraInfo) and the three info texts of an answer; and the names of the
// topics that messages go to which nobody acknowledged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rmq::broker {

inline constexpr int32_t pop_order_revive_queue = 999;  // reviveQid of what was popped in order

// %RETRY%<group>_<topic>, or with '+' (enableRetryTopicV2).
std::string pop_retry_topic(std::string_view group, std::string_view topic, bool v2);
// The topic of such a retry topic of the group; another topic is its own.
std::string original_topic(std::string_view group, std::string_view topic);
// What kind of topic a message was popped from: '0' the topic itself, '1' and '2' its retry topics.
char retry_mark_of(std::string_view topic);
// The topic that a mark of a client's handle means; nothing for a mark that there is not.
std::optional<std::string> topic_of_mark(std::string_view mark, std::string_view group,
                                         std::string_view topic);

struct PopHandle {
  int64_t start_offset = 0;  // of the checkpoint
  int64_t pop_time_ms = 0;
  int64_t invisible_ms = 0;
  int32_t revive_queue = 0;
  char mark = '0';
  std::string_view broker_name;
  int32_t queue_id = 0;
  std::optional<int64_t> offset;  // of the message

  bool in_order() const { return revive_queue == pop_order_revive_queue; }
  std::string encode() const;
  // Errc::bad_input when it has fewer than seven fields or one that is not a number.
  static Result<PopHandle> parse(std::string_view text);
};

// One more part of startOffsetInfo, msgOffsetInfo and orderCountInfo. Parts are separated by ';'.
void append_start_offset(std::string& info, char mark, int32_t queue_id, int64_t start_offset);
void append_queue_order_count(std::string& info, char mark, int32_t queue_id, int32_t count);
void append_offset_order_count(std::string& info, char mark, int32_t queue_id, int64_t offset, int32_t count);
// begin first, then each offset with `first` for the first of them.
void begin_msg_offsets(std::string& info, char mark, int32_t queue_id);
void append_msg_offset(std::string& info, bool first, int64_t offset);

}  // namespace rmq::broker
