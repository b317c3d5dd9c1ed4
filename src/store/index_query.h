// Looking into one IndexFile: the entries with a hash, newest first. Slots and entries that are in memory are
// taken from there, the others are read, a window of neighbours at a time, so a look-up needs little memory
// however long the chain is.
#pragma once

#include <memory>
#include <vector>

#include "store/index_file.h"

namespace rmq::store {

class IndexChain {
 public:
  IndexChain(Disk& disk, std::shared_ptr<IndexFile> file, int32_t hash, StoreStats& stats)
      : disk_(disk), index_(std::move(file)), hash_(hash), stats_(stats) {}

  // False: there are no more. Errc::corrupt: the chain makes no sense; Errc::not_found: the file was deleted.
  Task<Result<bool>> next(IndexEntry& e);
  Task<void> close();

 private:
  Task<Result<void>> find_newest();
  Task<Result<IndexEntry>> entry(int32_t number);
  Task<Result<void>> read_window(int32_t number);
  Task<Result<void>> read(uint64_t at, MutableBytes into);

  Disk& disk_;
  const std::shared_ptr<IndexFile> index_;
  const int32_t hash_;
  StoreStats& stats_;
  std::unique_ptr<File> file_;
  int32_t number_ = -1;  // of the next entry; -1: not begun
  std::vector<std::byte> window_;
  int32_t window_first_ = 0;
  int32_t window_entries_ = 0;
};

}  // namespace rmq::store
