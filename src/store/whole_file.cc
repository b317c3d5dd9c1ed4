#include "store/whole_file.h"

namespace rmq::store {

Task<Result<void>> write_whole(Disk& disk, std::string path, std::string content, std::string access_of) {
  auto f = co_await disk.open(path, {.write = true, .create = true, .truncate = true});
  if (!f) co_return std::unexpected(f.error());
  iovec v{content.data(), content.size()};
  Result<void> r;
  if (!access_of.empty()) r = co_await (*f)->take_access_of(std::move(access_of));
  if (!r && (r.error().code == Errc::not_found || r.error().code == Errc::unsupported)) r = {};
  if (r && !content.empty()) r = co_await (*f)->write(0, std::span(&v, 1), Durability::none);
  if (r) r = co_await (*f)->sync();
  co_await (*f)->close();
  co_return r;
}

Task<Result<std::string>> read_whole(Disk& disk, std::string path) {
  auto f = co_await disk.open(path, {});
  if (!f) co_return std::unexpected(f.error());
  std::string content;
  auto bytes = co_await (*f)->size();
  Result<size_t> n = size_t{0};
  if (bytes) {
    content.resize(*bytes);
    MutableBytes into(reinterpret_cast<std::byte*>(content.data()), content.size());
    n = co_await (*f)->read(0, into);
  }
  co_await (*f)->close();
  if (!bytes) co_return std::unexpected(bytes.error());
  if (!n) co_return std::unexpected(n.error());
  content.resize(*n);
  co_return content;
}

}  // namespace rmq::store
