// Idea: see program.h. Parse, run the verb's function (with --watch again and again), print a failure as one
// line.

#include "ctl/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "ctl/command_line.h"
#include "ctl/context.h"

namespace rmq::ctl {

namespace {

constexpr int64_t watch_interval_ms = 2'000;

Exit report(std::string_view program, const Failure& f) {
  fflush(stdout);
  fmt::print(stderr, "{}: {}\n", program, printable(f.text));
  return f.exit;
}

Exit run_once(std::string_view program, const Invocation& invocation) {
  Context context(*invocation.verb, invocation.options);
  Outcome<void> outcome;
  if (auto timeout = context.duration_ms(context.options().timeout, "--timeout", 1); !timeout)
    outcome = std::unexpected(timeout.error());
  if (outcome) outcome = invocation.verb->run(context);
  Exit exit = outcome ? Exit::ok : report(program, outcome.error());
  if (!context.flush() && exit == Exit::ok)
    exit = report(program, {Exit::refused, "cannot write to standard output", 0});
  return exit;
}

// Each round asks anew, also for connections: a server that was away is there again when it is. Ends when
// standard output does, or by a signal.
Exit watch(std::string_view program, const Invocation& invocation) {
  Context context(*invocation.verb, invocation.options);
  auto interval_ms = context.duration_ms(invocation.options.interval, "--interval", watch_interval_ms);
  if (!interval_ms) return report(program, interval_ms.error());
  const bool clear = isatty(STDOUT_FILENO) && !invocation.options.json;
  for (;;) {
    if (clear)
      fmt::print("\x1b[H\x1b[2J{} {}, every {}\n\n", program, invocation.verb->words,
                 format_span_ms(*interval_ms));
    const Exit exit = run_once(program, invocation);
    if (exit == Exit::usage || std::ferror(stdout)) return exit;
    if (!clear && !invocation.options.json) fmt::print("\n");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(*interval_ms));
  }
}

}  // namespace

Exit run_program(std::vector<std::string> args, std::string_view program) {
  auto invocation =
      program == "mqadmin" ? parse_mqadmin_line(std::move(args)) : parse_command_line(std::move(args));
  if (!invocation) return report(program, invocation.error());
  if (!invocation->text.empty()) {
    fputs(invocation->text.c_str(), stdout);
    return Exit::ok;
  }
  Options& o = invocation->options;
  const char* from_environment = getenv("NAMESRV_ADDR");
  if (o.namesrv.empty() && from_environment) o.namesrv = from_environment;
  // An interval alone says enough.
  o.watch = o.watch || (invocation->verb->lists && !o.interval.empty());
  return o.watch ? watch(program, *invocation) : run_once(program, *invocation);
}

}  // namespace rmq::ctl
