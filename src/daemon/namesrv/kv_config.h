// The KV config: namespace → key → value, in one file. A change becomes visible, and its caller is told, only
// when the file with it is on stable storage; one that cannot be written changes nothing. Changes that come
// while the file is being written share the next write.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "proto/bodies_config.h"
#include "uring/io.h"
#include "uring/sync.h"

namespace rmq::namesrv {

class KvConfig {
 public:
  using Table = std::map<std::string, std::string, std::less<>>;
  KvConfig(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}

  // A missing file is an empty config. Errc::corrupt: the file and its backup cannot be read.
  Task<Result<void>> load();
  Task<Result<void>> put(std::string name_space, std::string key, std::string value);
  Task<Result<void>> remove(std::string name_space, std::string key);

  // Null: no such thing.
  const std::string* find(std::string_view name_space, std::string_view key) const;
  const Table* find(std::string_view name_space) const;

 private:
  struct Change {
    std::string name_space, key;
    std::optional<std::string> value;  // nothing: remove the key
  };
  struct Batch {
    std::vector<Change> changes;
    bool is_done = false;
    Result<void> result;
  };
  Task<Result<void>> change(Change c);
  Task<void> write(std::shared_ptr<Batch> batch);
  bool is_in_effect(const Change& c) const;

  Disk& disk_;
  const std::string path_;
  proto::KVConfigWrapper config_;
  std::shared_ptr<Batch> next_ = std::make_shared<Batch>();
  Semaphore writing_{1};
};

}  // namespace rmq::namesrv
