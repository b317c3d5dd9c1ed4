// One IndexFile. The newest one is written: an entry is made in memory, in a tail that is appended to the
// file in pieces, and in the slots (index_slots.h). Older ones are full and never change; a look-up opens
// them.
//
// Entries are only ever appended, so what was synced once is whole after a crash. Slots and header are
// overwritten in place and may be anything then; rebuild() makes the slots from the entries and sees on the
// way whether these are a sound chain.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/index_slots.h"
#include "store/types.h"

namespace rmq::store {

class IndexFile {
 public:
  IndexFile(Disk& disk, const std::string& dir, uint64_t name, IndexLayout layout, StoreStats& stats);

  uint64_t name() const { return name_; }
  const std::string& path() const { return path_; }
  const IndexLayout& layout() const { return layout_; }
  const IndexHeader& header() const { return header_; }
  void set_header(const IndexHeader& h) { header_ = h; }
  bool full() const { return static_cast<uint32_t>(header_.count) >= layout_.entries; }
  // Look-ups may go into it: its slots are right, in memory or in the file.
  bool readable() const { return readable_; }
  void set_readable(bool yes) { readable_ = yes; }

  // --- writing; one task at a time
  Task<Result<void>> create();  // a new file with its name, on stable storage
  Task<Result<void>> open();    // goes on in one whose slots in the file are right
  // The same without relying on the slots. Errc::corrupt: the entries are no chain of this header's. `stop`
  // ends it early with Errc::cancelled.
  Task<Result<void>> rebuild(const bool& stop);
  bool is_writing() const { return file_ != nullptr; }
  // A sync of it has failed: what the file says from then on may never come to the device.
  bool sync_failed() const { return sync_failed_; }

  bool has_slot(int32_t hash) const { return slots_.has(layout_.slot_of(hash)); }
  void prefetch(int32_t hash) const { slots_.prefetch(layout_.slot_of(hash)); }
  Task<Result<void>> load_slot(int32_t hash);
  // Not full, and the slot is there.
  void put(int32_t hash, int64_t physical, int64_t store_timestamp_ms);
  size_t tail_bytes() const { return tail_.size(); }
  Task<Result<void>> write_tail();
  Task<Result<void>> trim(int64_t untouched_since_ns);  // slots: from memory to the file
  bool slots_in_use() const { return slots_.any_touched(); }
  // Entries and header are on stable storage when it resolves; with `slots` these too.
  Task<Result<void>> sync(bool slots);
  Task<void> end_writing();

  // --- reading
  bool slot_in_memory(int32_t hash, int32_t& number) const;
  bool entry_in_memory(int32_t number, IndexEntry& e) const;

 private:
  Task<Result<void>> open_file(bool all_zero);
  Task<Result<void>> write_header();
  Result<void> chain(Bytes entries, int32_t first, int64_t& last_physical);

  Disk& disk_;
  const std::string path_;
  const std::string dir_;
  const uint64_t name_;
  const IndexLayout layout_;
  StoreStats& stats_;
  IndexHeader header_;
  bool readable_ = false;
  bool sync_failed_ = false;
  std::unique_ptr<File> file_;
  IndexSlots slots_;
  std::vector<std::byte> tail_;     // encoded entries from tail_first_ on
  std::vector<std::byte> writing_;  // those before it, while they are being written
  int32_t tail_first_ = 1;
};

}  // namespace rmq::store
