// A remoting connection: bytes to frames, one task a request, answers gathered into few sends.
//
// Used at both ends: a Server makes one for each accepted stream, a RemotingClient for the stream that it
// opened. Requests overlap (`opaque` pairs them); order is made by each handler running up to its first
// suspension in the order in which the frames came. Whatever a handler waits for, it must be woken when the
// connection closes: closing() tells. A Connection lives until its serve() ends; who wants to keep one longer
// (a consumer's channel) holds a shared_ptr and finds is_open() false.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "daemon/net_memory.h"
#include "proto/command.h"
#include "proto/describe.h"
#include "proto/frame.h"
#include "store/message_store.h"
#include "uring/io.h"
#include "uring/sync.h"

namespace rmq {

class Connection;

// A request at work. It owns its frame, and so everything that `command` views. Answer it at most once; an
// answer to a one-way request is dropped here, so handlers need not look.
class Request {
 public:
  Request(Connection& c, proto::Frame f);
  Request(const Request&) = delete;
  ~Request();

  Connection& connection() { return connection_; }
  const Connection& connection() const { return connection_; }
  proto::Frame& frame() { return frame_; }
  Bytes body() const { return frame_.body(); }
  bool is_oneway() const { return command.is_oneway(); }
  bool is_answered() const { return answered_; }
  // It gave its slot of the connection back to wait for long: a held pull.
  bool was_held() const { return !has_slot_; }
  // What it asked for is done, though the code of its answer is not SUCCESS, so that tools show the remark:
  // it counts as no refusal in the journal. Say so before the answer.
  void set_done() { is_done_ = true; }
  bool is_done() const { return is_done_; }

  // The answer of a row, with its response header.
  template <class Cmd>
  void answer(const typename Cmd::Response& header, std::string_view body = {}) {
    answer<Cmd>(proto::ResponseCode::SUCCESS, header, {}, body);
  }
  template <class Cmd>
  void answer(proto::ResponseCode code, const typename Cmd::Response& header, std::string_view remark,
              std::string_view body = {}) {
    if (std::string* out = begin_answer(code)) {
      Cmd::append_answer(*out, command, code, header, remark, body);
      end_answer();
    }
  }
  // The same with a body that stays where it lies.
  template <class Cmd>
  void answer(proto::ResponseCode code, const typename Cmd::Response& header, std::string_view remark,
              std::vector<store::LogExtent> body, size_t body_bytes) {
    if (std::string* out = begin_answer(code)) {
      Cmd::append_answer_head(*out, command, code, header, remark, body_bytes);
      append_extents(std::move(body));
      end_answer();
    }
  }
  // An answer without ext fields whose body others get as well.
  void reply(proto::ResponseCode code, std::shared_ptr<const std::string> body);
  // An answer with a header that is not the row's.
  template <proto::Header H>
  void answer_with(proto::ResponseCode code, const H& header, std::string_view remark) {
    if (std::string* out = begin_answer(code)) {
      proto::append_frame(*out, proto::response_to(command, code, remark), header, proto::Names::full,
                          std::string_view{});
      end_answer();
    }
  }
  // An answer without ext fields.
  void reply(proto::ResponseCode code, std::string_view remark = {}, std::string_view body = {});

  // Gives the frame's memory back before the answer: the body and all texts of `command` are gone then.
  void drop_frame();
  // A request that waits for long (a held pull) gives its slot of the connection back.
  void give_slot_back();
  // For answers that may be large: room for `bytes` in the connection's share of memory, until the answer or
  // give_room_back(). Try first; take_room() waits. It resolves without room when the connection closes.
  bool try_take_room(size_t bytes);
  Task<void> take_room(size_t bytes);
  void give_room_back();

  proto::RemotingCommand command;
  const int64_t begun_ns;  // when its frame was there

 private:
  friend class Connection;
  std::string* begin_answer(proto::ResponseCode code);
  void end_answer();
  void append_extents(std::vector<store::LogExtent> body);
  void append_shared(std::shared_ptr<const std::string> body);

