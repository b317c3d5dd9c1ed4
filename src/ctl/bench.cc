// Idea: see bench.h.

#include "ctl/bench.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/time.h"

namespace rmq::ctl {

static constexpr int32_t first_opaque = 1'000'000'000;  // ten digits from the first to the last slot
static constexpr int64_t drain_ms = 10'000;             // for what is in flight at the end
static constexpr int64_t progress_ms = 250;

size_t Histogram::bucket_of(uint64_t us) {
  if (us < (1u << sub_bits)) return us;
  auto shift = static_cast<uint32_t>(std::bit_width(us)) - sub_bits - 1;
  size_t bucket = (static_cast<size_t>(shift + 1) << sub_bits) + ((us >> shift) - (1u << sub_bits));
  return std::min(bucket, buckets_max - 1);
}

uint64_t Histogram::end_of(size_t bucket) {
  if (bucket < (1u << sub_bits)) return bucket;
  uint64_t shift = (bucket >> sub_bits) - 1;
  uint64_t base = (1u << sub_bits) + (bucket & ((1u << sub_bits) - 1));
  return ((base + 1) << shift) - 1;
}

void Histogram::add(int64_t us) {
  us = std::max<int64_t>(us, 0);
  counts_[bucket_of(static_cast<uint64_t>(us))]++;
  count_++;
  max_ = std::max(max_, us);
}

int64_t Histogram::percentile_us(double part) const {
  auto rank = static_cast<int64_t>(std::ceil(part * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t b = 0; b < buckets_max; b++) {
    seen += counts_[b];
    if (seen >= std::max<int64_t>(rank, 1)) return std::min(static_cast<int64_t>(end_of(b)), max_);
  }
  return max_;
}

namespace {

double own_cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  auto s = [](timeval t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return s(u.ru_utime) + s(u.ru_stime);
}

struct Connection {
  Channel channel;
  std::string out;
  size_t out_at = 0;
  bool wants_write = false;
  proto::FrameParser parser{};
};

class Bench {
 public:
  Bench(Context& c, const BenchPlan& plan, Workload& load) : c_(c), plan_(plan), load_(load) {}
  ~Bench() {
    if (epoll_ >= 0) close(epoll_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Outcome<BenchResult> run() {
    TRY(connect());
    double cpu = own_cpu_seconds();
    start_ns_ = shown_ns_ = now_ns_ = system_mono_ns();
    int64_t end_ns = start_ns_ + plan_.duration_ms * ns_per_ms;
    for (size_t s = 0; s < slots_.size(); s++)
      if (issued_ < plan_.requests_max) issue(s);
    for (size_t i = 0; i < connections_.size(); i++) TRY(flush(i));
    while (in_flight_ > 0) {
      TRY(turn());
      if (!stopping_ && (now_ns_ >= end_ns || stop_asked())) {
        stopping_ = true;
        end_ns = now_ns_;
      }
      if (stopping_ && now_ns_ > end_ns + drain_ms * ns_per_ms)
        return fail(Exit::unreachable,
                    fmt::format("{} requests were not answered within {}ms", in_flight_, drain_ms));
      show_progress();
    }
    clear_progress();
    result_.seconds = static_cast<double>(now_ns_ - start_ns_) / 1e9;
    result_.cpu_seconds = own_cpu_seconds() - cpu;
    return std::move(result_);
  }

 private:
  Outcome<void> connect() {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) return fail(Exit::refused, fmt::format("epoll: {}", strerror(errno)));
    slots_.resize(plan_.connections * plan_.window);
    for (size_t i = 0; i < plan_.connections; i++) {
      TRY_VAR(channel, c_.new_channel(plan_.addresses[i % plan_.addresses.size()], ""));
      connections_.push_back(Connection{std::move(channel), {}, 0, false});
      epoll_event e{EPOLLIN, {.u64 = i}};
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_[i].channel.fd(), &e) != 0)
        return fail(Exit::refused, fmt::format("epoll: {}", strerror(errno)));
      for (size_t w = 0; w < plan_.window; w++) {
        size_t s = i * plan_.window + w;
        load_.prepare(slots_[s], s, i, first_opaque + static_cast<int32_t>(s));
      }
    }
    return {};
  }

  void issue(size_t number) {
    Slot& slot = slots_[number];
    load_.patch(slot, now_ms_);
    slot.sent_ns = now_ns_;
    issued_++;
    connections_[number / plan_.window].out += slot.frame;
    in_flight_++;
  }

  std::unexpected<Failure> broken(const Connection& x, std::string_view why) const {
    return fail(Exit::unreachable, fmt::format("{}: {}", x.channel.peer().to_string(), why));
  }

  Outcome<void> flush(size_t i) {
    Connection& x = connections_[i];
    while (x.out_at < x.out.size()) {
      ssize_t n = ::send(x.channel.fd(), x.out.data() + x.out_at, x.out.size() - x.out_at, MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return broken(x, fmt::format("the connection broke ({})", strerror(errno)));
      x.out_at += static_cast<size_t>(n);
    }
    if (x.out_at == x.out.size()) {
      x.out.clear();
      x.out_at = 0;
    }
    bool wants = !x.out.empty();
    if (wants == x.wants_write) return {};
    x.wants_write = wants;
    epoll_event e{wants ? EPOLLIN | EPOLLOUT : EPOLLIN, {.u64 = i}};
    epoll_ctl(epoll_, EPOLL_CTL_MOD, x.channel.fd(), &e);
    return {};
  }

  Outcome<void> turn() {
    epoll_event events[64];
    int n = epoll_wait(epoll_, events, 64, 100);
    now_ns_ = system_mono_ns();
    now_ms_ = system_wall_ms();
    for (int e = 0; e < n; e++) {
      size_t i = events[e].data.u64;
      if (events[e].events & ~static_cast<uint32_t>(EPOLLOUT)) TRY(receive(i));
      TRY(flush(i));
    }
    return {};
  }

  Outcome<void> receive(size_t i) {
    Connection& x = connections_[i];
    ssize_t n = recv(x.channel.fd(), buffer_.data(), buffer_.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (n < 0) return broken(x, fmt::format("the connection broke ({})", strerror(errno)));
    if (n == 0) return broken(x, "closed the connection");
    now_ns_ = system_mono_ns();
    Bytes rest = as_bytes({buffer_.data(), static_cast<size_t>(n)});
    for (;;) {
      auto frame = x.parser.next(rest);
      if (!frame) return x.channel.malformed("a request", frame.error());
      if (!*frame) return {};
      proto::RemotingCommand answer;
      if (auto r = proto::decode_command(*frame, &answer); !r)
        return x.channel.malformed("a request", r.error());
      handle(answer, frame->body().size());
    }
  }

  void handle(const proto::RemotingCommand& answer, size_t body_bytes) {
    auto number = static_cast<size_t>(answer.opaque - first_opaque);
    if (!answer.is_response() || answer.opaque < first_opaque || number >= slots_.size()) return;
    Slot& slot = slots_[number];
    if (slot.sent_ns == 0) return;  // answered twice
    int64_t us = (now_ns_ - slot.sent_ns) / ns_per_us;
    slot.sent_ns = 0;
    in_flight_--;
    result_.requests++;
    result_.latency.add(us);
    recent_.add(us);
    if (!load_.take(slot, answer, body_bytes, &result_)) result_.refused[answer.code]++;
    if (!stopping_ && issued_ < plan_.requests_max) issue(number);
  }

  void show_progress() {
    if (now_ns_ - shown_ns_ < progress_ms * ns_per_ms) return;
    double seconds = static_cast<double>(now_ns_ - shown_ns_) / 1e9;
    int64_t messages = result_.messages - shown_messages_;
    shown_ns_ = now_ns_;
    shown_messages_ = result_.messages;
    if (Context::stderr_is_terminal()) {
      int64_t refused = 0;
      for (const auto& [code, count] : result_.refused) refused += count;
      fmt::print(stderr, "\r{:6.1f}s  {:>11} {}  p50 {:>7}us  p99 {:>7}us  refused {}\x1b[K",
                 static_cast<double>(now_ns_ - start_ns_) / 1e9,
                 format_number(static_cast<int64_t>(static_cast<double>(messages) / seconds)), plan_.unit,
                 recent_.percentile_us(0.5), recent_.percentile_us(0.99), refused);
      fflush(stderr);
    }
    recent_.clear();
  }
  void clear_progress() {
    if (Context::stderr_is_terminal()) fmt::print(stderr, "\r\x1b[K");
  }

  Context& c_;
  const BenchPlan& plan_;
  Workload& load_;
  int epoll_ = -1;
  std::vector<Connection> connections_;
  std::vector<Slot> slots_;
  std::vector<char> buffer_ = std::vector<char>(256u << 10);
  BenchResult result_;
  Histogram recent_;
  size_t in_flight_ = 0;
  int64_t issued_ = 0;
  bool stopping_ = false;
  int64_t start_ns_ = 0, now_ns_ = 0, shown_ns_ = 0, shown_messages_ = 0;
  int64_t now_ms_ = system_wall_ms();
};

}  // namespace

Outcome<BenchResult> run_bench(Context& c, const BenchPlan& plan, Workload& load) {
  watch_for_stop();
  return Bench(c, plan, load).run();
}

}  // namespace rmq::ctl
