// What a service manager is told, on a socket as systemd's.
#include "daemon/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "sim/sim_loop.h"

namespace rmq {
namespace {

class NotifySocket {
 public:
  NotifySocket() : path_("/tmp/rmqd-notify-" + std::to_string(getpid())) {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, path_.c_str(), path_.size() + 1);
    ::unlink(path_.c_str());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ::setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  ~NotifySocket() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unlink(path_.c_str());
    ::close(fd_);
  }
  std::vector<std::string> messages() const {
    std::vector<std::string> out;
    char text[1024];
    for (ssize_t n = 0; (n = ::recv(fd_, text, sizeof text, 0)) > 0;)
      out.emplace_back(text, static_cast<size_t>(n));
    return out;
  }

 private:
  std::string path_;
  int fd_ = -1;
};

Task<void> stop_that_takes(int64_t ns, std::string& step) {
  Event stopped;
  Scope scope;
  scope.spawn(extend_stop([&step] { return "Stopping: " + step; }, stopped));
  co_await sleep_for(ns / 2);
  step = "second";
  co_await sleep_for(ns / 2);
  stopped.set();
  co_await scope.join();
}

TEST(ServiceManager, AStopThatTakesLongAsksForTime) {
  NotifySocket socket;
  sim::SimLoop loop(1);
  std::string step = "first";
  loop.run(stop_that_takes(22 * ns_per_s, step));
  const std::string more = "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=Stopping: ";
  EXPECT_EQ(socket.messages(),
            (std::vector<std::string>{more + "first", more + "first", more + "second", more + "second"}));
  step = "first";
  loop.run(stop_that_takes(2 * ns_per_s, step));
  EXPECT_TRUE(socket.messages().empty()) << "a short one does not";
}

}  // namespace
}  // namespace rmq
