// One blocking connection that speaks remoting. Requests may be in flight several at a time (a consumer waits
// on many queues at once); answers are paired by opaque, those of others are kept. Every wait has a deadline.
// Failures name the address and what to check, with Exit::unreachable; a malformed answer is Exit::bad_input.
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "ctl/outcome.h"
#include "ctl/text.h"
#include "proto/command.h"
#include "proto/describe.h"
#include "proto/frame.h"

namespace rmq::ctl {

// An answer: the command views the frame.
struct Reply {
  proto::Frame frame;
  proto::RemotingCommand command;

  proto::ResponseCode code() const { return command.response_code(); }
  bool ok() const { return command.code == 0; }
  std::string_view body() const { return frame.body_text(); }
};

// A remark, which may be a stack trace, as part of a message of one line.
std::string one_line_remark(std::string_view remark);

// Who is at the other end, for messages: "broker broker-a at 127.0.0.1:10911".
struct Peer {
  Address address;
  std::string what;  // "name server", "broker broker-a"
  std::string to_string() const { return what + " at " + ctl::to_string(address); }
};

// A point of CLOCK_MONOTONIC.
struct Deadline {
  int64_t at_ns = 0;
  static Deadline after_ms(int64_t ms);
  int64_t left_ms() const;  // rounded up, 0 when it has passed
};

class Channel {
 public:
  // Resolves names, tries every address that came of it. `timeout_ms` is for all of them together.
  static Outcome<Channel> connect(Peer peer, int64_t timeout_ms);
  Channel(Channel&&) = default;
  Channel& operator=(Channel&&) = default;

  const Peer& peer() const { return peer_; }
  int fd() const { return fd_.value; }

  // Starts a request and gives its opaque.
  template <class C>
  Outcome<int32_t> start(const typename C::Request& header, std::string_view body = {}) {
    out_.clear();
    int32_t opaque = ++last_opaque_;
    C::append_request(out_, opaque, header, body);
    TRY(write(out_));
    return opaque;
  }
  // Waits for the answer to `opaque`, whatever its code.
  Outcome<Reply> wait(int32_t opaque);
  template <class C>
  Outcome<Reply> call(const typename C::Request& header, std::string_view body = {}) {
    TRY_VAR(opaque, start<C>(header, body));
    return wait(opaque);
  }
  // As call(), but any code other than SUCCESS is a Failure that says so.
  template <class C>
  Outcome<Reply> ask(const typename C::Request& header, std::string_view body = {}) {
    TRY_VAR(reply, call<C>(header, body));
    if (!reply.ok()) return refusal(reply);
    return std::move(reply);
  }

  // What has arrived already or arrives at once: an answer, or one with an empty frame when there is none.
  // Reads the socket at most once. For loops over poll(2).
  Outcome<Reply> take();
  std::unexpected<Failure> refusal(const Reply& reply) const;
  std::unexpected<Failure> malformed(std::string_view what, const Error& e) const;
  int64_t timeout_ms() const { return timeout_ms_; }

 private:
  struct Fd {
    int value = -1;
    Fd() = default;
    explicit Fd(int fd) : value(fd) {}
    Fd(Fd&& o) noexcept : value(std::exchange(o.value, -1)) {}
    Fd& operator=(Fd&& o) noexcept {
      std::swap(value, o.value);
      return *this;
    }
    ~Fd();
  };
  Channel(Fd fd, Peer peer, int64_t timeout_ms)
      : fd_(std::move(fd)), peer_(std::move(peer)), timeout_ms_(timeout_ms) {}

  static Outcome<Fd> connect_one(const void* addrinfo, const Peer& peer, Deadline deadline);
  Outcome<void> write(std::string_view bytes);
  Outcome<bool> receive(Deadline deadline);  // false: nothing came
  std::unexpected<Failure> broken(std::string_view reason) const;

  Fd fd_;
  Peer peer_;
  int64_t timeout_ms_;
  int32_t last_opaque_ = 0;
  std::string out_;
  std::unique_ptr<proto::FrameParser> parser_ = std::make_unique<proto::FrameParser>();
  std::deque<Reply> arrived_;
};

// True once Ctrl-C or SIGTERM came (after watch_for_stop()): loops end and clean up. Waits are interrupted.
void watch_for_stop();
bool stop_asked();

}  // namespace rmq::ctl
