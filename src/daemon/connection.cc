#include "daemon/connection.h"

#include <utility>

#include "base/log.h"

namespace rmq {

using proto::ResponseCode;

namespace {
constexpr size_t segment_text_bytes = 64 << 10;  // a text segment takes more answers until it is this long
constexpr size_t iovecs_per_send = 64;
constexpr size_t answers_in_a_turn_bytes = 1 << 20;  // to one connection; then the others have theirs
constexpr int64_t idle_ns = limits::idle_connection_seconds * ns_per_s;
}  // namespace

// ---- Request -----------------------------------------------------------------------------------------

Request::Request(Connection& c, proto::Frame f)
    : begun_ns(Loop::current().now_ns()), connection_(c), frame_(std::move(f)) {
  connection_.memory_.requests_changed(0, frame_.bytes());
}

Request::~Request() {
  give_room_back();
  connection_.memory_.requests_changed(frame_.bytes(), 0);
}

void Request::drop_frame() {
  command.ext.clear();
  command.remark = {};
  connection_.memory_.requests_changed(frame_.bytes(), 0);
  frame_ = {};
}

bool Request::try_take_room(size_t bytes) {
  Connection& c = connection_;
  check(room_ == 0);
  bool free = c.unsent_bytes_ + c.promised_bytes_ == 0;  // one answer always goes
  if (!free && c.unsent_bytes_ + c.promised_bytes_ + bytes > c.memory_.unsent_share()) return false;
  room_ = bytes;
  c.promised_bytes_ += bytes;
  return true;
}

Task<void> Request::take_room(size_t bytes) {
  while (connection_.is_open() && !try_take_room(bytes)) co_await connection_.slot_freed_.wait();
}

void Request::give_room_back() {
  if (room_ == 0) return;
  connection_.promised_bytes_ -= std::exchange(room_, 0);
  connection_.slot_freed_.notify();
}

std::string* Request::begin_answer(ResponseCode code) {
  check(!answered_);
  answered_ = true;
  if (connection_.service_ != nullptr) connection_.service_->answered(*this, code);
  if (is_oneway() || !connection_.is_open()) return nullptr;
  return &connection_.begin_write();
}

void Request::end_answer() {
  connection_.end_write();
}

void Request::append_extents(std::vector<store::LogExtent> body) {
  Connection& c = connection_;
  c.end_write();
  size_t bytes = 0;
  for (auto& e : body) {
    bytes += e.bytes().size();
    c.out_.push_back({{}, std::move(e), {}});
  }
  c.set_unsent(c.unsent_bytes_ + bytes);
  c.begin_write();
}

void Request::append_shared(std::shared_ptr<const std::string> body) {
  Connection& c = connection_;
  c.end_write();
  const size_t bytes = body->size();
  c.out_.push_back({{}, {}, std::move(body)});
  c.set_unsent(c.unsent_bytes_ + bytes);
  c.begin_write();
}

void Request::reply(ResponseCode code, std::shared_ptr<const std::string> body) {
  if (std::string* out = begin_answer(code)) {
    {
      proto::FrameWriter w(*out, proto::response_to(command, code, {}));
      w.finish(body->size());
    }
    append_shared(std::move(body));
    end_answer();
  }
}

void Request::reply(ResponseCode code, std::string_view remark, std::string_view body) {
  if (std::string* out = begin_answer(code)) {
    proto::append_response(*out, command, code, remark, body);
    end_answer();
  }
}

void Request::give_slot_back() {
  if (!std::exchange(has_slot_, false)) return;
  connection_.requests_--;
  if (connection_.service_ != nullptr) connection_.service_->at_work(*this, -1);
  connection_.slot_freed_.notify();
}

// ---- Connection --------------------------------------------------------------------------------------

Connection::Connection(std::unique_ptr<Stream> stream, Service* service, uint16_t listen_port)
    : stream_(std::move(stream)),
      service_(service),
      listen_port_(listen_port),
      peer_text_(stream_->peer().text()),
      memory_(service != nullptr ? service->net_memory : own_memory_),
      last_activity_ns_(Loop::current().now_ns()) {}

Connection::~Connection() {
  set_unsent(0);
  memory_.requests_changed(held_bytes_, 0);
}

void Connection::set_unsent(size_t bytes) {
  memory_.unsent_changed(unsent_bytes_, bytes);
  unsent_bytes_ = bytes;
}

void Connection::count_held() {
  const size_t now = parser_.held_bytes() + left_.size();
  memory_.requests_changed(held_bytes_, now);
  held_bytes_ = now;
}

// An unfinished frame that takes memory which the others have used up. Waiting would not help: who sends
// slowly holds what he has.
bool Connection::holds_too_much() const {
  return memory_.requests_exhausted() && held_bytes_ > limits::held_frame_bytes_free;
}

void Connection::close() {
  if (closing_.is_set()) return;
  closing_.set();
  stream_->close();
  out_ready_.notify();
  slot_freed_.notify();
  for (auto& [opaque, call] : calls_) call->arrived.set();
  for (Event* wake : held_) wake->set();
}

Task<void> Connection::serve() {
  std::shared_ptr<Connection> self = shared_from_this();
  if (service_ != nullptr) service_->opened(self);
  scope_.spawn(write_loop());
  co_await read_loop();
  close();
  co_await scope_.join();
  co_await stream_->closed();
  if (service_ != nullptr) service_->closed(self);
}

Task<void> Connection::read_loop() {
  while (is_open()) {
    {
      auto received = co_await stream_->recv(last_activity_ns_ + idle_ns);
      int64_t now = Loop::current().now_ns();
      if (!received) {
        // Idle means neither direction moved: a send may have happened while we waited.
        if (received.error().code == Errc::timeout && now < last_activity_ns_ + idle_ns) continue;
        if (received.error().code == Errc::timeout) log_idle();
        if (parser_.held_bytes() != 0 && received.error().code == Errc::closed)
          log(LogLevel::debug, "connection ended inside a frame", {{"CLIENT", peer_text_}});
        co_return;
      }
      last_activity_ns_ = now;
      if (!take_frames(received->bytes())) co_return;
    }  // the buffer goes back here: all connections share them
    count_held();
    while (!left_.empty()) {
      if (is_full())
        co_await slots_free();
      else
        co_await sleep_for(0);
      if (!is_open()) co_return;
      const std::string rest = std::exchange(left_, {});
      if (!take_frames(as_bytes(rest))) co_return;
      count_held();
    }
    if (holds_too_much()) {
      if (service_ != nullptr) service_->faults.no_memory++;
      log(LogLevel::warning, ids::peer_limit, "connection closed: no memory left for its large request",
          {{"CLIENT", peer_text_}, {"BYTES", std::to_string(held_bytes_)}});
      co_return;
    }
    if (is_full()) co_await slots_free();
  }
}

void Connection::log_idle() {
  if (service_ != nullptr) service_->faults.idle++;
  log(LogLevel::debug, ids::peer_idle, "connection closed: idle", {{"CLIENT", peer_text_}});
}

bool Connection::is_full() const {
  return requests_ >= limits::requests_in_flight_per_connection || unsent_bytes_ >= memory_.unsent_share() ||
         (requests_ > 0 && memory_.requests_exhausted());
}

Task<void> Connection::slots_free() {
  log(LogLevel::debug, ids::peer_limit, "connection is not read for a while: too much in flight",
      {{"CLIENT", peer_text_}});
  while (is_open() && is_full()) {
    bool freed = co_await slot_freed_.wait_until(last_activity_ns_ + idle_ns);
    if (freed || Loop::current().now_ns() < last_activity_ns_ + idle_ns) continue;
    log_idle();  // a peer that does not take its answers
    close();
  }
}

// One buffer holds hundreds of small requests, and each may have an answer of megabytes: what comes behind as
// many as fit is left for later.
bool Connection::take_frames(Bytes received) {
  const size_t unsent_before = unsent_bytes_;
  for (;;) {
    auto frame = parser_.next(received);
    if (!frame) {
      log_malformed(frame.error().where);
      return false;
    }
    if (!*frame) return true;
    scope_.spawn(work(std::move(*frame)));
    if (!is_open()) return false;
    if (received.empty()) continue;
    if (!is_full() && unsent_bytes_ < unsent_before + answers_in_a_turn_bytes) continue;
    left_ = as_text(received);
    return true;
  }
}

void Connection::log_malformed(const char* reason) {
  if (service_ != nullptr) service_->faults.malformed_frame++;
  log(LogLevel::warning, ids::peer_malformed_frame, "connection closed: malformed frame",
      {{"CLIENT", peer_text_}, {"REASON", reason}});
}

Task<void> Connection::work(proto::Frame frame) {
  Request request(*this, std::move(frame));
  auto decoded = proto::decode_command(request.frame_, &request.command);
  if (!decoded) {
    log_malformed(decoded.error().where);
    close();
    co_return;
  }
  if (request.command.is_response()) {
    take_answer(std::move(request.frame_), request.command);
    co_return;
  }
  requests_++;
  if (service_ != nullptr) {
    service_->at_work(request, 1);
    co_await service_->serve(request);
  }
  if (!request.answered_ && !request.is_oneway() && service_ == nullptr && is_open()) {
    proto::append_not_supported(begin_write(), request.command);
    end_write();
  }
  request.give_slot_back();
}

void Connection::take_answer(proto::Frame frame, proto::RemotingCommand& command) {
  auto it = calls_.find(command.opaque);
  if (it == calls_.end()) return;  // too late, or never asked: dropped silently, as everywhere
  Call& call = *it->second;
  call.answer = std::make_unique<RemoteAnswer>();
  call.answer->frame = std::move(frame);  // the bytes stay where they are, so the views hold
  call.answer->command = std::move(command);
  call.arrived.set();
}

void Connection::push(std::string_view frame) {
  if (!is_open()) return;
  begin_write().append(frame);
  end_write();
}

Task<Result<std::unique_ptr<RemoteAnswer>>> Connection::call(std::string frame, int32_t opaque,
                                                             int64_t deadline_ns) {
  std::shared_ptr<Connection> self = shared_from_this();
  if (!is_open()) co_return fail(Errc::closed, "connection is closed");
  Call call;
  calls_[opaque] = &call;
  push(frame);
  bool arrived = co_await call.arrived.wait_until(deadline_ns);
  calls_.erase(opaque);
  if (!arrived) co_return fail(Errc::timeout, "no answer in time");
  if (!call.answer) co_return fail(Errc::closed, "connection closed before the answer");
  co_return std::move(call.answer);
}

// ---- writing -----------------------------------------------------------------------------------------

std::string& Connection::begin_write() {
  if (out_.empty() || !out_.back().extent.bytes().empty() || out_.back().shared ||
      out_.back().text.size() >= segment_text_bytes) {
    out_.emplace_back();
    out_.back().text.swap(spare_);
  }
  write_mark_ = out_.back().text.size();
  return out_.back().text;
}

void Connection::end_write() {
  set_unsent(unsent_bytes_ + out_.back().text.size() - write_mark_);
  write_mark_ = out_.back().text.size();
  out_ready_.notify();
}

Task<void> Connection::write_loop() {
  std::vector<Segment> sending;
  std::vector<iovec> vectors;
  while (is_open()) {
    if (out_.empty() || unsent_bytes_ == 0) {
      co_await out_ready_.wait();
      continue;
    }
    vectors.clear();
    size_t bytes = 0;
    while (!out_.empty() && sending.size() < iovecs_per_send) {
      sending.push_back(std::move(out_.front()));
      out_.pop_front();
      bytes += sending.back().bytes().size();
      if (sending.back().bytes().empty()) sending.pop_back();
    }
    for (const Segment& s : sending)
      vectors.push_back({const_cast<std::byte*>(s.bytes().data()), s.bytes().size()});
    auto sent = co_await stream_->send(vectors);
    if (sending.front().text.capacity() > spare_.capacity()) spare_.swap(sending.front().text);
    spare_.clear();
    sending.clear();
    set_unsent(unsent_bytes_ - bytes);
    last_activity_ns_ = Loop::current().now_ns();
    slot_freed_.notify();
    if (!sent) break;
  }
  close();
}

}  // namespace rmq
