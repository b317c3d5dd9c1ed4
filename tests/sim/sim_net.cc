#include "sim/sim_net.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rmq::sim {

class SimStream final : public Stream {
 public:
  SimStream(SimNetwork& net, std::shared_ptr<SimConnection> c, bool is_client)
      : net_(net), c_(std::move(c)), is_client_(is_client) {}
  ~SimStream() override {
    check(closed_);
    check(under_way_ == 0);
    check(released_);
  }
  Task<Result<RecvBuffer>> recv(int64_t deadline_ns) override;
  Task<Result<void>> send(std::span<const iovec> from) override;
  void close() override;
  Task<void> closed() override;
  const Address& peer() const override { return is_client_ ? c_->server : c_->client; }
  const Address& local() const override { return is_client_ ? c_->client : c_->server; }

 private:
  SimPipe& in() { return is_client_ ? c_->to_client : c_->to_server; }
  SimPipe& out() { return is_client_ ? c_->to_server : c_->to_client; }
  bool was_reset() const { return c_->reset && c_->reset_ns <= net_.loop_.now_ns(); }
  Task<Result<RecvBuffer>> recv_now(int64_t deadline_ns);
  Task<Result<void>> send_now(std::string bytes);
  RecvBuffer take_arrived();
  void push(std::string_view bytes);

  SimNetwork& net_;
  std::shared_ptr<SimConnection> c_;
  const bool is_client_;
  bool closed_ = false;
  bool released_ = false;
  bool receiving_ = false, sending_ = false;
  uint32_t under_way_ = 0;
  WaitList idle_;
};

// Some bytes that arrived: one segment, a part of it, or several.
RecvBuffer SimStream::take_arrived() {
  SimPipe& p = in();
  SimRandom& r = net_.loop_.chooser();
  std::string bytes;
  do {
    SimPipe::Segment& s = p.segments.front();
    size_t n = r.below(4) == 0 ? 1 + r.below(s.bytes.size()) : s.bytes.size();
    n = std::min(n, net_.plan_.segment_bytes_max - bytes.size());
    bytes.append(s.bytes, 0, n);
    s.bytes.erase(0, n);
    if (!s.bytes.empty()) break;
    p.segments.pop_front();
  } while (!p.segments.empty() && p.segments.front().at_ns <= net_.loop_.now_ns() &&
           bytes.size() < net_.plan_.segment_bytes_max && r.below(2) == 0);
  p.bytes -= bytes.size();
  p.writable.wake_all();
  net_.loop_.trace("recv", "", bytes.size(), std::hash<std::string_view>{}(bytes));
  uint32_t id = net_.next_buffer_++;
  net_.buffers_out_++;
  std::string& kept = net_.buffers_[id] = std::move(bytes);
  auto release = [](void* owner, uint32_t buffer) {
    auto& n = *static_cast<SimNetwork*>(owner);
    n.buffers_out_--;
    check(n.buffers_.erase(buffer) == 1);
  };
  return RecvBuffer(as_bytes(kept), release, &net_, id);
}

Task<Result<RecvBuffer>> SimStream::recv_now(int64_t deadline_ns) {
  SimPipe& p = in();
  for (;;) {
    if (closed_) co_return fail(Errc::closed, "simulated recv");
    if (was_reset()) co_return fail_errno(ECONNRESET, "simulated recv");
    int64_t now = net_.loop_.now_ns();
    if (!p.segments.empty() && p.segments.front().at_ns <= now) co_return take_arrived();
    if (p.segments.empty() && p.ended && p.end_ns <= now) co_return fail(Errc::closed, "simulated recv");
    if (deadline_ns <= now) co_return fail(Errc::timeout, "simulated recv");
    int64_t until = deadline_ns;
    if (c_->reset) until = std::min(until, c_->reset_ns);
    if (!p.segments.empty()) until = std::min(until, p.segments.front().at_ns);
    if (p.segments.empty() && p.ended) until = std::min(until, p.end_ns);
    co_await Wait(&p.readable, until);
  }
}

