// Probe: can this machine run a Ring? Asked once at start. No version is compared: set-up flags and
// operations are tried, and what is missing is named together with the cure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rmq {

// What the machine answered. errno values are 0 where the call worked.
struct ProbeFacts {
  int setup_errno = 0;        // io_uring_setup with the flags that Ring uses
  int plain_setup_errno = 0;  // the same without flags: tells a missing flag from a missing io_uring
  std::vector<std::string> missing_flags;       // IORING_SETUP_* refused one by one
  std::vector<std::string> missing_operations;  // IORING_OP_*
  int buffer_ring_errno = 0;                    // IORING_REGISTER_PBUF_RING
  int multishot_errno = 0;                      // a multishot receive
  std::optional<int> io_uring_disabled;         // sysctl kernel.io_uring_disabled; none: not there
  bool seccomp_filter = false;                  // /proc/self/status says Seccomp: 2
  uint64_t files_max = 0;                       // hard RLIMIT_NOFILE
  uint64_t memlock_bytes_max = 0;               // soft RLIMIT_MEMLOCK
  std::string kernel_release;                   // uname, for the text
};

ProbeFacts probe_kernel();

// Empty: fine. Otherwise what is missing, why, and what to do, as one text for the log.
// `files_needed`: descriptors that the configuration may use.
std::string probe_verdict(const ProbeFacts& facts, uint64_t files_needed);

// Raises the soft limit of open files to the hard one, as a daemon with many connections wants.
void raise_open_files_limit();

}  // namespace rmq
