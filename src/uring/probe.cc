#include "uring/probe.h"

#include <errno.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <liburing.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace rmq {

namespace {

struct Named {
  unsigned value;
  const char* name;
};

#define NAMED(x) {x, #x}
// DEFER_TASKRUN is tried together with SINGLE_ISSUER, which it needs; TASKRUN_FLAG with DEFER_TASKRUN.
constexpr Named setup_flags[] = {
    NAMED(IORING_SETUP_CQSIZE),        NAMED(IORING_SETUP_SUBMIT_ALL),   NAMED(IORING_SETUP_SINGLE_ISSUER),
    NAMED(IORING_SETUP_DEFER_TASKRUN), NAMED(IORING_SETUP_TASKRUN_FLAG),
};
constexpr Named operations[] = {
    NAMED(IORING_OP_NOP),      NAMED(IORING_OP_READ),         NAMED(IORING_OP_WRITEV),
    NAMED(IORING_OP_FSYNC),    NAMED(IORING_OP_FALLOCATE),    NAMED(IORING_OP_OPENAT),
    NAMED(IORING_OP_CLOSE),    NAMED(IORING_OP_STATX),        NAMED(IORING_OP_MKDIRAT),
    NAMED(IORING_OP_UNLINKAT), NAMED(IORING_OP_RENAMEAT),     NAMED(IORING_OP_ACCEPT),
    NAMED(IORING_OP_CONNECT),  NAMED(IORING_OP_RECV),         NAMED(IORING_OP_SEND),
    NAMED(IORING_OP_SENDMSG),  NAMED(IORING_OP_ASYNC_CANCEL),
};
#undef NAMED

constexpr unsigned all_flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                               IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;

// The ring of one question.
class TryRing {
 public:
  explicit TryRing(unsigned flags) {
    io_uring_params p{};
    p.flags = flags;
    if ((flags & IORING_SETUP_CQSIZE) != 0) p.cq_entries = 16;
    error_ = -io_uring_queue_init_params(4, &ring_, &p);
  }
  ~TryRing() {
    if (error_ == 0) io_uring_queue_exit(&ring_);
  }
  TryRing(const TryRing&) = delete;
  TryRing& operator=(const TryRing&) = delete;
  int error() const { return error_; }
  io_uring* raw() { return &ring_; }

 private:
  io_uring ring_{};
  int error_;
};

unsigned with_requirements(unsigned flag) {
  if (flag == IORING_SETUP_DEFER_TASKRUN) return flag | IORING_SETUP_SINGLE_ISSUER;
  if (flag == IORING_SETUP_TASKRUN_FLAG)
    return flag | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  return flag;
}

void ask_operations(io_uring* ring, ProbeFacts& facts) {
  io_uring_probe* p = io_uring_get_probe_ring(ring);
  for (const Named& o : operations) {
    bool there = p != nullptr && io_uring_opcode_supported(p, static_cast<int>(o.value)) != 0;
    if (!there) facts.missing_operations.emplace_back(o.name);
  }
  if (p != nullptr) io_uring_free_probe(p);
}

// A multishot receive from a socket pair that has a byte to give, into the buffers of group 0.
int ask_multishot(io_uring* ring) {
  int s[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0) return errno;
  int result = 0;
  if (send(s[1], "x", 1, MSG_NOSIGNAL) != 1) result = errno;
  close(s[1]);
  io_uring_sqe* e = io_uring_get_sqe(ring);
  io_uring_prep_recv_multishot(e, s[0], nullptr, 0, 0);
  e->flags |= IOSQE_BUFFER_SELECT;
  e->buf_group = 0;
  if (result == 0) {
    io_uring_cqe* cqe = nullptr;
    __kernel_timespec wait{2, 0};
    int r = io_uring_submit_and_wait_timeout(ring, &cqe, 1, &wait, nullptr);
    if (r < 0) {
      result = -r;
    } else if (cqe != nullptr && cqe->res < 0) {
      result = -cqe->res;
    }
  }
  close(s[0]);
  return result;
}

void ask_receiving(ProbeFacts& facts) {
  constexpr unsigned page = 4096;
  void* m = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) {
    facts.buffer_ring_errno = errno;
    return;
  }
  auto* memory = static_cast<std::byte*>(m);
  {
    TryRing ring(all_flags);
    io_uring_buf_reg reg{};
    reg.ring_addr = reinterpret_cast<uintptr_t>(m);
    reg.ring_entries = 4;
    facts.buffer_ring_errno = -io_uring_register_buf_ring(ring.raw(), &reg, 0);
    if (facts.buffer_ring_errno == 0) {
      auto* entries = reinterpret_cast<io_uring_buf_ring*>(m);
      io_uring_buf_ring_init(entries);
      for (unsigned short i = 0; i < 4; i++)
        io_uring_buf_ring_add(entries, memory + page + i * 64, 64, i, io_uring_buf_ring_mask(4), i);
      io_uring_buf_ring_advance(entries, 4);
      facts.multishot_errno = ask_multishot(ring.raw());
    }
  }
  munmap(m, 2 * page);
}

std::optional<int> read_sysctl() {
  std::ifstream f("/proc/sys/kernel/io_uring_disabled");
  int v = 0;
  if (f >> v) return v;
  return std::nullopt;
}

