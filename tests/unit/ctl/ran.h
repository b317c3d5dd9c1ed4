// rmqctl run inside the test, with what it printed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ctl/program.h"

namespace rmq::ctl {

struct Ran {
  int exit = 0;
  std::string out, err;
};

inline Ran run(std::vector<std::string> args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran r;
  r.exit = static_cast<int>(run_program(std::move(args)));
  r.out = testing::internal::GetCapturedStdout();
  r.err = testing::internal::GetCapturedStderr();
  return r;
}

}  // namespace rmq::ctl
