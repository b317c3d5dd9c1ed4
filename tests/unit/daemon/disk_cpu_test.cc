// The CPU of a disk's interrupts, by a directory that stands for /sys; and the thread's own affinity, for
// real.
#include "daemon/disk_cpu.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "base/time.h"
#include "sim/sim_loop.h"

namespace rmq {
namespace {

namespace fs = std::filesystem;

// A disk "vdx" with one queue at a controller of two interrupts, 35 and 36, as virtio has it.
class DiskCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "disk_cpu.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    store_ = dir_ / "store";
    sys_ = dir_ / "sys";
    fs::create_directories(store_);
    make_dirs("devices/pci/0000:00:02.0/msi_irqs");
    write("devices/pci/0000:00:02.0/msi_irqs/35", "msix");
    write("devices/pci/0000:00:02.0/msi_irqs/36", "msix");
    disk_ = "devices/pci/0000:00:02.0/virtio1/block/vdx";
    make_dirs(disk_ + "/mq/0");
    make_dirs(disk_ + "/slaves");
    write(disk_ + "/queue/rq_affinity", "1");
    fs::create_directory_symlink("../..", sys_ / disk_ / "device");
    count(35, "0,0,0");
    count(36, "5000,70000,0");
    lie_on(disk_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  void make_dirs(const std::string& at) { fs::create_directories(sys_ / at); }
  void write(const std::string& at, const std::string& text) {
    fs::create_directories((sys_ / at).parent_path());
    std::ofstream(sys_ / at) << text << "\n";
  }
  void count(int irq, const std::string& counts) {
    write("kernel/irq/" + std::to_string(irq) + "/per_cpu_count", counts);
  }
  // The store's file system is on this device.
  void lie_on(const std::string& device) {
    struct stat st{};
    ASSERT_EQ(::stat(store_.c_str(), &st), 0);
    const fs::path link =
        sys_ / "dev/block" / (std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev)));
    fs::create_directories(link.parent_path());
    fs::remove(link);
    fs::create_directory_symlink(sys_ / device, link);
  }
  std::optional<DiskInterrupts> find() { return DiskInterrupts::of(store_.string(), sys_.string()); }

  fs::path dir_, store_, sys_;
  std::string disk_;
};

TEST_F(DiskCpuTest, TellsTheCpuThatTookTheInterruptsSinceTheLastLook) {
  auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->disk(), "vdx");
  EXPECT_EQ(found->busiest_cpu(), too_few_interrupts) << "what came before it was made does not count";
  count(36, "6000,70100,0");
  EXPECT_EQ(found->busiest_cpu(), 0);
  count(36, "6000,70100,99");
  EXPECT_EQ(found->busiest_cpu(), too_few_interrupts);
  count(36, "6000,70100,299");
  EXPECT_EQ(found->busiest_cpu(), 2);
  count(36, "6100,70200,299");
  EXPECT_EQ(found->busiest_cpu(), spread_interrupts);
  count(36, "6300,70250,299");
  EXPECT_EQ(found->busiest_cpu(), 0) << "200 of 250 are four fifths";
  count(35, "0,300,0");
  EXPECT_EQ(found->busiest_cpu(), 1) << "both interrupts of the controller count";
}

TEST_F(DiskCpuTest, LooksBelowPartitionsAndMappings) {
  write(disk_ + "/vdx1/partition", "1");
  lie_on(disk_ + "/vdx1");
  ASSERT_TRUE(find());
  make_dirs("devices/virtual/block/dm-0/slaves");
  fs::create_directory_symlink(sys_ / disk_ / "vdx1", sys_ / "devices/virtual/block/dm-0/slaves/vdx1");
  lie_on("devices/virtual/block/dm-0");
  auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->disk(), "vdx");
  fs::create_directory_symlink(sys_ / disk_, sys_ / "devices/virtual/block/dm-0/slaves/vdy");
  EXPECT_FALSE(find()) << "on two devices";
}

TEST_F(DiskCpuTest, LeavesDisksAloneThatFinishWhereTheWriteWasSent) {
  make_dirs(disk_ + "/mq/1");
  EXPECT_FALSE(find()) << "two queues";
  fs::remove(sys_ / disk_ / "mq/1");
  ASSERT_TRUE(find());
  write(disk_ + "/queue/rq_affinity", "2");
  EXPECT_FALSE(find());
}

TEST_F(DiskCpuTest, NothingIsToldOfWhatIsNoDisk) {
  fs::remove_all(sys_ / "devices/pci/0000:00:02.0/msi_irqs");
  EXPECT_FALSE(find()) << "no interrupts, as of a loop device";
  fs::remove_all(sys_ / "dev");
  EXPECT_FALSE(find()) << "a file system without a device";
  EXPECT_FALSE(DiskInterrupts::of((store_ / "missing").string(), sys_.string()));
}

cpu_set_t affinity() {
  cpu_set_t now;
  CPU_ZERO(&now);
  EXPECT_EQ(::sched_getaffinity(0, sizeof now, &now), 0);
  return now;
}
bool only(int cpu) {
  const cpu_set_t now = affinity();
  return CPU_COUNT(&now) == 1 && CPU_ISSET(cpu, &now);
}
bool same(const cpu_set_t& a, const cpu_set_t& b) {
  return CPU_EQUAL(&a, &b);
}

