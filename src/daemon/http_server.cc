#include "daemon/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/limits.h"

namespace rmq {

namespace {

constexpr int64_t idle_ns = 60 * ns_per_s;     // between two requests of a connection
constexpr int64_t head_ns = 10 * ns_per_s;     // from a head's first byte to its last
constexpr int64_t answer_ns = 60 * ns_per_s;   // to make an answer and to have it taken
constexpr int64_t farewell_ns = 1 * ns_per_s;  // for a refused peer to read why
constexpr int64_t accept_retry_ns = 100 * ns_per_ms;
constexpr std::string_view head_end = "\r\n\r\n";
constexpr std::string_view plain_text = "text/plain; charset=utf-8";

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

bool is_token(std::string_view s) {
  auto good = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !s.empty() && std::all_of(s.begin(), s.end(), good);
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

bool lists_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    if (same_word(trimmed(one), word)) return true;
  }
  return false;
}

// Takes the next line off `rest`, without its CRLF.
std::string_view take_line(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find("\r\n"));
  rest.remove_prefix(std::min(rest.size(), line.size() + 2));
  return line;
}

// What stands between the lines of a head and their ends: no line feeds of their own, no control characters.
bool has_only_text(std::string_view head) {
  for (size_t i = 0; i < head.size(); i++) {
    const auto c = static_cast<unsigned char>(head[i]);
    if (c == '\r' && i + 1 < head.size() && head[i + 1] == '\n') {
      i++;
      continue;
    }
    if ((c < 0x20 && c != '\t') || c == 0x7f) return false;
  }
  return true;
}

// The path of "/path?query" or "http://host/path?query"; nothing: it is neither.
std::optional<std::string_view> path_of(std::string_view target) {
  constexpr std::string_view scheme = "http://";
  if (target.size() > scheme.size() && same_word(target.substr(0, scheme.size()), scheme)) {
    const size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (!target.starts_with('/')) return std::nullopt;
  return target.substr(0, target.find('?'));
}

struct Fields {
  int hosts = 0;
  bool has_body = false;
  bool close = false, keep_alive = false;
};

// 0: they are good.
int read_fields(std::string_view rest, Fields& f) {
  for (;;) {
    const std::string_view line = take_line(rest);
    if (line.empty()) return 0;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return 400;
    const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (same_word(name, "host")) f.hosts++;
    if (same_word(name, "transfer-encoding")) f.has_body = true;
    if (same_word(name, "content-length")) {
      uint64_t bytes = 0;
      auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (wrong != std::errc{} || end != value.data() + value.size()) return 400;
      f.has_body = f.has_body || bytes != 0;
    }
    if (!same_word(name, "connection")) continue;
    f.close = f.close || lists_word(value, "close");
    f.keep_alive = f.keep_alive || lists_word(value, "keep-alive");
  }
}

}  // namespace

std::expected<HttpRequest, int> parse_http_head(std::string_view head) {
  if (!head.ends_with(head_end) || !has_only_text(head)) return std::unexpected(400);
  std::string_view rest = head;
  while (rest.starts_with("\r\n")) rest.remove_prefix(2);
  const std::string_view line = take_line(rest);
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::unexpected(400);
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, last - first - 1),
                         version = line.substr(last + 1);
  const bool is_version = version.size() == 8 && version.starts_with("HTTP/") && version[6] == '.' &&
                          std::isdigit(static_cast<unsigned char>(version[5])) != 0 &&
                          std::isdigit(static_cast<unsigned char>(version[7])) != 0;
  if (!is_token(method) || !is_version || target.find(' ') != std::string_view::npos)
    return std::unexpected(400);
  if (version[5] != '1') return std::unexpected(505);
  const auto path = path_of(target);
  if (!path) return std::unexpected(400);
  Fields f;
  if (int wrong = read_fields(rest, f); wrong != 0) return std::unexpected(wrong);
  const bool is_1_0 = version[7] == '0';
  if (f.hosts > 1 || (f.hosts == 0 && !is_1_0)) return std::unexpected(400);
  if (method != "GET" && method != "HEAD") return std::unexpected(405);
  if (f.has_body) return std::unexpected(413);
  return HttpRequest{*path, method == "HEAD", !f.close && (!is_1_0 || f.keep_alive), !is_1_0};
}

