// rmqctl: looks after RocketMQ servers, sends and reads messages. Called by the name mqadmin it takes the
// command lines of Apache's tool.

#include <algorithm>

#include "ctl/program.h"

int main(int argc, char** argv) {
  std::string_view name = argc > 0 ? argv[0] : "rmqctl";
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  return static_cast<int>(
      rmq::ctl::run_program(std::vector<std::string>(argv + std::min(argc, 1), argv + argc),
                            name == "mqadmin" ? "mqadmin" : "rmqctl"));
}
