// Files of a ring, in a directory of their own below the system's temporary one.
#include <linux/magic.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdlib>
#include <filesystem>

#include "ring_fixture.h"
#include "uring/disk.h"

namespace rmq {
namespace {

class DiskTest : public RingTest {
 protected:
  DiskTest() : disk_(*ring_) {
    std::string pattern = (std::filesystem::temp_directory_path() / "rmq-disk-XXXXXX").string();
    check(mkdtemp(pattern.data()) != nullptr);
    dir_ = pattern;
  }
  ~DiskTest() override { std::filesystem::remove_all(dir_); }
  UringDisk disk_;
  std::string dir_;
};

Task<std::unique_ptr<File>> open_ok(Disk& d, std::string path, OpenHow how) {
  Result<std::unique_ptr<File>> f = co_await d.open(std::move(path), how);
  EXPECT_TRUE(f) << why(f);
  check(f.has_value());
  co_return std::move(*f);
}

Task<Result<void>> write_text(File& f, uint64_t offset, std::string_view text, Durability d) {
  iovec v = iov(text);
  Result<void> r = co_await f.write(offset, std::span(&v, 1), d);
  co_return r;
}

Task<std::string> read_text(File& f, uint64_t offset, size_t bytes) {
  std::string s(bytes, '\0');
  Result<size_t> n = co_await f.read(offset, MutableBytes(reinterpret_cast<std::byte*>(s.data()), bytes));
  EXPECT_TRUE(n) << why(n);
  s.resize(n.value_or(0));
  co_return s;
}

Task<void> round_trip(Disk& d, std::string path) {
  std::unique_ptr<File> f = co_await open_ok(d, path, {.write = true, .create = true, .exclusive = true});
  Result<void> w = co_await write_text(*f, 0, "0123456789", Durability::on_media);
  EXPECT_TRUE(w) << why(w);
  Result<void> s = co_await f->sync();
  EXPECT_TRUE(s) << why(s);
  std::string all = co_await read_text(*f, 0, 10);
  EXPECT_EQ(all, "0123456789");
  std::string at_end = co_await read_text(*f, 7, 100);
  EXPECT_EQ(at_end, "789");
  std::string beyond = co_await read_text(*f, 10, 5);
  EXPECT_EQ(beyond, "");
  Result<uint64_t> size = co_await f->size();
  EXPECT_EQ(size.value_or(0), 10u);
  co_await f->close();
}
TEST_F(DiskTest, WhatWasWrittenIsReadShortOnlyAtTheEnd) {
  run(round_trip(disk_, dir_ + "/f"));
}

// ---- kinds of writing --------------------------------------------------------------------------------

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};
using Block = std::unique_ptr<std::byte[], FreeDeleter>;
Block aligned_block(size_t bytes, char fill) {
  auto* p = static_cast<std::byte*>(std::aligned_alloc(disk_block_bytes, bytes));
  std::fill_n(reinterpret_cast<char*>(p), bytes, fill);
  return Block(p);
}

Task<void> direct_io(Disk& d, std::string path, bool& supported) {
  Result<std::unique_ptr<File>> opened =
      co_await d.open(path, {.write = true, .create = true, .direct = true});
  supported = opened.has_value();
  if (!supported) {
    EXPECT_EQ(opened.error().code, Errc::unsupported) << why(opened);
    co_return;
  }
  File& f = **opened;
  Block three = aligned_block(3 * disk_block_bytes, 'd');
  iovec v{three.get(), 3 * disk_block_bytes};
  Result<void> w = co_await f.write(disk_block_bytes, std::span(&v, 1), Durability::on_media);
  EXPECT_TRUE(w) << why(w);
  Block back = aligned_block(8 * disk_block_bytes, '?');
  Result<size_t> n = co_await f.read(0, MutableBytes(back.get(), 8 * disk_block_bytes));
  EXPECT_EQ(n.value_or(0), 4 * disk_block_bytes) << why(n);
  EXPECT_EQ(back[0], std::byte{0});
  EXPECT_EQ(back[disk_block_bytes], std::byte{'d'});
  // A file that ends inside a block.
  Result<void> cut = co_await f.truncate(disk_block_bytes + 100);
  EXPECT_TRUE(cut) << why(cut);
  n = co_await f.read(0, MutableBytes(back.get(), 8 * disk_block_bytes));
  EXPECT_EQ(n.value_or(0), disk_block_bytes + 100) << why(n);
  // An offset inside a block is refused, not bounced through the page cache; but tmpfs, which takes direct
  // I/O since Linux 6.6, is no device and knows no blocks.
  struct statfs fs{};
  const bool in_memory = ::statfs(path.c_str(), &fs) == 0 && fs.f_type == TMPFS_MAGIC;
  n = co_await f.read(100, MutableBytes(back.get(), disk_block_bytes));
  EXPECT_EQ(n.has_value(), in_memory);
  if (!n) {
    EXPECT_EQ(n.error().sys, EINVAL);
  }
  co_await f.close();
}
TEST_F(DiskTest, DirectIoInBlocks) {
  bool supported = false;
  run(direct_io(disk_, dir_ + "/direct", supported));
  if (!supported) GTEST_SKIP() << "no O_DIRECT in " << dir_;
}

// tmpfs of old kernels has no O_DIRECT; a file below /proc never has.
Task<void> no_direct(Disk& d) {
  Result<std::unique_ptr<File>> f = co_await d.open("/proc/self/status", {.direct = true});
  EXPECT_FALSE(f);
  if (!f) {
    EXPECT_EQ(f.error().code, Errc::unsupported) << why(f);
  }
}
TEST_F(DiskTest, AFileSystemWithoutDirectIoSaysSo) {
  run(no_direct(disk_));
}

Task<void> many_buffers(Disk& d, std::string path) {
  std::unique_ptr<File> f = co_await open_ok(d, path, {.write = true, .create = true});
  std::string expected;
  std::vector<std::string> parts;
  for (int i = 0; i < 3000; i++) parts.push_back(std::to_string(i) + ",");  // more than IOV_MAX
  std::vector<iovec> v;
  for (const std::string& s : parts) {
    v.push_back(iov(s));
    expected += s;
  }
  Result<void> w = co_await f->write(5, v, Durability::none);
  EXPECT_TRUE(w) << why(w);
  std::string got = co_await read_text(*f, 5, expected.size());
  EXPECT_TRUE(got == expected);
  Result<void> nothing = co_await f->write(0, {}, Durability::on_media);
  EXPECT_TRUE(nothing) << why(nothing);
  co_await f->close();
}
TEST_F(DiskTest, AWriteOfAnyNumberOfBuffersIsWhole) {
  run(many_buffers(disk_, dir_ + "/many"));
}

Task<void> sizes(Disk& d, std::string path) {
  std::unique_ptr<File> f = co_await open_ok(d, path, {.write = true, .create = true});
  Result<void> a = co_await f->allocate(0, 100'000);
  EXPECT_TRUE(a) << why(a);
  Result<uint64_t> n = co_await f->size();
  EXPECT_EQ(n.value_or(0), 100'000u);
  Result<void> t = co_await f->truncate(17);
  EXPECT_TRUE(t) << why(t);
  n = co_await f->size();
  EXPECT_EQ(n.value_or(0), 17u);
  t = co_await f->truncate(50);
  EXPECT_TRUE(t) << why(t);
  n = co_await f->size();
  EXPECT_EQ(n.value_or(0), 50u);
  co_await f->close();
}
TEST_F(DiskTest, AllocateAndTruncateSetTheSize) {
  run(sizes(disk_, dir_ + "/sizes"));
}

// ---- failures ----------------------------------------------------------------------------------------

Task<void> full_device(Disk& d) {
  std::unique_ptr<File> f = co_await open_ok(d, "/dev/full", {.write = true});
  Result<void> w = co_await write_text(*f, 0, "x", Durability::none);
  EXPECT_FALSE(w);
  if (!w) {
    EXPECT_EQ(w.error().code, Errc::no_space);
  }
  co_await f->close();
}
TEST_F(DiskTest, AFullDiskIsPassedUp) {
  run(full_device(disk_));
}

// The limit lets a part of the write through; the rest fails, and so does the write.
Task<void> over_size_limit(Disk& d, std::string path) {
  std::unique_ptr<File> f = co_await open_ok(d, path, {.write = true, .create = true});
  std::string big(10'000, 'b');
  Result<void> w = co_await write_text(*f, 0, big, Durability::none);
  EXPECT_FALSE(w);
  if (!w) {
    EXPECT_EQ(w.error().sys, EFBIG) << why(w);
  }
  Result<uint64_t> n = co_await f->size();
  EXPECT_EQ(n.value_or(0), 6000u);  // the part
  co_await f->close();
}
TEST_F(DiskTest, APartialWriteGoesOnUntilItFails) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit low{6000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &low);
  run(over_size_limit(disk_, dir_ + "/big"));
  setrlimit(RLIMIT_FSIZE, &before);
}

Task<void> open_errors(Disk& d, std::string dir) {
  Result<std::unique_ptr<File>> f = co_await d.open(dir + "/none", {});
  EXPECT_EQ(f.error().code, Errc::not_found);
  f = co_await d.open(dir + "/f", {.write = true, .create = true});
  EXPECT_TRUE(f) << why(f);
  f = co_await d.open(dir + "/f", {.write = true, .create = true, .exclusive = true});
  EXPECT_FALSE(f);
  if (!f) {
    EXPECT_EQ(f.error().code, Errc::exists);
  }
  std::unique_ptr<File> read_only = co_await open_ok(d, dir + "/f", {});
  Result<void> w = co_await write_text(*read_only, 0, "x", Durability::none);
  EXPECT_FALSE(w);
  if (!w) {
    EXPECT_EQ(w.error().code, Errc::io);
  }
  co_await read_only->close();
}
TEST_F(DiskTest, OpenTellsWhatIsWrong) {
  run(open_errors(disk_, dir_));
}

Task<void> truncating_open(Disk& d, std::string path) {
  std::unique_ptr<File> f = co_await open_ok(d, path, {.write = true, .create = true});
  Result<void> w = co_await write_text(*f, 0, "old", Durability::none);
  EXPECT_TRUE(w);
  co_await f->close();
  f = co_await open_ok(d, path, {.write = true, .truncate = true});
  Result<uint64_t> n = co_await f->size();
  EXPECT_EQ(n.value_or(9), 0u);
  co_await f->close();
}
TEST_F(DiskTest, TruncateOnOpenEmptiesTheFile) {
  run(truncating_open(disk_, dir_ + "/t"));
}

// ---- directories -------------------------------------------------------------------------------------

Task<void> directories(Disk& d, std::string dir) {
  for (int i = 0; i < 2; i++) {  // the second time they exist
    Result<void> m = co_await d.make_dirs(dir + "/a/b/c");
    EXPECT_TRUE(m) << why(m);
  }
  {
    std::unique_ptr<File> f = co_await open_ok(d, dir + "/a/z", {.write = true, .create = true});
    Result<void> w = co_await write_text(*f, 0, "1234", Durability::none);
    EXPECT_TRUE(w);
    co_await f->close();
  }
  Result<void> in_the_way = co_await d.make_dirs(dir + "/a/z/more");
  EXPECT_FALSE(in_the_way);
  in_the_way = co_await d.make_dirs(dir + "/a/z");
  EXPECT_FALSE(in_the_way);
  Result<void> renamed = co_await d.rename(dir + "/a/z", dir + "/a/a");
  EXPECT_TRUE(renamed) << why(renamed);
  Result<std::vector<DirEntry>> l = co_await d.list(dir + "/a");
  EXPECT_TRUE(l) << why(l);
  if (l) {
    EXPECT_EQ(l->size(), 2u);
    EXPECT_EQ(l->at(0).name, "a");
    EXPECT_FALSE(l->at(0).is_dir);
    EXPECT_EQ(l->at(0).bytes, 4u);
    EXPECT_EQ(l->at(1).name, "b");
    EXPECT_TRUE(l->at(1).is_dir);
  }
  Result<void> synced = co_await d.sync_dir(dir + "/a");
  EXPECT_TRUE(synced) << why(synced);
  synced = co_await d.sync_dir(dir + "/none");
  EXPECT_EQ(synced.error().code, Errc::not_found);
  synced = co_await d.sync_all(dir + "/a");
  EXPECT_TRUE(synced) << why(synced);
  synced = co_await d.sync_all(dir + "/none");
  EXPECT_EQ(synced.error().code, Errc::not_found);
  l = co_await d.list(dir + "/none");
  EXPECT_EQ(l.error().code, Errc::not_found);
}
TEST_F(DiskTest, DirectoriesAreMadeListedAndSynced) {
  run(directories(disk_, dir_));
}

Task<void> removing(Disk& d, std::string dir) {
  Result<void> m = co_await d.make_dirs(dir + "/x/y");
  EXPECT_TRUE(m) << why(m);
  Result<void> r = co_await d.remove(dir + "/x");
  EXPECT_FALSE(r);  // not empty
  r = co_await d.remove(dir + "/x/y");
  EXPECT_TRUE(r) << why(r);
  r = co_await d.remove(dir + "/x/y");
  EXPECT_EQ(r.error().code, Errc::not_found);
  std::unique_ptr<File> f = co_await open_ok(d, dir + "/x/f", {.write = true, .create = true});
  std::unique_ptr<File> g = co_await open_ok(d, dir + "/x/g", {.write = true, .create = true});
  co_await f->close();
  co_await g->close();
  r = co_await d.rename(dir + "/x/f", dir + "/x/g");  // replaces
  EXPECT_TRUE(r) << why(r);
  r = co_await d.remove(dir + "/x/g");
  EXPECT_TRUE(r) << why(r);
  r = co_await d.remove(dir + "/x");
  EXPECT_TRUE(r) << why(r);
}
TEST_F(DiskTest, RemoveTakesFilesAndEmptyDirectories) {
  run(removing(disk_, dir_));
}

Task<void> free_space(Disk& d, std::string dir) {
  Result<DiskSpace> s = co_await d.space(dir);
  EXPECT_TRUE(s) << why(s);
  if (s) {
    EXPECT_GT(s->total_bytes, 0u);
    EXPECT_LE(s->free_bytes, s->total_bytes);
    struct stat point{}, here{};
    EXPECT_EQ(::stat(s->mount_point.c_str(), &point), 0) << s->mount_point;
    EXPECT_EQ(::stat(dir.c_str(), &here), 0);
    EXPECT_EQ(point.st_dev, here.st_dev);
    EXPECT_TRUE(dir.starts_with(s->mount_point)) << s->mount_point;
  }
  s = co_await d.space(dir + "/none");
  EXPECT_EQ(s.error().code, Errc::not_found);
}
TEST_F(DiskTest, SpaceIsThatOfTheFileSystem) {
  run(free_space(disk_, dir_));
}

size_t open_descriptors() {
  size_t n = 0;
  for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd")) n += e.path().empty() ? 0 : 1;
  return n;
}
Task<void> forget_files(Disk& d, std::string path) {
  size_t before = open_descriptors();
  for (int i = 0; i < 20; i++) {
    std::unique_ptr<File> f = co_await open_ok(d, path, {.write = true, .create = true});
  }
  co_await sleep_for(20 * ns_per_ms);
  EXPECT_EQ(open_descriptors(), before);
}
TEST_F(DiskTest, AFileThatIsDroppedIsClosed) {
  run(forget_files(disk_, dir_ + "/f"));
}

Task<void> follow_links(Disk& d, std::string dir) {
  for (std::string name : {"/plain", "/none", "/no/dir"}) {
    Result<std::string> to = co_await d.link_target(dir + name);
    EXPECT_EQ(to.value_or(why(to)), dir + name);
  }
  Result<std::string> to = co_await d.link_target(dir + "/far");
  EXPECT_EQ(to.value_or(why(to)), dir + "/plain");
  to = co_await d.link_target(dir + "/dangling");
  EXPECT_EQ(to.value_or(why(to)), dir + "/none");
  to = co_await d.link_target(dir + "/round");
  EXPECT_TRUE(!to && to.error().sys == ELOOP) << why(to);
}
TEST_F(DiskTest, LinksAreFollowedToTheirEnd) {
  namespace fs = std::filesystem;
  std::fclose(std::fopen((dir_ + "/plain").c_str(), "w"));
  fs::create_symlink("plain", dir_ + "/near");
  fs::create_symlink(dir_ + "/near", dir_ + "/far");
  fs::create_symlink("none", dir_ + "/dangling");
  fs::create_symlink("round", dir_ + "/round");
  run(follow_links(disk_, dir_));
}

// As a daemon that may write where it may not give files away.
Task<void> take_access(Disk& d, std::string dir) {
  std::unique_ptr<File> f = co_await open_ok(d, dir + "/new", {.write = true, .create = true});
  Result<void> taken = co_await f->take_access_of(dir + "/old");
  EXPECT_TRUE(taken) << why(taken);
  taken = co_await f->take_access_of(dir + "/none");
  EXPECT_TRUE(!taken && taken.error().code == Errc::not_found) << why(taken);
  co_await f->close();
}
TEST_F(DiskTest, AGroupThatIsNotKeptGivesNoRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else for a while";
  std::fclose(std::fopen((dir_ + "/old").c_str(), "w"));
  ASSERT_EQ(::chown((dir_ + "/old").c_str(), 12'345, 23'456), 0);
  ASSERT_EQ(::chmod((dir_ + "/old").c_str(), 0664), 0);
  ASSERT_EQ(::chmod(dir_.c_str(), 0777), 0);
  ASSERT_EQ(::seteuid(34'567), 0);
  run(take_access(disk_, dir_));
  ASSERT_EQ(::seteuid(0), 0);
  struct stat st{};
  ASSERT_EQ(::stat((dir_ + "/new").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 34'567u);
  EXPECT_EQ(st.st_mode & 07777, 0644u);
}

}  // namespace
}  // namespace rmq