Task<Result<RecvBuffer>> SimStream::recv(int64_t deadline_ns) {
  check(!receiving_);
  receiving_ = true;
  under_way_++;
  Result<RecvBuffer> r = co_await recv_now(deadline_ns);
  under_way_--;
  receiving_ = false;
  idle_.wake_all();
  co_return std::move(r);
}

void SimStream::push(std::string_view bytes) {
  SimPipe& p = out();
  SimRandom& r = net_.loop_.chooser();
  if (p.reader_gone) return;  // into the void; a reset is on its way
  p.bytes += bytes.size();
  while (!bytes.empty()) {
    size_t n = std::min<size_t>(bytes.size(), net_.plan_.segment_bytes_max);
    if (r.below(3) == 0) n = 1 + r.below(n);
    p.last_ns = std::max(p.last_ns, net_.loop_.now_ns() + net_.latency());
    p.segments.push_back({p.last_ns, std::string(bytes.substr(0, n))});
    bytes.remove_prefix(n);
  }
  p.readable.wake_all();
}

Task<Result<void>> SimStream::send_now(std::string bytes) {
  SimPipe& p = out();
  size_t sent = 0;
  if (net_.loop_.chooser().chance(net_.plan_.reset_per_million)) net_.reset(*c_);
  while (sent < bytes.size()) {
    if (closed_) co_return fail(Errc::closed, "simulated send");
    if (was_reset()) co_return fail_errno(EPIPE, "simulated send");
    size_t room =
        p.reader_gone ? bytes.size() : net_.plan_.window_bytes - std::min(p.bytes, net_.plan_.window_bytes);
    size_t n = std::min(room, bytes.size() - sent);
    if (n != 0) {
      push(std::string_view(bytes).substr(sent, n));
      sent += n;
      continue;
    }
    co_await Wait(&p.writable, c_->reset ? c_->reset_ns : no_deadline);
  }
  co_await Delay(net_.loop_, ns_per_us);
  co_return Result<void>{};
}

Task<Result<void>> SimStream::send(std::span<const iovec> from) {
  check(!sending_);
  sending_ = true;
  under_way_++;
  std::string bytes;
  for (const iovec& v : from) bytes.append(static_cast<const char*>(v.iov_base), v.iov_len);
  const size_t hash = std::hash<std::string_view>{}(bytes);
  net_.loop_.trace("send", "", bytes.size(), hash);
  Result<void> r = co_await send_now(std::move(bytes));
  std::string again;
  for (const iovec& v : from) again.append(static_cast<const char*>(v.iov_base), v.iov_len);
  check(std::hash<std::string_view>{}(again) == hash);  // the buffer changed while it was sent
  under_way_--;
  sending_ = false;
  idle_.wake_all();
  co_return r;
}

void SimStream::close() {
  if (closed_) return;
  closed_ = true;
  bool unread = !in().segments.empty();
  in().reader_gone = true;
  in().segments.clear();
  in().bytes = 0;
  if (unread) {
    net_.reset(*c_);
  } else {
    SimPipe& p = out();
    p.ended = true;
    p.end_ns = std::max(p.last_ns, net_.loop_.now_ns() + net_.latency());
  }
  for (SimPipe* p : {&c_->to_server, &c_->to_client}) {
    p->readable.wake_all();
    p->writable.wake_all();
  }
}

Task<void> SimStream::closed() {
  while (under_way_ != 0 || !closed_) co_await Wait(&idle_, no_deadline);
  co_await Delay(net_.loop_, ns_per_us);
  released_ = true;
}

void SimNetwork::reset(SimConnection& c) {
  if (c.reset) return;
  c.reset = true;
  c.reset_ns = loop_.now_ns() + latency();
  loop_.trace("reset", c.client.text());
  for (SimPipe* p : {&c.to_server, &c.to_client}) {
    p->readable.wake_all();
    p->writable.wake_all();
  }
}

class SimListener final : public Listener {
 public:
  SimListener(SimNetwork& net, std::shared_ptr<SimListening> l, Address local)
      : net_(net), l_(std::move(l)), local_(local) {}
  ~SimListener() override {
    check(l_->closed);
    check(released_);
  }
  Result<void> listen() override {
    l_->listens = true;
    return {};
  }
  Task<Result<std::unique_ptr<Stream>>> accept() override;
  void close() override;
  Task<void> closed() override;
  const Address& local() const override { return local_; }

