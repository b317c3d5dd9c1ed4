#include "proto/command_table.h"

#include <algorithm>
#include <array>

namespace rmq::proto {

namespace {

template <class H, class T>
constexpr FieldInfo info_of(const FieldOf<H, T>& f, Names n) {
  return {f.name(n), f.full, detail::type_of<T>(), f.presence, f.resource};
}

template <class H, Names N>
constexpr auto infos = std::apply(
    [](const auto&... f) { return std::array<FieldInfo, sizeof...(f)>{info_of(f, N)...}; }, H::fields);

template <class Row>
constexpr CommandRow row_of() {
  return {Row::code,
          {},
          Row::admission,
          Row::names,
          infos<typename Row::Request, Row::names>,
          infos<typename Row::Response, Names::full>};
}

template <class... Rows>
constexpr std::array<CommandRow, sizeof...(Rows)> make_table(CommandList<Rows...>) {
  std::array<CommandRow, sizeof...(Rows)> t{row_of<Rows>()...};
  std::ranges::sort(t, {}, &CommandRow::code);
  return t;
}

constexpr RequestCode all_codes[] = {
#define X(name, number) RequestCode::name,
    RMQ_REQUEST_CODES(X)
#undef X
};
constexpr std::string_view all_names[] = {
#define X(name, number) #name,
    RMQ_REQUEST_CODES(X)
#undef X
};

constexpr auto with_names() {
  auto t = make_table(AllCommands{});
  for (CommandRow& r : t) {
    for (size_t i = 0; i < std::size(all_codes); ++i) {
      if (all_codes[i] == r.code) r.name = all_names[i];
    }
  }
  return t;
}
constexpr auto table = with_names();

constexpr bool each_code_has_one_row() {
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i - 1].code == table[i].code) return false;
  }
  return table.size() == std::size(all_codes);
}
static_assert(each_code_has_one_row(), "a request code without a row, or with two");

}  // namespace

std::span<const CommandRow> command_table() {
  return table;
}

const CommandRow* find_command(int32_t code) {
  auto it = std::ranges::lower_bound(table, static_cast<RequestCode>(code), {}, &CommandRow::code);
  return it != table.end() && it->code == static_cast<RequestCode>(code) ? &*it : nullptr;
}

std::string_view name_of(Admission a) {
  switch (a) {
    case Admission::none:
      return "none";
    case Admission::send:
      return "send";
    case Admission::pull:
      return "pull";
    case Admission::lite_pull:
      return "lite_pull";
    case Admission::query:
      return "query";
    case Admission::heartbeat:
      return "heartbeat";
    case Admission::client:
      return "client";
    case Admission::consumer:
      return "consumer";
    case Admission::offset:
      return "offset";
    case Admission::transaction:
      return "transaction";
    case Admission::ack:
      return "ack";
    case Admission::reply:
      return "reply";
    case Admission::admin:
      return "admin";
    case Admission::ha:
      return "ha";
    case Admission::route:
      return "route";
    case Admission::namesrv:
      return "namesrv";
    case Admission::controller:
      return "controller";
    case Admission::push:
      return "push";
  }
  return {};
}

std::string remark_of(const HeaderError& e) {
  std::string s = "the custom field <";
  s += e.field;
  s += e.kind == HeaderError::Kind::missing ? "> is null" : "> is invalid";
  return s;
}

}  // namespace rmq::proto
