#include "store/disk_watch.h"

#include <fmt/format.h>

namespace rmq::store {

namespace {

constexpr int64_t look_interval_ns = ns_per_s;

// As df shows it: rounded up.
uint64_t used_percent(const DiskSpace& s) {
  if (s.total_bytes == 0) return 0;
  return ((s.total_bytes - s.free_bytes) * 100 + s.total_bytes - 1) / s.total_bytes;
}

std::string text_of(const DiskShortage& s) {
  return fmt::format("the file system at {} has {} bytes free, the limit is {} bytes ({})", s.mount_point,
                     s.free_bytes, s.limit_bytes, s.why);
}

}  // namespace

DiskWatch::DiskWatch(Disk& disk, const StoreOptions& o)
    : disk_(disk),
      log_file_bytes_(o.commit_log_file_bytes),
      rules_(o.retention),
      log_{o.commit_log_dir, {}},
      root_{o.root, {}} {}

Task<void> DiskWatch::start(Scope& tasks) {
  co_await look();
  tasks.spawn(run());
}

Task<void> DiskWatch::run() {
  while (!stop_.is_set()) {
    co_await stop_.wait_for(look_interval_ns);
    if (stop_.is_set()) co_return;
    co_await look();
  }
}

void DiskWatch::set_listener(FailureListener* l) {
  listener_ = l;
  if (l != nullptr && shortage_) l->on_disk_full(*shortage_, reason_);
}

// A look that fails leaves what is known.
Task<void> DiskWatch::look() {
  for (Place* p : {&log_, &root_}) {
    auto s = co_await disk_.space(p->dir);
    if (s) p->space = std::move(*s);
    looked_ = looked_ || s.has_value();
  }
  judge();
}

std::optional<DiskShortage> DiskWatch::worst() const {
  const DiskSpace& log = log_.space;
  if (log_stuck_)
    return DiskShortage{log.mount_point, log.free_bytes, rules_.reserved_bytes + log_file_bytes_,
                        "diskReservedBytes and room for the next CommitLog file"};
  if (queues_stuck_)
    return DiskShortage{root_.space.mount_point, root_.space.free_bytes, rules_.reserved_bytes,
                        "ConsumeQueue files cannot grow"};
  for (const Place* p : {&log_, &root_}) {
    const DiskSpace& s = p->space;
    if (!looked_ || s.total_bytes == 0) continue;
    if (s.free_bytes < rules_.reserved_bytes)
      return DiskShortage{s.mount_point, s.free_bytes, rules_.reserved_bytes, "diskReservedBytes"};
    if (used_percent(s) > rules_.warning_percent)
      return DiskShortage{s.mount_point, s.free_bytes, s.total_bytes / 100 * (100 - rules_.warning_percent),
                          "diskSpaceWarningLevelRatio"};
  }
  return std::nullopt;
}

void DiskWatch::judge() {
  const bool was_full = full();
  shortage_ = worst();
  reason_ = shortage_ ? text_of(*shortage_) : "";
  if (was_full == full() || listener_ == nullptr) return;
  if (shortage_)
    listener_->on_disk_full(*shortage_, reason_);
  else
    listener_->on_disk_writable(log_.space.mount_point, log_.space.free_bytes);
}

Task<bool> DiskWatch::may_make_log_file(bool urgent) {
  co_await look();
  const uint64_t wanted = log_file_bytes_ + (urgent ? 0 : rules_.reserved_bytes);
  co_return log_.space.total_bytes == 0 || log_.space.free_bytes >= wanted;
}

void DiskWatch::set_log_stuck(bool stuck) {
  if (log_stuck_ == stuck) return;
  log_stuck_ = stuck;
  judge();
}

void DiskWatch::set_queues_stuck(bool stuck) {
  if (queues_stuck_ == stuck) return;
  queues_stuck_ = stuck;
  judge();
}

}  // namespace rmq::store