  Connection& connection_;
  proto::Frame frame_;
  size_t room_ = 0;
  bool answered_ = false;
  bool is_done_ = false;
  bool has_slot_ = true;
};

// Why connections of a service were closed, or not taken.
struct PeerFaults {
  uint64_t malformed_frame = 0;
  uint64_t idle = 0;
  uint64_t no_memory = 0;  // for an unfinished frame
  uint64_t too_many = 0;   // limits::connections_max
  uint64_t accept_failed = 0;
  PeerFaults& operator+=(const PeerFaults& o) {
    malformed_frame += o.malformed_frame;
    idle += o.idle;
    no_memory += o.no_memory;
    too_many += o.too_many;
    accept_failed += o.accept_failed;
    return *this;
  }
};

// What is served: the broker or the name server. serve() must answer (unless one-way) before it resolves.
class Service {
 public:
  virtual ~Service() = default;
  virtual Task<void> serve(Request& request) = 0;
  virtual void opened(const std::shared_ptr<Connection>&) {}
  // After it: no task of the connection runs any more.
  virtual void closed(const std::shared_ptr<Connection>&) {}
  // For counters: an answer with this code goes out.
  virtual void answered(const Request&, proto::ResponseCode) {}
  // The same: a request is begun (1), or has ended or begins to wait for long (-1).
  virtual void at_work(const Request&, int change) {}

  NetMemory net_memory;  // of all connections to this service
  PeerFaults faults;
};

// The answer to a request of ours. `command` views `frame`.
struct RemoteAnswer {
  proto::Frame frame;
  proto::RemotingCommand command;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `service` may be null: then requests of the peer are answered REQUEST_CODE_NOT_SUPPORTED.
  Connection(std::unique_ptr<Stream> stream, Service* service, uint16_t listen_port);
  ~Connection();

  // Reads and serves until the stream ends; resolves when nothing of this connection runs any more.
  Task<void> serve();
  void close();
  bool is_open() const { return !closing_.is_set(); }
  Event& closing() { return closing_; }

  const Address& peer() const { return stream_->peer(); }
  const Address& local() const { return stream_->local(); }
  const std::string& peer_text() const { return peer_text_; }
  uint16_t listen_port() const {
    return listen_port_;
  }  // which of our ports the client came to; 0: we called

  // `wake` is set when the connection closes: for handlers that wait long.
  void hold(Event& wake) { held_.insert(&wake); }
  void unhold(Event& wake) { held_.erase(&wake); }

  int32_t next_opaque() { return opaque_++; }
  // Sends a frame that wants no answer (a push, a one-way request).
  void push(std::string_view frame);
  // Sends a request and waits for the answer with its opaque. Errc::timeout, Errc::closed.
  Task<Result<std::unique_ptr<RemoteAnswer>>> call(std::string frame, int32_t opaque, int64_t deadline_ns);

  size_t unsent_bytes() const { return unsent_bytes_; }

 private:
  friend class Request;
  struct Segment {
    std::string text;
    store::LogExtent extent;                    // when text is empty
    std::shared_ptr<const std::string> shared;  // when both are
    Bytes bytes() const {
      if (!text.empty()) return as_bytes(text);
      return shared != nullptr ? as_bytes(*shared) : extent.bytes();
    }
  };
  struct Call {
    Event arrived;
    std::unique_ptr<RemoteAnswer> answer;
  };

  Task<void> read_loop();
  Task<void> write_loop();
  bool take_frames(Bytes received);
  void take_answer(proto::Frame frame, proto::RemotingCommand& command);
  Task<void> work(proto::Frame frame);
  bool is_full() const;
  Task<void> slots_free();
  void log_idle();
  void log_malformed(const char* reason);
  void set_unsent(size_t bytes);
  void count_held();
  bool holds_too_much() const;

  std::string& begin_write();  // where the next bytes of text go; end_write() when they are there
  void end_write();

  std::unique_ptr<Stream> stream_;
  Service* service_;
  const uint16_t listen_port_;
  const std::string peer_text_;
  proto::FrameParser parser_;
  Scope scope_;
  Event closing_;
  Event slot_freed_;
  uint32_t requests_ = 0;  // in flight, without waiting ones
  int32_t opaque_ = 1;
  std::unordered_map<int32_t, Call*> calls_;
  std::unordered_set<Event*> held_;

  std::deque<Segment> out_;
  std::string spare_;  // a sent segment's memory, for the next
  size_t unsent_bytes_ = 0;
  size_t promised_bytes_ = 0;  // room that requests have taken for their answers
  std::string left_;           // received, not looked at yet
  size_t held_bytes_ = 0;      // of that and of an unfinished frame, as counted in memory_
  NetMemory own_memory_;       // without a service
  NetMemory& memory_;
  size_t write_mark_ = 0;
  Event out_ready_;
  int64_t last_activity_ns_ = 0;
};

}  // namespace rmq
