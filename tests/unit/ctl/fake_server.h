// A server of one test: name server and broker in one, on a free loopback port. A handler answers each
// request with bytes, or with nothing; it may ask for the connection to be closed behind them.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proto/command.h"
#include "proto/frame.h"

namespace rmq::ctl {

class FakeServer {
 public:
  struct Request {
    const proto::RemotingCommand& command;
    std::string_view body;
  };
  struct Answer {
    std::string bytes;
    bool close_after = false;
  };
  using Handler = std::function<Answer(const Request&)>;

  FakeServer() {
    listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    rmq::check(bind(listen_fd_, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 &&
               listen(listen_fd_, 64) == 0);
    rmq::check(getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&a), &size) == 0);
    port_ = ntohs(a.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeServer() {
    stopping_ = true;
    thread_.join();
    for (auto& [fd, parser] : connections_) close(fd);
    close(listen_fd_);
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void on(proto::RequestCode code, Handler h) {
    std::lock_guard lock(mutex_);
    handlers_[static_cast<int32_t>(code)] = std::move(h);
  }
  // The same answer each time.
  void answer(proto::RequestCode code, proto::ResponseCode rc, std::string remark, std::string body = {}) {
    on(code, [=](const Request& r) {
      Answer a;
      proto::append_response(a.bytes, r.command, rc, remark, body);
      return a;
    });
  }
  // How often it was asked.
  int asked(proto::RequestCode code) {
    std::lock_guard lock(mutex_);
    return counts_[static_cast<int32_t>(code)];
  }

 private:
  void serve() {
    while (!stopping_) {
      std::vector<pollfd> fds{{listen_fd_, POLLIN, 0}};
      for (auto& [fd, parser] : connections_) fds.push_back({fd, POLLIN, 0});
      if (poll(fds.data(), fds.size(), 20) <= 0) continue;
      if (fds[0].revents) connections_[accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC)];
      for (size_t i = 1; i < fds.size(); i++)
        if (fds[i].revents && !read_from(fds[i].fd)) {
          close(fds[i].fd);
          connections_.erase(fds[i].fd);
        }
    }
  }
  bool read_from(int fd) {
    char buffer[64 << 10];
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    Bytes rest = as_bytes({buffer, static_cast<size_t>(n)});
    for (;;) {
      auto frame = connections_[fd].next(rest);
      if (!frame) return false;
      if (!*frame) return true;
      proto::RemotingCommand command;
      if (!proto::decode_command(*frame, &command)) return false;
      Answer a = handle({command, frame->body_text()});
      if (!a.bytes.empty()) (void)!::send(fd, a.bytes.data(), a.bytes.size(), MSG_NOSIGNAL);
      if (a.close_after) return false;
    }
  }
  Answer handle(const Request& r) {
    std::lock_guard lock(mutex_);
    counts_[r.command.code]++;
    auto h = handlers_.find(r.command.code);
    if (h != handlers_.end()) return h->second(r);
    Answer a;
    proto::append_not_supported(a.bytes, r.command);
    return a;
  }

  int listen_fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::map<int32_t, Handler> handlers_;
  std::map<int32_t, int> counts_;
  std::map<int, proto::FrameParser> connections_;
  std::thread thread_;
};

}  // namespace rmq::ctl
