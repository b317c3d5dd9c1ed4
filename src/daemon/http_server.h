// A small HTTP/1.1 server for machines that ask how we are: GET and HEAD without bodies. It serves on the
// loop of the daemon, so everything that a peer can make it hold is bounded: connections, bytes of a
// request's head, the time for the head as a whole and for an answer as a whole. What is malformed is
// answered with the reason where HTTP has one, and the connection is closed (RFC 9112).
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "uring/io.h"
#include "uring/sync.h"

namespace rmq {

// A request, as far as it matters. Views into the head.
struct HttpRequest {
  std::string_view path;  // of the target, without its query: "/metrics"
  bool is_head = false;   // HEAD: the answer has no body
  bool keep_alive = false;
  bool takes_chunks = false;  // HTTP/1.1: an answer of unknown length can be sent
};
// `head` is everything up to the empty line, that line included. Else the status to answer with.
std::expected<HttpRequest, int> parse_http_head(std::string_view head);

// The answer to one request: either send(), or begin(), write() and what goes with it.
class HttpReply {
 public:
  HttpReply(Stream& stream, const HttpRequest& request) : stream_(stream), request_(request) {}
  HttpReply(const HttpReply&) = delete;

  // All of it. `status` is one that reason() knows.
  Task<void> send(int status, std::string_view content_type, std::string_view body);
  // 200, and a body that comes in pieces.
  Task<void> begin(std::string_view content_type);
  Task<void> write(std::string_view piece);
  // Behind the last piece. The server calls it when the service has not.
  Task<void> end();

  bool is_begun() const { return status_ != 0; }
  int status() const { return status_; }
  // The peer is gone, or took nothing for too long: there is no use in going on.
  bool is_broken() const { return broken_; }
  // The next request may come on this connection.
  bool keeps_alive() const { return request_.keep_alive && !ends_by_close_ && !broken_; }

 private:
  Task<void> put(std::string_view first, std::string_view second = {}, std::string_view third = {});

  Stream& stream_;
  const HttpRequest& request_;
  int status_ = 0;
  bool in_pieces_ = false;
  bool ends_by_close_ = false;  // without chunks the end of the connection is the end of the body
  bool broken_ = false;
};

class HttpService {
 public:
  virtual ~HttpService() = default;
  // Answers a request for that path; 404 when it does not. `path` lives until the Task has ended.
  virtual Task<void> get(std::string_view path, HttpReply& reply) = 0;
};

class HttpServer {
 public:
  HttpServer(Net& net, HttpService& service) : net_(net), service_(service) {}
  // Begins to accept at host:port. Call once, on the loop's thread.
  Task<Result<void>> listen(std::string host, uint16_t port);
  // Stops accepting, closes all connections, and resolves when none is left.
  Task<void> stop();
  // Ends the answers that are on their way, and all connections. New ones may come.
  void close_connections();
  uint16_t port() const { return port_; }
  size_t connections() const { return open_.size(); }
  // Answers by status since the start: calls f(status, count).
  template <class F>
  void each_count(F f) const {
    for (size_t i = 0; i < counts_.size(); i++)
      if (counts_[i] != 0) f(static_cast<int>(i) + 100, counts_[i]);
  }
  uint64_t turned_away() const { return turned_away_; }  // connections beyond the limit

 private:
  struct Conversation;
  static constexpr int64_t at_work = INT64_MAX;
  Task<void> accept_loop();
  bool close_an_idle_one();
  Task<void> serve(std::unique_ptr<Stream> stream);
  Task<bool> receive_head(Conversation& c);
  Task<bool> answer(Conversation& c);
  Task<bool> answer_request(Conversation& c, const HttpRequest& request, int refused);

  Net& net_;
  HttpService& service_;
  std::unique_ptr<Listener> listener_;
  uint16_t port_ = 0;
  Scope scope_;
  std::unordered_map<Stream*, int64_t> open_;  // since when it waits for its next request, or at_work
  std::array<uint64_t, 500> counts_{};         // of status 100 + i
  uint64_t turned_away_ = 0;
};

}  // namespace rmq
