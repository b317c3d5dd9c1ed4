// The whole program but for main(): what the tests run too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/outcome.h"

namespace rmq::ctl {

// `args` without the program's name; reads NAMESRV_ADDR from the environment. Prints to stdout, a failure as
// one line to stderr, and gives the exit code.
// `program` is "rmqctl", or "mqadmin" for mqadmin's command lines.
Exit run_program(std::vector<std::string> args, std::string_view program = "rmqctl");

}  // namespace rmq::ctl