// ---- the answer --------------------------------------------------------------------------------------

Task<void> HttpReply::put(std::string_view first, std::string_view second, std::string_view third) {
  std::array<iovec, 3> all;
  size_t n = 0;
  for (std::string_view s : {first, second, third})
    if (!s.empty()) all[n++] = {const_cast<char*>(s.data()), s.size()};
  if (broken_ || n == 0) co_return;
  auto sent = co_await stream_.send({all.data(), n});
  if (!sent) broken_ = true;
}

Task<void> HttpReply::send(int status, std::string_view content_type, std::string_view body) {
  check(status_ == 0);
  status_ = status;
  const std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{}{}\r\n",
      status, reason(status), content_type, body.size(), status == 405 ? "Allow: GET, HEAD\r\n" : "",
      request_.keep_alive ? "" : "Connection: close\r\n");
  co_await put(head, request_.is_head ? std::string_view{} : body);
}

Task<void> HttpReply::begin(std::string_view content_type) {
  check(status_ == 0);
  status_ = 200;
  in_pieces_ = !request_.is_head && request_.takes_chunks;
  ends_by_close_ = !request_.is_head && !request_.takes_chunks;
  const std::string head = fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-store\r\n{}{}\r\n", content_type,
      in_pieces_ ? "Transfer-Encoding: chunked\r\n" : "", keeps_alive() ? "" : "Connection: close\r\n");
  co_await put(head);
}

Task<void> HttpReply::write(std::string_view piece) {
  if (request_.is_head || piece.empty()) co_return;
  if (!in_pieces_) {
    co_await put(piece);
    co_return;
  }
  const std::string size = fmt::format("{:x}\r\n", piece.size());
  co_await put(size, piece, "\r\n");
}

Task<void> HttpReply::end() {
  if (!in_pieces_) co_return;
  in_pieces_ = false;
  co_await put("0\r\n\r\n");
}

// ---- the server --------------------------------------------------------------------------------------

struct HttpServer::Conversation {
  explicit Conversation(std::unique_ptr<Stream> s) : stream(std::move(s)) {}
  std::unique_ptr<Stream> stream;
  std::string received;   // from the current request's first byte on
  size_t head_bytes = 0;  // of it, up to and with the empty line
};

Task<Result<void>> HttpServer::listen(std::string host, uint16_t port) {
  CO_TRY_VAR(listener, co_await net_.listen(std::move(host), port));
  listener_ = std::move(listener);
  port_ = listener_->local().port;
  scope_.spawn(accept_loop());
  co_return Result<void>{};
}

// Who is connected and asks nothing must not keep a probe of health away, which has somebody restart the
// daemon.
bool HttpServer::close_an_idle_one() {
  auto oldest = open_.end();
  for (auto it = open_.begin(); it != open_.end(); ++it)
    if (it->second != at_work && (oldest == open_.end() || it->second < oldest->second)) oldest = it;
  if (oldest == open_.end()) return false;
  oldest->second = at_work;  // its end
  oldest->first->close();
  return true;
}

Task<void> HttpServer::accept_loop() {
  for (;;) {
    auto stream = co_await listener_->accept();
    if (!stream) {
      if (stream.error().code == Errc::closed) break;
      co_await sleep_for(accept_retry_ns);
      continue;
    }
    const bool is_full = open_.size() >= limits::http_connections_max;
    if (is_full) turned_away_++;
    if (is_full && (open_.size() >= 2 * limits::http_connections_max || !close_an_idle_one())) {
      (*stream)->close();
      co_await (*stream)->closed();
      continue;
    }
    scope_.spawn(serve(std::move(*stream)));
  }
}

