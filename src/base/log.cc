#include "base/log.h"

#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/limits.h"
#include "base/time.h"

namespace rmq {
namespace {

struct Line {
  LogLevel level;
  const MessageId* id;
  std::string text;
  std::vector<std::pair<std::string, std::string>> fields;
};

std::atomic<LogLevel> threshold{LogLevel::info};
std::atomic<uint64_t> lines_over_rate{0}, lines_lost{0};

// A line stays a line: control characters of a peer's text are shown, not obeyed.
std::string printable(std::string_view s) {
  std::string out;
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f)
      out += fmt::format("\\x{:02x}", u);
    else
      out += c;
  }
  return out;
}

void write_stderr(const Line& l) {
  std::string s =
      fmt::format("{} {}: {}", format_wall_ms(system_wall_ms()), name_of(l.level), printable(l.text));
  for (auto& [k, v] : l.fields) s += fmt::format(" {}={}", k, printable(v));
  s += '\n';
  [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, s.data(), s.size());
}

void write_journal(const Line& l) {
  std::vector<std::string> parts;
  parts.push_back("MESSAGE=" + printable(l.text));
  parts.push_back(fmt::format("PRIORITY={}", static_cast<int>(l.level)));
  if (l.id != nullptr) {
    parts.push_back(fmt::format("MESSAGE_ID={}", l.id->hex));
    parts.push_back(fmt::format("EVENT={}", l.id->name));
  }
  for (auto& [k, v] : l.fields) parts.push_back(k + "=" + v);
  std::vector<iovec> v;
  for (auto& p : parts) v.push_back({p.data(), p.size()});
  if (sd_journal_sendv(v.data(), static_cast<int>(v.size())) < 0) write_stderr(l);
}

class LogThread {
 public:
  explicit LogThread(bool to_journal) : to_journal_(to_journal), thread_([this] { run(); }) {}
  ~LogThread() {
    {
      std::lock_guard g(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void push(Line l) {
    std::lock_guard g(mutex_);
    if (l.id != nullptr && over_rate(*l.id)) return;
    if (lines_.size() >= limits::log_lines_queued_max) {
      lost_++;
      lines_lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    lines_.push_back(std::move(l));
    wake_.notify_one();
  }

 private:
  static constexpr int64_t rate_window_ns = 10 * ns_per_s;
  static constexpr int rate_lines = 20;
  struct Rate {
    const MessageId* id = nullptr;
    int64_t window_start_ns = 0;
    int count = 0;
    uint64_t dropped = 0;
  };

  // Of the window that is over.
  void tell_dropped(Rate& r) {
    if (r.dropped == 0) return;
    rates_dropping_--;
    Line l{LogLevel::notice,
           r.id,
           fmt::format("{} more lines of event {} were not written", r.dropped, r.id->name),
           {{"SUPPRESSED", std::to_string(r.dropped)}}};
    r.dropped = 0;
    if (lines_.size() < limits::log_lines_queued_max) lines_.push_back(std::move(l));
  }

  bool over_rate(const MessageId& id) {
    Rate& r = rates_[id.hex];
    r.id = &id;
    const int64_t now = system_mono_ns();
    if (now - r.window_start_ns > rate_window_ns) {
      tell_dropped(r);
      r.window_start_ns = now;
      r.count = 0;
    }
    if (++r.count <= rate_lines) return false;
    if (r.dropped++ == 0) rates_dropping_++;
    lines_over_rate.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  // What nobody asks about any more is told all the same.
  void tell_old_rates(bool all) {
    const int64_t now = system_mono_ns();
    for (auto& [hex, r] : rates_)
      if (all || now - r.window_start_ns > rate_window_ns) tell_dropped(r);
  }

  void wait_for_lines(std::unique_lock<std::mutex>& g) {
    const auto something = [&] { return stop_ || !lines_.empty(); };
    while (!something()) {
      if (rates_dropping_ == 0) return wake_.wait(g, something);
      wake_.wait_for(g, std::chrono::seconds(1), something);
      tell_old_rates(false);
    }
  }

  void run() {
    std::unique_lock g(mutex_);
    for (;;) {
      wait_for_lines(g);
      if (stop_) tell_old_rates(true);
      if (lines_.empty() && stop_) return;
      std::deque<Line> now = std::move(lines_);
      lines_.clear();
      uint64_t lost = std::exchange(lost_, 0);
      g.unlock();
      for (auto& l : now) write(l);
      if (lost != 0)
        write({LogLevel::warning, &ids::log_lines_lost, fmt::format("{} log lines were lost", lost), {}});
      g.lock();
      if (rates_dropping_ != 0) tell_old_rates(false);
    }
  }

  void write(const Line& l) {
    if (to_journal_)
      write_journal(l);
    else
      write_stderr(l);
  }

  const bool to_journal_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Line> lines_;
  std::map<std::string_view, Rate> rates_;
  size_t rates_dropping_ = 0;  // of them, that have dropped lines to tell of
  uint64_t lost_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: starts when everything above is ready
};

std::unique_ptr<LogThread> log_thread;

void emit(LogLevel level, const MessageId* id, std::string_view text,
          std::initializer_list<LogField> fields) {
  if (level > threshold.load(std::memory_order_relaxed)) return;
  Line l{level, id, std::string(text), {}};
  for (const LogField& f : fields)
    if (!f.value.empty()) l.fields.emplace_back(f.key, f.value);
  if (log_thread)
    log_thread->push(std::move(l));
  else
    write_stderr(l);
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "error";
    case LogLevel::warning:
      return "warning";
    case LogLevel::notice:
      return "notice";
    case LogLevel::info:
      return "info";
    case LogLevel::debug:
      return "debug";
  }
  return "info";
}
LogLevel log_level_of(std::string_view name) {
  for (LogLevel l : {LogLevel::error, LogLevel::warning, LogLevel::notice, LogLevel::debug})
    if (name_of(l) == name) return l;
  return LogLevel::info;
}

void log_start(bool to_journal, LogLevel level) {
  check(!log_thread);
  threshold = level;
  log_thread = std::make_unique<LogThread>(to_journal);
}
void log_stop() {
  log_thread.reset();
}
void log_set_level(LogLevel level) {
  threshold = level;
}
LogLevel log_level() {
  return threshold;
}
LogCounts log_counts() {
  return {lines_over_rate.load(std::memory_order_relaxed), lines_lost.load(std::memory_order_relaxed)};
}

void log(LogLevel level, const MessageId& id, std::string_view text, std::initializer_list<LogField> fields) {
  emit(level, &id, text, fields);
}
void log(LogLevel level, std::string_view text, std::initializer_list<LogField> fields) {
  emit(level, nullptr, text, fields);
}

void check_failed(std::source_location at) {
  fprintf(stderr, "rmqd: a check failed, this is a bug: %s:%u, in %s\n", at.file_name(), at.line(),
          at.function_name());
  abort();
}

}  // namespace rmq
