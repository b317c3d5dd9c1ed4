#include "machine.h"

#include <algorithm>

namespace rmq::store::test {

MessageIn Ctx::message(std::string_view topic, int32_t queue, std::string_view body,
                       std::string_view properties) {
  MessageIn m;
  m.topic = topic;
  m.queue_id = queue;
  m.body = as_bytes(body);
  m.properties = properties;
  m.born_timestamp_ms = 1'700'000'000'000;
  m.born_host = *Address::parse("10.0.0.1:4000");
  m.store_host = *Address::parse("127.0.0.1:10911");
  return m;
}

Machine::Machine() : image(sim::empty_image()) {
  options.root = "/store";
  options.commit_log_file_bytes = 1u << 20;
  options.consume_queue_file_units = 1000;
  options.memory_bytes = 4u << 20;
  options.unflushed_bytes_max = 1u << 20;
  options.zero_ahead_bytes = 256u << 10;
  options.index_slots = 1000;
  options.index_entries = 10'000;
}

Task<void> Machine::drive(Machine& m, Ctx& c, Body body, End end) {
  auto opened = co_await MessageStore::open(c.disk, m.options, &m);
  if (opened) {
    c.store = opened->get();
    m.recovery = c.store->stats().recovery;
  } else {
    c.opened = std::unexpected(opened.error());
  }
  if (body != nullptr) co_await body(c);
  if (!opened) co_return;
  if (end != End::stop) c.disk.crash_now();  // whatever shutdown() does reaches nothing
  co_await c.store->shutdown();
  m.stats = c.store->stats();
}

void Machine::run(Body body, End end) {
  SimLoop loop(seed, {.start_wall_step_ms = static_cast<int64_t>(seed) * 1000});
  {
    SimDisk disk(loop, plan, image);
    Ctx c{loop, disk, nullptr, {}};
    loop.run(drive(*this, c, body, end));
    EXPECT_TRUE(disk.violations().empty()) << disk.violations().front();
    switch (end) {
      case End::stop:
      case End::kill:
        image = disk.visible_image();
        break;
      case End::power_lost:
        image = disk.crash_image(CrashFate::all_lost(seed));
        break;
      case End::power_torn:
        image = disk.crash_image(CrashFate::all_torn(seed));
        break;
    }
    if (body != nullptr) {
      EXPECT_TRUE(c.opened) << to_string(c.opened.error());
    }
    last_error_ = c.opened ? std::nullopt : std::optional(c.opened.error().code);
  }
  seed++;
}

std::optional<Errc> Machine::try_open() {
  run(nullptr);
  return last_error_;
}

DiskImage Machine::copy() const {
  SimLoop loop(1);
  SimDisk disk(loop, {}, image);
  return disk.visible_image();
}

std::string Machine::file(const std::string& path) const {
  return image.read_file("/store/" + path).value_or("");
}
bool Machine::exists(const std::string& path) const {
  return image.read_file("/store/" + path).has_value();
}

void Machine::damage(const std::string& path, uint64_t at, std::string_view bytes) {
  ASSERT_TRUE(image.write_file("/store/" + path, at, bytes));
}

namespace {
Task<void> cut_path(SimDisk& disk, std::string path, uint64_t bytes) {
  auto file = co_await disk.open(path, {.write = true});
  CO_ASSERT(file.has_value());
  auto r = co_await (*file)->truncate(bytes);
  EXPECT_TRUE(r);
  co_await (*file)->close();
}
}  // namespace

void Machine::cut(const std::string& path, uint64_t bytes) {
  SimLoop loop(seed);
  SimDisk disk(loop, {}, image);
  loop.run(cut_path(disk, "/store/" + path, bytes));
  image = disk.visible_image();
}

namespace {
struct Removal {
  std::vector<std::string> paths;
};
Task<void> remove_paths(SimDisk& disk, const Removal& r) {
  for (const std::string& p : r.paths) {
    auto removed = co_await disk.remove(p);
    EXPECT_TRUE(removed);
  }
}
}  // namespace

namespace {
Task<void> rename_path(SimDisk& disk, std::string from, std::string to) {
  auto made = co_await disk.make_dirs(to.substr(0, to.rfind('/')));
  EXPECT_TRUE(made);
  auto renamed = co_await disk.rename(from, to);
  EXPECT_TRUE(renamed);
}
}  // namespace

void Machine::rename_file(const std::string& from, const std::string& to) {
  SimLoop loop(seed);
  SimDisk disk(loop, {}, image);
  loop.run(rename_path(disk, "/store/" + from, "/store/" + to));
  image = disk.visible_image();
}

void Machine::remove_files(const std::string& prefix) {
  Removal r;
  for (const std::string& p : image.files())
    if (p.starts_with("/store/" + prefix)) r.paths.push_back(p);
  ASSERT_FALSE(r.paths.empty());
  SimLoop loop(seed);
  SimDisk disk(loop, {}, image);
  loop.run(remove_paths(disk, r));
  image = disk.visible_image();
}

std::string bytes_of(const GetMessageResult& r) {
  std::string s;
  for (const LogExtent& e : r.extents) s += as_text(e.bytes());
  return s;
}

std::vector<std::string> bodies_of(const GetMessageResult& r) {
  std::vector<std::string> out;
  std::string all = bytes_of(r);
  Bytes rest = as_bytes(all);
  while (!rest.empty()) {
    auto v = proto::parse_record(rest, proto::CrcCheck::verify);
    EXPECT_TRUE(v) << "record " << out.size();
    if (!v) break;
    out.emplace_back(as_text(v->body));
    rest = rest.subspan(v->size);
  }
  EXPECT_EQ(out.size(), r.message_count);
  EXPECT_EQ(all.size(), r.byte_count);
  return out;
}

}  // namespace rmq::store::test
