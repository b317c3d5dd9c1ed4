// The screen of rmqctl top as lines, from a sample: nothing here touches a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/top_sample.h"

namespace rmq::ctl {

enum class TopView : uint8_t { all, brokers, topics, groups, help };

struct TopState {
  TopView view = TopView::all;
  bool paused = false;
  int64_t interval_ms = 2'000;
  std::string trouble;  // why there is nothing newer; empty: there is
};

struct ScreenLine {
  enum class Style : uint8_t { plain, heading, bad, dim } style = Style::plain;
  std::string text;
};

// At most `rows` lines of at most `columns`. With `rows` 0: as many as there are, and no line of keys.
std::vector<ScreenLine> top_screen(const TopSample& s, const TopState& state, size_t columns, size_t rows);

// The same for programs.
std::string top_json(const TopSample& s);

}  // namespace rmq::ctl
