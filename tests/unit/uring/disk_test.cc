// Files of a ring, in a directory of their own below the system's temporary one.
#include <sys/resource.h>
#include <sys/stat.h>

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
TEST_F(DiskTest, WhatWasWrittenIsReadShortOnlyAtTheEnd) { run(round_trip(disk_, dir_ + "/f")); }

}  // namespace
}  // namespace rmq
