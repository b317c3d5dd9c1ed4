// Files of the configuration that a request changes, on a real file system: whose they are, who may read
// them, and links to them.
#include "daemon/config_keeper.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "uring/disk.h"
#include "uring/ring.h"

namespace rmq {
namespace {

namespace fs = std::filesystem;

class ConfigKeeperTest : public testing::Test {
 protected:
  ConfigKeeperTest() {
    std::string pattern = (fs::temp_directory_path() / "rmq-keeper-XXXXXX").string();
    check(::mkdtemp(pattern.data()) != nullptr);
    dir_ = pattern;
    fs::create_directories(dir_ / "etc");
    fs::create_directories(dir_ / "real");
  }
  ~ConfigKeeperTest() override { fs::remove_all(dir_); }

  void write(const fs::path& path, std::string_view text, mode_t mode) {
    std::ofstream(path) << text;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  struct stat status_of(const fs::path& path) {
    struct stat st{};
    EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
    return st;
  }
  size_t files_in(const fs::path& path) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path), {}));
  }

  // a = 2 is to be kept in `file`, and is.
  void keep(const fs::path& file) {
    auto ring = Ring::create({});
    ASSERT_TRUE(ring);
    UringDisk disk(**ring);
    ConfigKeeper keeper(disk, file.string(), "");
    (*ring)->run(keep_by(keeper, file.string()));
  }
  static Task<void> keep_by(ConfigKeeper& keeper, std::string file) {
    std::vector<ConfigKeeper::Setting> settings;
    settings.push_back({"a", "2"});
    const ConfigKeeper::Check check = [](std::string_view, std::string_view) { return std::string(); };
    auto kept = co_await keeper.keep(std::move(settings), check);
    EXPECT_TRUE(kept) << kept.error();
    if (kept) EXPECT_EQ(*kept, file) << "as the person knows it";
  }

  fs::path dir_;
};

TEST_F(ConfigKeeperTest, TheFileKeepsItsMode) {
  for (mode_t mode : {0600u, 0604u, 0664u}) {
    write(dir_ / "etc/f", "a = 1\n", mode);
    keep(dir_ / "etc/f");
    EXPECT_EQ(text_of(dir_ / "etc/f"), "a = 2\n");
    EXPECT_EQ(status_of(dir_ / "etc/f").st_mode & 07777, mode);
  }
  EXPECT_EQ(files_in(dir_ / "etc"), 1u);
}

TEST_F(ConfigKeeperTest, TheFileKeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  write(dir_ / "etc/f", "a = 1\n", 0640);
  ASSERT_EQ(::chown((dir_ / "etc/f").c_str(), 12'345, 23'456), 0);
  keep(dir_ / "etc/f");
  EXPECT_EQ(text_of(dir_ / "etc/f"), "a = 2\n");
  const struct stat st = status_of(dir_ / "etc/f");
  EXPECT_EQ(st.st_uid, 12'345u);
  EXPECT_EQ(st.st_gid, 23'456u);
  EXPECT_EQ(st.st_mode & 07777, 0640u);
}

TEST_F(ConfigKeeperTest, ALinkToTheFileStays) {
  write(dir_ / "real/f", "a = 1\n", 0604);
  fs::create_symlink("../real/f", dir_ / "etc/second");
  fs::create_symlink(dir_ / "etc/second", dir_ / "etc/f");
  keep(dir_ / "etc/f");
  EXPECT_TRUE(fs::is_symlink(dir_ / "etc/f"));
  EXPECT_TRUE(fs::is_symlink(dir_ / "etc/second"));
  EXPECT_FALSE(fs::is_symlink(dir_ / "real/f"));
  EXPECT_EQ(text_of(dir_ / "real/f"), "a = 2\n");
  EXPECT_EQ(status_of(dir_ / "real/f").st_mode & 07777, 0604u);
  EXPECT_EQ(files_in(dir_ / "etc"), 2u);
  EXPECT_EQ(files_in(dir_ / "real"), 1u);
}

TEST_F(ConfigKeeperTest, ALinkToNothingGetsItsFile) {
  fs::create_symlink("../real/f", dir_ / "etc/f");
  keep(dir_ / "etc/f");
  EXPECT_TRUE(fs::is_symlink(dir_ / "etc/f"));
  EXPECT_EQ(text_of(dir_ / "real/f"), "a = 2\n");
}

}  // namespace
}  // namespace rmq