 private:
  SimNetwork& net_;
  std::shared_ptr<SimListening> l_;
  Address local_;
  uint32_t under_way_ = 0;
  bool released_ = false;
  WaitList idle_;
};

Task<Result<std::unique_ptr<Stream>>> SimListener::accept() {
  under_way_++;
  std::unique_ptr<Stream> s;
  while (!l_->closed && s == nullptr) {
    int64_t at = l_->backlog.empty() ? no_deadline : l_->backlog.front().first;
    if (at <= net_.loop_.now_ns()) {
      s = std::make_unique<SimStream>(net_, l_->backlog.front().second, false);
      l_->backlog.pop_front();
      continue;
    }
    co_await Wait(&l_->acceptors, at);
  }
  under_way_--;
  idle_.wake_all();
  if (s == nullptr) co_return fail(Errc::closed, "simulated accept");
  net_.loop_.trace("accept", s->peer().text());
  co_return std::move(s);
}

void SimListener::close() {
  if (l_->closed) return;
  l_->closed = true;
  net_.listening_.erase(local_.text());
  for (auto& [at, c] : l_->backlog) net_.reset(*c);
  l_->backlog.clear();
  l_->acceptors.wake_all();
}

Task<void> SimListener::closed() {
  while (under_way_ != 0 || !l_->closed) co_await Wait(&idle_, no_deadline);
  released_ = true;
}

namespace {
std::string key_of(const std::string& ip, uint16_t port) {
  return ip + ":" + std::to_string(port);
}
}  // namespace

Task<Result<std::unique_ptr<Listener>>> SimNet::bind(std::string host, uint16_t port) {
  std::string ip = host.empty() || host == "0.0.0.0" ? ip_ : host;
  if (ip != ip_ && ip != "127.0.0.1") co_return fail_errno(EADDRNOTAVAIL, "simulated bind");
  if (port == 0) port = network_.next_port_++;
  std::string key = key_of(ip_, port);
  if (network_.listening_.contains(key)) co_return fail_errno(EADDRINUSE, "simulated bind");
  CO_TRY_VAR(local, Address::parse(key));
  auto l = std::make_shared<SimListening>();
  network_.listening_[key] = l;
  std::unique_ptr<Listener> listener = std::make_unique<SimListener>(network_, std::move(l), local);
  co_return std::move(listener);
}

Task<Result<std::unique_ptr<Stream>>> SimNet::connect(std::string host, uint16_t port, int64_t deadline_ns) {
  SimLoop& loop = network_.loop_;
  const int64_t latency = network_.latency();
  std::string key = key_of(host == "127.0.0.1" ? ip_ : host, port);
  CO_TRY_VAR(server, Address::parse(key));
  CO_TRY_VAR(client, Address::parse(key_of(ip_, network_.next_port_++)));
  if (network_.next_port_ < 40'000) network_.next_port_ = 40'000;
  co_await Delay(loop, std::min(latency * 2, std::max<int64_t>(deadline_ns - loop.now_ns(), 0)));
  if (deadline_ns <= loop.now_ns()) co_return fail(Errc::timeout, "simulated connect");
  auto it = network_.listening_.find(key);
  if (it == network_.listening_.end() || !it->second->listens ||
      loop.chooser().chance(network_.plan_.refuse_per_million))
    co_return fail_errno(ECONNREFUSED, "simulated connect");
  auto c = std::make_shared<SimConnection>();
  c->client = client;
  c->server = server;
  std::erase_if(network_.connections_, [](auto& w) { return w.expired(); });
  network_.connections_.push_back(c);
  it->second->backlog.emplace_back(loop.now_ns(), c);
  it->second->acceptors.wake_one();
  loop.trace("connect", client.text());
  std::unique_ptr<Stream> s = std::make_unique<SimStream>(network_, std::move(c), true);
  co_return std::move(s);
}

void SimNet::reset_all() {
  for (auto& w : network_.connections_) {
    auto c = w.lock();
    if (c != nullptr && (c->client.ip_text() == ip_ || c->server.ip_text() == ip_)) network_.reset(*c);
  }
}

}  // namespace rmq::sim
