// UringDisk: files through a ring. What io_uring cannot do at our floor (list, truncate, syncfs, space,
// links, modes) runs on the ring's Offload thread, so that the ring never blocks.
#pragma once

#include "uring/io.h"
#include "uring/ring.h"

namespace rmq {

// Belongs to the ring's thread, as do its files. Files are made with mode 0640, directories with 0750.
class UringDisk final : public Disk {
 public:
  explicit UringDisk(Ring& ring) : ring_(ring) {}
  Task<Result<std::unique_ptr<File>>> open(std::string path, OpenHow how) override;
  Task<Result<void>> make_dirs(std::string path) override;
  Task<Result<std::vector<DirEntry>>> list(std::string path) override;
  Task<Result<void>> remove(std::string path) override;
  Task<Result<void>> rename(std::string from, std::string to) override;
  Task<Result<void>> sync_dir(std::string path) override;
  Task<Result<std::string>> link_target(std::string path) override;
  Task<Result<void>> sync_all(std::string path) override;
  Task<Result<DiskSpace>> space(std::string path) override;

 private:
  Ring& ring_;
};

}  // namespace rmq
