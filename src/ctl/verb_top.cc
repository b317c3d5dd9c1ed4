// rmqctl top: brokers, topics and groups on one screen that renews itself.

#include <chrono>
#include <thread>

#include "ctl/context.h"
#include "ctl/terminal.h"
#include "ctl/top_sample.h"
#include "ctl/top_screen.h"

namespace rmq::ctl {

namespace {

constexpr int64_t usual_interval_ms = 2'000, snapshot_interval_ms = 1'000;
constexpr size_t plain_columns = 80;
constexpr const char* usual_timeout = "2s";  // a screen that waits for one broker shows none

// Each time over connections of its own: a server that was away is there again when it is.
Outcome<TopSample> look(TopSampler& sampler, const Context& c) {
  Options options = c.options();
  if (options.timeout.empty()) options.timeout = usual_timeout;
  Context fresh(c.verb(), std::move(options));
  return sampler.take(fresh);
}

Outcome<void> snapshot(Context& c, TopSampler& sampler, TopSample first, int64_t interval_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(interval_ms));
  auto second = look(sampler, c);
  const TopSample& shown = second ? *second : first;
  if (c.options().json) {
    c.print(top_json(shown));
  } else {
    TopState state;
    state.interval_ms = interval_ms;
    for (const ScreenLine& line : top_screen(shown, state, plain_columns, 0)) c.print(line.text + "\n");
  }
  if (!second) return std::unexpected(second.error());
  return {};
}

// False: quit.
bool obey(char key, TopState& state, bool& look_now) {
  switch (key) {
    case 'q':
    case 'Q':
    case 3:  // Ctrl-C, where it is no signal
      return false;
    case ' ':
      look_now = true;
      break;
    case 'p':
      state.paused = !state.paused;
      look_now = !state.paused;
      break;
    case 'a':
    case 27:  // Escape
      state.view = TopView::all;
      break;
    case 'b':
      state.view = TopView::brokers;
      break;
    case 't':
      state.view = TopView::topics;
      break;
    case 'g':
      state.view = TopView::groups;
      break;
    case '?':
    case 'h':
      state.view = state.view == TopView::help ? TopView::all : TopView::help;
      break;
    default:
      break;
  }
  return true;
}

void run_screen(Context& c, TopSampler& sampler, TopSample shown, int64_t interval_ms) {
  watch_for_stop();
  Terminal terminal;
  TopState state;
  state.interval_ms = interval_ms;
  Deadline next = Deadline::after_ms(std::min<int64_t>(interval_ms, snapshot_interval_ms));
  while (!stop_asked()) {
    const Terminal::Size size = terminal.size();
    terminal.draw(top_screen(shown, state, size.columns, size.rows));
    bool look_now = false;
    auto key = terminal.key(state.paused ? 60'000 : next.left_ms());
    if (key && !obey(*key, state, look_now)) return;
    if (!look_now && (state.paused || next.left_ms() > 0)) continue;
    auto sample = look(sampler, c);
    state.trouble = sample ? std::string() : sample.error().text;
    if (sample) shown = std::move(*sample);
    next = Deadline::after_ms(interval_ms);
  }
}

Outcome<void> top(Context& c) {
  TRY_VAR(interval_ms, c.duration_ms(c.options().duration, "--interval", usual_interval_ms));
  TopSampler sampler;
  TRY_VAR(first, look(sampler, c));
  if (!Terminal::is_there() || c.options().json)
    return snapshot(c, sampler, std::move(first), std::min(interval_ms, usual_interval_ms));
  run_screen(c, sampler, std::move(first), interval_ms);
  return {};
}

constexpr OptionSpec top_options[] = {
    {"-i,--interval", "DURATION", &Options::duration, "how often it is renewed (default 2s)"},
    {"-c,--cluster", "NAME", &Options::cluster, "only the brokers of this cluster"},
};

constexpr Verb verbs[] = {
    {"top", "", 0, 0, top_options, top, "watch brokers, topics and groups on one screen",
     "Topics come with the highest rate first, groups with the largest lag. Keys: q quits, space looks at "
     "once, p "
     "pauses, b, t and g show brokers, topics or groups alone, a all of them, ? what the columns mean. When "
     "standard output is no terminal, or with --json, it prints once what it sees and ends. Of a broker with "
     "more than 1,000 topics or 300 groups those that were busiest are asked each time, and the others in "
     "turn."},
};

}  // namespace

std::span<const Verb> top_verbs() {
  return verbs;
}

}  // namespace rmq::ctl
