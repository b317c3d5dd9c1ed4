// Idea: see program.h. Parse, run the verb's function, print a failure as one line.

#include "ctl/program.h"

#include <cstdio>
#include <cstdlib>

#include "ctl/command_line.h"
#include "ctl/context.h"

namespace rmq::ctl {

static Exit report(const Failure& f) {
  fflush(stdout);
  fprintf(stderr, "rmqctl: %s\n", f.text.c_str());
  return f.exit;
}

Exit run_program(std::vector<std::string> args) {
  auto invocation = parse_command_line(std::move(args));
  if (!invocation) return report(invocation.error());
  if (!invocation->text.empty()) {
    fputs(invocation->text.c_str(), stdout);
    return Exit::ok;
  }
  Options& o = invocation->options;
  const char* from_environment = getenv("NAMESRV_ADDR");
  if (o.namesrv.empty() && from_environment) o.namesrv = from_environment;
  Context context(*invocation->verb, std::move(o));
  Outcome<void> outcome;
  if (auto timeout = context.duration_ms(context.options().timeout, "--timeout", 1); !timeout)
    outcome = std::unexpected(timeout.error());
  if (outcome) outcome = invocation->verb->run(context);
  Exit exit = outcome ? Exit::ok : report(outcome.error());
  if (!context.flush() && exit == Exit::ok)
    exit = report({Exit::refused, "cannot write to standard output", 0});
  return exit;
}

}  // namespace rmq::ctl