bool has_seccomp_filter() {
  std::ifstream f("/proc/self/status");
  std::string line;
  while (std::getline(f, line)) {
    if (line.starts_with("Seccomp:")) return line.ends_with('2');
  }
  return false;
}

std::string list_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// io_uring_setup was refused even without flags.
std::string setup_refused(const ProbeFacts& f) {
  const char* filter_cure =
      "allow the calls io_uring_setup, io_uring_enter and io_uring_register: with systemd "
      "SystemCallFilter=@system-service @aio, in a container a seccomp profile that has them";
  int e = f.plain_setup_errno;
  int disabled = f.io_uring_disabled.value_or(0);
  if (e == EPERM && disabled == 2)
    return "io_uring is switched off by the sysctl kernel.io_uring_disabled=2; "
           "set it to 0 (sysctl -w kernel.io_uring_disabled=0, and a file in /etc/sysctl.d)";
  if (e == EPERM && disabled == 1)
    return "io_uring is kept for privileged users by the sysctl kernel.io_uring_disabled=1; set it to 0, or "
           "put this program's user into the group that kernel.io_uring_group names";
  if ((e == EPERM || e == ENOSYS || e == EACCES) && f.seccomp_filter)
    return fmt::format("a seccomp filter forbids io_uring ({}); {}", strerror(e), filter_cure);
  if (e == ENOSYS)
    return fmt::format("kernel {} has no io_uring (CONFIG_IO_URING); Linux 6.1 or later with it is needed",
                       f.kernel_release);
  if (e == EPERM || e == EACCES)
    return fmt::format("io_uring_setup is forbidden ({}) by a security module or a container; {}",
                       strerror(e), filter_cure);
  if (e == ENOMEM)
    return fmt::format(
        "io_uring_setup had no memory: RLIMIT_MEMLOCK is {} bytes, raise it (systemd "
        "LimitMEMLOCK=, ulimit -l) and look at the memory limit of the control group",
        f.memlock_bytes_max);
  if (e == EMFILE || e == ENFILE)
    return fmt::format(
        "io_uring_setup had no file descriptor: RLIMIT_NOFILE allows {}, raise it (systemd "
        "LimitNOFILE=, ulimit -n)",
        f.files_max);
  return fmt::format("io_uring_setup failed on kernel {}: {}", f.kernel_release, strerror(e));
}

}  // namespace

ProbeFacts probe_kernel() {
  ProbeFacts facts;
  utsname u{};
  if (uname(&u) == 0) facts.kernel_release = u.release;
  facts.io_uring_disabled = read_sysctl();
  facts.seccomp_filter = has_seccomp_filter();
  rlimit files{};
  rlimit memory{};
  getrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_MEMLOCK, &memory);
  facts.files_max = files.rlim_max;
  facts.memlock_bytes_max = memory.rlim_cur;
  {
    TryRing plain(0);
    facts.plain_setup_errno = plain.error();
    if (plain.error() != 0) {
      facts.setup_errno = plain.error();
      return facts;
    }
    ask_operations(plain.raw(), facts);
  }
  TryRing full(all_flags);
  facts.setup_errno = full.error();
  if (full.error() == 0) {
    ask_receiving(facts);
    return facts;
  }
  for (const Named& f : setup_flags) {
    TryRing one(with_requirements(f.value));
    if (one.error() == EINVAL) facts.missing_flags.emplace_back(f.name);
  }
  return facts;
}

std::string probe_verdict(const ProbeFacts& f, uint64_t files_needed) {
  if (f.plain_setup_errno != 0) return setup_refused(f);
  std::vector<std::string> missing = f.missing_flags;
  missing.insert(missing.end(), f.missing_operations.begin(), f.missing_operations.end());
  if (f.buffer_ring_errno == EINVAL) missing.emplace_back("IORING_REGISTER_PBUF_RING");
  if (f.multishot_errno == EINVAL) missing.emplace_back("IORING_RECV_MULTISHOT");
  if (!missing.empty())
    return fmt::format("kernel {} is too old: its io_uring lacks {}; Linux 6.1 or later is needed",
                       f.kernel_release, list_text(missing));
  if (f.setup_errno != 0) {
    ProbeFacts same = f;
    same.plain_setup_errno = f.setup_errno;
    return setup_refused(same);
  }
  if (f.buffer_ring_errno != 0)
    return fmt::format(
        "io_uring cannot register receive buffers: {}; RLIMIT_MEMLOCK is {} bytes, raise it "
        "(systemd LimitMEMLOCK=, ulimit -l)",
        strerror(f.buffer_ring_errno), f.memlock_bytes_max);
  if (f.multishot_errno != 0)
    return fmt::format("a multishot receive failed on kernel {}: {}", f.kernel_release,
                       strerror(f.multishot_errno));
  if (f.files_max < files_needed)
    return fmt::format(
        "RLIMIT_NOFILE allows {} open files and the configuration may use {}; raise it (systemd "
        "LimitNOFILE=, ulimit -n) or lower the connection limit",
        f.files_max, files_needed);
  return {};
}

void raise_open_files_limit() {
  rlimit r{};
  if (getrlimit(RLIMIT_NOFILE, &r) != 0) return;
  r.rlim_cur = r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}

}  // namespace rmq