class StayOnCpuTest : public DiskCpuTest {
 protected:
  void SetUp() override {
    DiskCpuTest::SetUp();
    before_ = affinity();
    if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "one CPU";
    while (!CPU_ISSET(first_, &before_)) first_++;
    for (second_ = first_ + 1; !CPU_ISSET(second_, &before_);) second_++;
    waited(0);
  }
  void TearDown() override {
    ::sched_setaffinity(0, sizeof before_, &before_);
    DiskCpuTest::TearDown();
  }
  void waited(int64_t ns) { write("schedstat", "1000 " + std::to_string(ns) + " 7"); }
  StayOnCpu make() { return StayOnCpu((sys_ / "schedstat").string()); }

  cpu_set_t before_;
  int first_ = 0, second_ = 0;
};

TEST_F(StayOnCpuTest, GoesWhereTheInterruptsGoAndIsLetGo) {
  StayOnCpu stay = make();
  EXPECT_EQ(stay.look(second_, ns_per_s), second_);
  EXPECT_TRUE(only(second_));
  EXPECT_EQ(stay.look(too_few_interrupts, 3 * ns_per_s), second_) << "that tells nothing";
  EXPECT_EQ(stay.look(first_, 5 * ns_per_s), first_);
  EXPECT_TRUE(only(first_));
  EXPECT_EQ(stay.look(spread_interrupts, 7 * ns_per_s), -1);
  EXPECT_TRUE(same(affinity(), before_));
  EXPECT_EQ(stay.look(second_, 9 * ns_per_s), second_);
  stay.let_go();
  EXPECT_TRUE(same(affinity(), before_));
  EXPECT_EQ(stay.error(), 0);
}

TEST_F(StayOnCpuTest, GoesNowhereThatItMayNot) {
  cpu_set_t few = before_;
  CPU_CLR(second_, &few);
  if (CPU_COUNT(&few) > 1) {
    ASSERT_EQ(::sched_setaffinity(0, sizeof few, &few), 0);
    StayOnCpu stay = make();
    EXPECT_EQ(stay.look(second_, ns_per_s), -1);
    EXPECT_TRUE(same(affinity(), few));
  }
  StayOnCpu stay = make();
  EXPECT_EQ(stay.look(CPU_SETSIZE, ns_per_s), -1);
}

TEST_F(StayOnCpuTest, IsLetGoForLongerEachTimeWhenItWaitsForTheCpu) {
  StayOnCpu stay = make();
  EXPECT_EQ(stay.look(first_, 10 * ns_per_s), first_);
  waited(800 * ns_per_ms);
  EXPECT_EQ(stay.look(first_, 12 * ns_per_s), first_) << "two fifths of two seconds are not more than that";
  waited(1600 * ns_per_ms + 1);
  EXPECT_EQ(stay.look(first_, 14 * ns_per_s), -1);
  EXPECT_TRUE(same(affinity(), before_));
  EXPECT_EQ(stay.look(first_, 73 * ns_per_s), -1) << "a minute";
  EXPECT_EQ(stay.look(first_, 74 * ns_per_s), first_);
  waited(10 * ns_per_s);
  EXPECT_EQ(stay.look(first_, 76 * ns_per_s), -1);
  EXPECT_EQ(stay.look(first_, 195 * ns_per_s), -1) << "two minutes";
  EXPECT_EQ(stay.look(first_, 196 * ns_per_s), first_);
}

TEST_F(StayOnCpuTest, StaysWhereTheKernelDoesNotCountTheWaiting) {
  StayOnCpu stay((sys_ / "missing").string());
  EXPECT_EQ(stay.look(first_, 1 * ns_per_s), first_);
  EXPECT_EQ(stay.look(first_, 3 * ns_per_s), first_);
}

TEST_F(StayOnCpuTest, TheLoopStaysAtTheDiskWhileItIsWantedAndWrites) {
  sim::SimLoop loop(1);
  uint64_t writes = 1000, interrupts = 0;
  bool wanted = true;
  auto wait = [&](int cpu, uint64_t more_writes) -> Task<void> {
    interrupts += 1000;
    std::string counts;
    for (int i = 0; i < cpu; i++) counts += "0,";
    count(36, counts + std::to_string(70000 + interrupts));
    writes += more_writes;
    co_await sleep_for(2 * ns_per_s);
  };
  auto steps = [&]() -> Task<void> {
    Event stop;
    Scope scope;
    count(36, "0");
    scope.spawn(stay_at_disk(StayAtDisk{store_.string(), wanted, writes, sys_.string()}, stop));
    co_await sleep_for(ns_per_s);
    co_await wait(second_, 99);
    EXPECT_TRUE(same(affinity(), before_)) << "few writes";
    co_await wait(second_, 100);
    EXPECT_TRUE(only(second_));
    wanted = false;
    co_await wait(second_, 100);
    EXPECT_TRUE(same(affinity(), before_)) << "not wanted";
    wanted = true;
    co_await wait(second_, 100);
    EXPECT_TRUE(only(second_));
    stop.set();
    co_await scope.join();
    EXPECT_TRUE(same(affinity(), before_)) << "at the end";
  };
  loop.run(steps());
}

}  // namespace
}  // namespace rmq
