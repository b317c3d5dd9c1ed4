// Which function answers which request code, said as types and checked by the compiler. A daemon names its
// routes, a line a row of proto's command table, and the rows that it does not serve:
//
//   using Table = Routes<NameServer,
//                        RouteList<Route<proto::PutKvConfig, put_kv_config>, ...>,
//                        NotServed<proto::SendCommands, proto::PopCommands, ...>>;
//   Task<void> NameServer::serve(Request& r) { return Table::serve(*this, r); }
//
// A row that is neither routed nor listed, a row that is both, and a code that is routed twice do not
// compile. Where it has one, the daemon's `static std::string_view why_not_served(int32_t code)` is told to
// who sends such a code. A handler is `Task<void> f(Daemon&, Request&, Cmd::Request header)`, or the same
// returning void when it never waits; a member function of the daemon will do. It gets a header whose
// required fields are all there, and must answer. The header views the request's frame, and both live until
// the handler's Task has ended.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include "daemon/connection.h"
#include "proto/command_table.h"

namespace rmq {

template <class Cmd, auto Handler>
struct Route {
  using Command = Cmd;
  static constexpr auto handler = Handler;
};

template <class... R>
struct RouteList {
  static constexpr size_t size = sizeof...(R);
};

// Rows that a daemon does not serve: single commands or whole command lists.
template <class... CommandsOrLists>
struct NotServed {};

namespace detail {

inline Task<void> finished() {
  co_return;
}

// Answers REQUEST_CODE_NOT_SUPPORTED with RocketMQ's remark and, when there is one, the reason why not.
void answer_not_supported(Request& request, std::string_view reason = {});
// Answers SYSTEM_ERROR for a header that lacks a field or has one that cannot be read.
void answer_header_error(Request& request, const proto::HeaderError& error);

// Decodes and calls; a plain function, so a request pays for the handler's coroutine frame only.
template <class Daemon, class R>
Task<void> serve_route(Daemon& daemon, Request& request) {
  auto header = R::Command::decode(request.command);
  if (!header) {
    answer_header_error(request, header.error());
    return finished();
  }
  using Result = std::invoke_result_t<decltype(R::handler), Daemon&, Request&, typename R::Command::Request>;
  if constexpr (std::same_as<Result, void>) {
    std::invoke(R::handler, daemon, request, std::move(*header));
    return finished();
  } else {
    static_assert(std::same_as<Result, Task<void>>, "a handler returns void or Task<void>");
    return std::invoke(R::handler, daemon, request, std::move(*header));
  }
}

template <class Daemon>
struct RouteRow {
  int32_t code = 0;
  Task<void> (*serve)(Daemon&, Request&) = nullptr;
};

template <class T>
struct CodesOf {
  static constexpr std::array<int32_t, 1> value{static_cast<int32_t>(T::code)};
};
template <class... T>
struct CodesOf<proto::CommandList<T...>> {
  static constexpr std::array<int32_t, sizeof...(T)> value{static_cast<int32_t>(T::code)...};
};

template <class List>
struct NotServedCodes;
template <class... T>
struct NotServedCodes<NotServed<T...>> {
  static constexpr auto get() {
    std::array<int32_t, (0 + ... + CodesOf<T>::value.size())> all{};
    size_t n = 0;
    auto add = [&](const auto& some) {
      for (int32_t c : some) all[n++] = c;
    };
    (add(CodesOf<T>::value), ...);
    std::sort(all.begin(), all.end());
    return all;
  }
};

template <class Daemon, class List>
struct RouteRows;
template <class Daemon, class... R>
struct RouteRows<Daemon, RouteList<R...>> {
  static constexpr auto get() {
    std::array<RouteRow<Daemon>, sizeof...(R)> rows{
        RouteRow<Daemon>{static_cast<int32_t>(R::Command::code), &serve_route<Daemon, R>}...};
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.code < b.code; });
    return rows;
  }
  static constexpr auto codes() {
    std::array<int32_t, sizeof...(R)> all{static_cast<int32_t>(R::Command::code)...};
    std::sort(all.begin(), all.end());
    return all;
  }
};

template <size_t N>
constexpr bool has_twice(const std::array<int32_t, N>& sorted) {
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}
template <size_t N>
constexpr bool has(const std::array<int32_t, N>& sorted, int32_t code) {
  return std::binary_search(sorted.begin(), sorted.end(), code);
}

}  // namespace detail

template <class Daemon, class List, class Others = NotServed<>>
class Routes {
  static constexpr auto routed_ = detail::RouteRows<Daemon, List>::codes();
  static constexpr auto not_served_ = detail::NotServedCodes<Others>::get();
  static_assert(!detail::has_twice(routed_), "a request code is routed twice");
  static_assert(!detail::has_twice(not_served_), "a request code is listed as not served twice");

  template <class Cmd>
  static constexpr bool placed() {
    constexpr int32_t code = static_cast<int32_t>(Cmd::code);
    constexpr bool is_routed = detail::has(routed_, code), is_listed = detail::has(not_served_, code);
    static_assert(is_routed || is_listed, "a row of the command table is neither routed nor listed");
    static_assert(!is_routed || !is_listed, "a row of the command table is routed and listed as not served");
    return true;
  }
  template <class... Cmd>
  static constexpr bool all_placed(proto::CommandList<Cmd...>) {
    return (placed<Cmd>() && ...);
  }

 public:
  // Sorted by code.
  static constexpr auto rows() { return detail::RouteRows<Daemon, List>::get(); }

  // Answers the request, here or in the Task that is returned.
  static Task<void> serve(Daemon& daemon, Request& request) {
    static_assert(all_placed(proto::AllCommands{}));
    static constexpr auto table = rows();
    const int32_t code = request.command.code;
    auto row = std::lower_bound(table.begin(), table.end(), code,
                                [](const auto& r, int32_t c) { return r.code < c; });
    if (row != table.end() && row->code == code) return row->serve(daemon, request);
    if constexpr (requires { Daemon::why_not_served(code); })
      detail::answer_not_supported(request, Daemon::why_not_served(code));
    else
      detail::answer_not_supported(request);
    return detail::finished();
  }
};

}  // namespace rmq
