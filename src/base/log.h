// The log: structured lines to the journal, or to stderr when not under systemd. A line is handed to a
// thread of the log's own over a bounded queue, because the journal's socket may block and a ring must
// not; when the queue is full lines are dropped and counted, and the count is said later. Lines with the
// same id beyond a rate (20 in 10 s) are dropped and counted too, and a line of that id says how many.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/message_id.h"

namespace rmq {

enum class LogLevel : uint8_t { error = 3, warning = 4, notice = 5, info = 6, debug = 7 };  // syslog numbers

// "error", "warning", "notice", "info", "debug".
std::string_view name_of(LogLevel level);
// Info for an unknown name.
LogLevel log_level_of(std::string_view name);

struct LogField {
  std::string_view key;    // journal field name, upper case: TOPIC, GROUP, CLIENT, CODE, REASON
  std::string_view value;  // empty: the field is left out
};

// Starts the log thread. `to_journal`: sd_journal, else stderr ("<level> text KEY=value"). Lines above
// `level` are dropped at once. Call once, before other threads; lines before it go straight to stderr.
void log_start(bool to_journal, LogLevel level);
// Writes what is queued and ends the thread; later lines go to stderr at once.
void log_stop();
void log_set_level(LogLevel level);
LogLevel log_level();

// Lines that nobody will see, since the start.
struct LogCounts {
  uint64_t over_rate = 0;  // beyond the rate of their id
  uint64_t lost = 0;       // the queue was full
};
LogCounts log_counts();

// Any thread, never blocks. An event with an id, for operators.
void log(LogLevel level, const MessageId& id, std::string_view text,
         std::initializer_list<LogField> fields = {});
// A line without an id, for developers (debug) or for start-up facts.
void log(LogLevel level, std::string_view text, std::initializer_list<LogField> fields = {});

}  // namespace rmq