void HttpServer::close_connections() {
  for (auto& [stream, since] : open_) stream->close();
}

Task<void> HttpServer::stop() {
  if (listener_) listener_->close();
  close_connections();
  co_await scope_.join();
  if (listener_) co_await listener_->closed();
}

// False: there will be none. A head that is too long leaves head_bytes at 0.
Task<bool> HttpServer::receive_head(Conversation& c) {
  int64_t deadline_ns = Loop::current().now_ns() + (c.received.empty() ? idle_ns : head_ns);
  size_t looked_at = 0;
  open_[c.stream.get()] = c.received.empty() ? Loop::current().now_ns() : at_work;
  for (;;) {
    const size_t end = c.received.find(head_end, looked_at);
    c.head_bytes = end == std::string::npos ? 0 : end + head_end.size();
    if (c.head_bytes > limits::http_head_bytes_max) c.head_bytes = 0;
    if (end != std::string::npos || c.received.size() > limits::http_head_bytes_max) co_return true;
    looked_at = c.received.size() < head_end.size() ? 0 : c.received.size() - head_end.size() + 1;
    const bool was_idle = c.received.empty();
    auto got = co_await c.stream->recv(deadline_ns);
    if (!got) co_return false;
    c.received += as_text(got->bytes());
    if (!was_idle) continue;
    deadline_ns = Loop::current().now_ns() + head_ns;
    open_[c.stream.get()] = at_work;
  }
}

static Task<void> close_at(Stream& stream, Event& done, int64_t deadline_ns) {
  const bool in_time = co_await done.wait_until(deadline_ns);
  if (!in_time) stream.close();
}

// What the peer still sends is read for a moment: closing at once would reset the connection, and the answer
// with it.
static Task<void> see_off(Stream& stream) {
  const int64_t until_ns = Loop::current().now_ns() + farewell_ns;
  size_t bytes = 0;
  while (bytes < limits::http_head_bytes_max * 8) {
    auto got = co_await stream.recv(until_ns);
    if (!got) co_return;
    bytes += got->bytes().size();
  }
}

// True: the next request may come.
Task<bool> HttpServer::answer_request(Conversation& c, const HttpRequest& request, int refused) {
  HttpReply reply(*c.stream, request);
  if (refused == 0) co_await service_.get(request.path, reply);
  if (!reply.is_begun()) {
    const int status = refused != 0 ? refused : 404;
    const std::string text = std::string(reason(status)) + "\n";
    co_await reply.send(status, plain_text, text);
  }
  co_await reply.end();
  counts_[static_cast<size_t>(reply.status()) - 100]++;
  if (refused != 0 && !reply.is_broken()) co_await see_off(*c.stream);
  co_return refused == 0 && reply.keeps_alive();
}

Task<bool> HttpServer::answer(Conversation& c) {
  HttpRequest request;
  int refused = 431;
  if (c.head_bytes != 0) {
    auto parsed = parse_http_head(std::string_view(c.received).substr(0, c.head_bytes));
    refused = parsed ? 0 : parsed.error();
    if (parsed) request = *parsed;
  }
  Scope scope;
  Event done;
  scope.spawn(close_at(*c.stream, done, Loop::current().now_ns() + answer_ns));
  const bool goes_on = co_await answer_request(c, request, refused);
  done.set();
  co_await scope.join();
  c.received.erase(0, c.head_bytes);
  co_return goes_on;
}

Task<void> HttpServer::serve(std::unique_ptr<Stream> stream) {
  Conversation c(std::move(stream));
  open_.emplace(c.stream.get(), at_work);
  for (;;) {
    bool good = co_await receive_head(c);
    if (good) good = co_await answer(c);
    if (!good) break;
  }
  open_.erase(c.stream.get());
  c.stream->close();
  co_await c.stream->closed();
}

}  // namespace rmq
