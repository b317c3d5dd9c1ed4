// SimNet: the network of one host in a simulation. All hosts of a SimNetwork live on one SimLoop; a program
// gets the SimNet of its host, and its tests or clients get others. Segments arrive after a latency, split
// and merged by seed, never reordered within a stream. A connection dies by close() of either end, by a
// reset (by chance, or reset_all() when a host "crashes"), as TCP does it: what was sent before an orderly
// close still arrives; a reset throws away what is under way; closing with unread bytes resets.
//
// A stream that is destroyed while the "kernel" still holds it (closed() not awaited) fails a check.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "sim/sim_loop.h"
#include "uring/io.h"
#include "uring/sync.h"

namespace rmq::sim {

struct NetPlan {
  int64_t latency_ns_max = 300 * ns_per_us;
  uint64_t reset_per_million = 0;    // chance per send that the connection is reset
  uint64_t refuse_per_million = 0;   // chance per connect
  size_t window_bytes = 256u << 10;  // sent but not received: more waits in send()
  size_t segment_bytes_max = 64u << 10;
};

// One direction of a connection.
struct SimPipe {
  struct Segment {
    int64_t at_ns;
    std::string bytes;
  };
  std::deque<Segment> segments;
  size_t bytes = 0;     // in segments
  int64_t last_ns = 0;  // arrival of the newest segment: nothing overtakes it
  bool ended = false;   // the sender closed; effective after the segments, at end_ns
  int64_t end_ns = 0;
  bool reader_gone = false;
  WaitList readable, writable;
};

struct SimConnection {
  SimPipe to_server, to_client;
  Address client, server;
  bool reset = false;
  int64_t reset_ns = 0;  // when an end notices
};

struct SimListening {
  std::deque<std::pair<int64_t, std::shared_ptr<SimConnection>>> backlog;  // with arrival time
  bool closed = false;
  bool listens = false;
  WaitList acceptors;
};

class SimNetwork {
 public:
  explicit SimNetwork(SimLoop& loop, NetPlan plan = {}) : loop_(loop), plan_(plan) {}
  ~SimNetwork() { check(buffers_out_ == 0); }  // a RecvBuffer outlived the network
  NetPlan& plan() { return plan_; }

 private:
  friend class SimNet;
  friend class SimStream;
  friend class SimListener;
  int64_t latency() { return loop_.chooser().between(ns_per_us, plan_.latency_ns_max); }
  void reset(SimConnection& c);

  SimLoop& loop_;
  NetPlan plan_;
  std::map<std::string, std::shared_ptr<SimListening>> listening_;  // by "ip:port"
  std::vector<std::weak_ptr<SimConnection>> connections_;
  uint64_t buffers_out_ = 0;
  uint32_t next_buffer_ = 0;
  std::map<uint32_t, std::string> buffers_;
  uint16_t next_port_ = 40'000;
};

class SimNet final : public Net {
 public:
  // `ip` is this host's address, IPv4 text. Names resolve to themselves only when they are addresses.
  SimNet(SimNetwork& network, std::string ip) : network_(network), ip_(std::move(ip)) {}
  Task<Result<std::unique_ptr<Listener>>> bind(std::string host, uint16_t port) override;
  Task<Result<std::unique_ptr<Stream>>> connect(std::string host, uint16_t port,
                                                int64_t deadline_ns) override;
  void reset_all();  // every connection of this host dies, as when its power goes

 private:
  SimNetwork& network_;
  std::string ip_;
};

}  // namespace rmq::sim
