// `rmqd.index` in the store's root: up to where the index is on stable storage, and in which files. Ours;
// RocketMQ ignores it. Two slots, written in turn, so that one is good at every moment. Without this file the
// index files are judged as RocketMQ does it, by `checkpoint` and `abort`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/index_format.h"
#include "uring/io.h"

namespace rmq::store {

struct IndexState {
  struct Sealed {
    uint64_t name = 0;
    int64_t end_physical = 0;
  };
  uint64_t sequence = 0;
  bool clean = false;  // slots and header of the newest file are on stable storage as well
  IndexLayout layout;
  int64_t indexed = 0;          // a physical offset: every record below it has its entries
  uint64_t newest = 0;          // the file that is written; 0: there is none
  IndexHeader newest_header;    // its entries below this count are on stable storage
  std::vector<Sealed> sealed;   // full files, oldest first
  bool sealed_complete = true;  // false: there are older ones than those
};

inline constexpr size_t index_state_slot_bytes = 16u << 10;
inline constexpr size_t index_state_sealed_max = 1000;

void encode_index_state(const IndexState& s, MutableBytes slot);  // index_state_slot_bytes
std::optional<IndexState> decode_index_state(Bytes slot);         // nothing: not valid

class IndexStateFile {
 public:
  IndexStateFile(Disk& disk, std::string root) : disk_(disk), root_(std::move(root)) {}
  Task<Result<std::optional<IndexState>>> load();  // nothing: there is no valid one
  Task<Result<void>> save(IndexState s);           // the sequence is set here
  Task<void> close();

 private:
  Disk& disk_;
  const std::string root_;
  std::unique_ptr<File> file_;
  uint64_t sequence_ = 0;
};

}  // namespace rmq::store
