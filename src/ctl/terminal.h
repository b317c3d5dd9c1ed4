// A terminal that a program draws on and gets keys from, one at a time. Between the constructor and the
// destructor it is on its other screen, without echo; then all is as it was.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctl/top_screen.h"

namespace rmq::ctl {

class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  static bool is_there();  // standard input and output are one

  struct Size {
    size_t columns = 80, rows = 24;
  };
  Size size() const;
  void draw(const std::vector<ScreenLine>& lines);
  // A key, or nothing when none came in that time, the size has changed, or a stop was asked for. The end of
  // the input counts as 'q'.
  std::optional<char> key(int64_t wait_ms);

 private:
  termios before_{};
};

}  // namespace rmq::ctl
