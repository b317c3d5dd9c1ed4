// For tests of what listens: a simulated network with a server host and a client host, and a client that
// speaks frames by hand.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "daemon/connection.h"
#include "daemon/server.h"
#include "sim/sim_net.h"

namespace rmq::sim {

// Names and values of ext fields, written as {{"topic", "T"}, {"queueId", "0"}}. Twelve parameters and no
// initializer_list: GCC 12 cannot keep the array of one in a statement with co_await.
class Ext {
 public:
  struct Field {
    std::string_view name, value;
  };
  Ext(Field a = {}, Field b = {}, Field c = {}, Field d = {}, Field e = {}, Field f = {}, Field g = {},
      Field h = {}, Field i = {}, Field j = {}, Field k = {}, Field l = {})
      : fields_{a, b, c, d, e, f, g, h, i, j, k, l} {
    while (size_ < fields_.size() && !fields_[size_].name.empty()) size_++;
  }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.begin() + size_; }

 private:
  std::array<Field, 12> fields_;
  size_t size_ = 0;
};

// A request frame.
inline std::string request_frame(int32_t code, int32_t opaque, const Ext& ext = {},
                                 std::string_view body = {}, int32_t flag = 0,
                                 int32_t version = proto::mq_version::ours) {
  std::string out;
  proto::CommandMeta meta{.code = code, .opaque = opaque, .flag = flag, .version = version};
  {
    proto::FrameWriter w(out, meta);
    for (const auto& [name, value] : ext) w.add(name, value);
    w.finish(body.size());
  }
  out += body;
  return out;
}

class Peer {
 public:
  static Task<std::unique_ptr<Peer>> connect(Net& net, std::string host, uint16_t port) {
    auto s = co_await net.connect(std::move(host), port, no_deadline);
    check(s.has_value());
    auto p = std::make_unique<Peer>();
    p->stream_ = std::move(*s);
    co_return p;
  }
  // False: the connection is gone.
  Task<bool> send(std::string bytes) {
    iovec v{bytes.data(), bytes.size()};
    auto sent = co_await stream_->send({&v, 1});
    co_return sent.has_value();
  }
  // The next frame; null when the connection ended, or nothing came for `seconds`.
  Task<std::unique_ptr<RemoteAnswer>> next(int64_t seconds = 5) {
    for (;;) {
      Bytes rest = as_bytes(std::string_view(received_).substr(taken_));
      auto frame = parser_.next(rest);
      taken_ = received_.size() - rest.size();
      check(frame.has_value());
      if (*frame) {
        auto a = std::make_unique<RemoteAnswer>();
        a->frame = std::move(*frame);
        check(proto::decode_command(a->frame, &a->command).has_value());
        co_return a;
      }
      received_.clear();
      taken_ = 0;
      auto more = co_await stream_->recv(Loop::current().now_ns() + seconds * ns_per_s);
      if (!more) {
        is_closed_ = more.error().code != Errc::timeout;
        co_return nullptr;
      }
      received_ = as_text(more->bytes());
    }
  }
  Task<std::unique_ptr<RemoteAnswer>> call(std::string frame) {
    bool sent = co_await send(std::move(frame));
    if (!sent) co_return nullptr;
    auto answer = co_await next();
    co_return answer;
  }
  bool is_closed() const { return is_closed_; }
  Task<void> close() {
    stream_->close();
    co_await stream_->closed();
  }

 private:
  std::unique_ptr<Stream> stream_;
  proto::FrameParser parser_;
  std::string received_;
  size_t taken_ = 0;
  bool is_closed_ = false;
};

}  // namespace rmq::sim
