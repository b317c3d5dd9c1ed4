#include "ctl/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

namespace rmq::ctl {

namespace {

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string_view begin_of(ScreenLine::Style s) {
  switch (s) {
    case ScreenLine::Style::plain:
      return "";
    case ScreenLine::Style::heading:
      return "\x1b[7m";
    case ScreenLine::Style::bad:
      return "\x1b[31m";
    case ScreenLine::Style::dim:
      return "\x1b[2m";
  }
  return "";
}

}  // namespace

bool Terminal::is_there() {
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
}

Terminal::Terminal() {
  tcgetattr(STDIN_FILENO, &before_);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // it would leave the shell on this screen
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  struct sigaction resized{};
  resized.sa_handler = [](int) {};
  sigaction(SIGWINCH, &resized, nullptr);
  put("\x1b[?1049h\x1b[?25l");
}

Terminal::~Terminal() {
  put("\x1b[0m\x1b[?25h\x1b[?1049l");
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Terminal::Size Terminal::size() const {
  winsize w{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col < 20 || w.ws_row < 6) return {};
  return {w.ws_col, w.ws_row};
}

void Terminal::draw(const std::vector<ScreenLine>& lines) {
  std::string out = "\x1b[H";
  for (size_t i = 0; i < lines.size(); i++) {
    const std::string_view style = begin_of(lines[i].style);
    (out += style) += lines[i].text;
    if (!style.empty()) out += "\x1b[0m";
    out += i + 1 < lines.size() ? "\x1b[K\r\n" : "\x1b[K";
  }
  put(out + "\x1b[J");
}

std::optional<char> Terminal::key(int64_t wait_ms) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, static_cast<int>(wait_ms)) <= 0) return std::nullopt;
  char c = 0;
  const ssize_t n = read(STDIN_FILENO, &c, 1);
  if (n == 1) return c;
  return n == 0 || errno != EINTR ? std::optional('q') : std::nullopt;
}

}  // namespace rmq::ctl
