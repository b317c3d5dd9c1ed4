// What the operator reads when a machine cannot run the program, by invented answers of the kernel.
#include "uring/probe.h"

#include <errno.h>
#include <gtest/gtest.h>

namespace rmq {
namespace {

ProbeFacts fine() {
  ProbeFacts f;
  f.io_uring_disabled = 0;
  f.files_max = 100'000;
  f.memlock_bytes_max = 65'536;
  f.kernel_release = "6.1.0-13-amd64";
  return f;
}
ProbeFacts refused(int error) {
  ProbeFacts f = fine();
  f.setup_errno = f.plain_setup_errno = error;
  return f;
}
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Probe, ThisMachinePasses) {
  EXPECT_EQ(probe_verdict(probe_kernel(), 64), "");
}

TEST(Probe, FineIsSilent) {
  EXPECT_EQ(probe_verdict(fine(), 20'000), "");
}

TEST(Probe, SysctlIsNamedWithTheCure) {
  ProbeFacts f = refused(EPERM);
  f.io_uring_disabled = 2;
  f.seccomp_filter = true;  // the sysctl alone explains it
  std::string off = probe_verdict(f, 64);
  EXPECT_TRUE(has(off, "kernel.io_uring_disabled=2")) << off;
  EXPECT_TRUE(has(off, "set it to 0")) << off;
  EXPECT_FALSE(has(off, "seccomp")) << off;
  f.io_uring_disabled = 1;
  std::string group = probe_verdict(f, 64);
  EXPECT_TRUE(has(group, "kernel.io_uring_group")) << group;
}

TEST(Probe, SeccompIsNamedWithTheCure) {
  for (int error : {EPERM, ENOSYS, EACCES}) {
    ProbeFacts f = refused(error);
    f.seccomp_filter = true;
    std::string text = probe_verdict(f, 64);
    EXPECT_TRUE(has(text, "seccomp filter forbids io_uring")) << text;
    EXPECT_TRUE(has(text, "SystemCallFilter=@system-service @aio")) << text;
  }
  std::string unknown = probe_verdict(refused(EPERM), 64);
  EXPECT_TRUE(has(unknown, "security module or a container")) << unknown;
}

TEST(Probe, AKernelWithoutIoUring) {
  std::string text = probe_verdict(refused(ENOSYS), 64);
  EXPECT_TRUE(has(text, "CONFIG_IO_URING")) << text;
  EXPECT_TRUE(has(text, "6.1.0-13-amd64")) << text;
}

TEST(Probe, AnOldKernelIsToldEverythingThatIsMissing) {
  ProbeFacts f = fine();
  f.setup_errno = EINVAL;
  f.missing_flags = {"IORING_SETUP_DEFER_TASKRUN"};
  f.missing_operations = {"IORING_OP_MKDIRAT"};
  f.kernel_release = "5.10.0";
  std::string text = probe_verdict(f, 64);
  EXPECT_TRUE(has(text, "5.10.0 is too old")) << text;
  EXPECT_TRUE(has(text, "IORING_SETUP_DEFER_TASKRUN, IORING_OP_MKDIRAT")) << text;
  EXPECT_TRUE(has(text, "6.1")) << text;
  f = fine();
  f.buffer_ring_errno = EINVAL;
  EXPECT_TRUE(has(probe_verdict(f, 64), "IORING_REGISTER_PBUF_RING"));
  f = fine();
  f.multishot_errno = EINVAL;
  EXPECT_TRUE(has(probe_verdict(f, 64), "IORING_RECV_MULTISHOT"));
}

TEST(Probe, LimitsAreNamedWithTheirValue) {
  std::string memory = probe_verdict(refused(ENOMEM), 64);
  EXPECT_TRUE(has(memory, "RLIMIT_MEMLOCK is 65536 bytes")) << memory;
  EXPECT_TRUE(has(memory, "LimitMEMLOCK=")) << memory;
  ProbeFacts f = fine();
  f.setup_errno = ENOMEM;  // only the larger ring of the program did not fit
  EXPECT_TRUE(has(probe_verdict(f, 64), "RLIMIT_MEMLOCK"));
  f = fine();
  f.buffer_ring_errno = ENOMEM;
  EXPECT_TRUE(has(probe_verdict(f, 64), "receive buffers"));
  EXPECT_TRUE(has(probe_verdict(refused(EMFILE), 64), "RLIMIT_NOFILE allows 100000"));
  f = fine();
  f.files_max = 1024;
  std::string files = probe_verdict(f, 20'100);
  EXPECT_TRUE(has(files, "RLIMIT_NOFILE allows 1024")) << files;
  EXPECT_TRUE(has(files, "may use 20100")) << files;
  EXPECT_TRUE(has(files, "LimitNOFILE=")) << files;
}

TEST(Probe, AnythingElseShowsTheError) {
  std::string text = probe_verdict(refused(EIO), 64);
  EXPECT_TRUE(has(text, "Input/output error")) << text;
}

}  // namespace
}  // namespace rmq
