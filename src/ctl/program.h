// The whole program but for main(): what the tests run too.
#pragma once

#include <string>
#include <vector>

#include "ctl/outcome.h"

namespace rmq::ctl {

// `args` without the program's name; reads NAMESRV_ADDR from the environment. Prints to stdout, a failure as
// one line to stderr, and gives the exit code.
Exit run_program(std::vector<std::string> args);

}  // namespace rmq::ctl
